package archive

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/gateway/sink"
)

func begin(t *testing.T, s Store, o Restore) (*RecoveryPoint, error) {
	t.Helper()
	r, err := OpenReader(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := r.Partitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.Begin(t.Context(), parts[0], o)
}

// The restore of a grid fixes the end of the archive: a writer of the lost grid is refused, the same grid may begin
// again, and another one only if that is asked for.
func TestRestoreTakesTheArchive(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			l, s := logOf(t, 1000), s(t)
			w := openWriter(t, s, small)
			write(t, w, l, 1, 640, 7)
			w.settle()
			end := l.batch(1, 640).Through
			first, err := begin(t, s, Restore{Owner: "a"})
			if err != nil || first.Seq != 640 || first.Lineage != uint64(end.Lineage) {
				t.Fatalf("the recovery point is %+v, %v", first, err)
			}
			if err := w.Write(t.Context(), l.batch(641, 650)); !errors.Is(err, sink.ErrFenced) {
				t.Errorf("a writer of the lost grid: %v", err)
			}
			w = openWriter(t, s, small)
			if p := permanent(t, w.Write(t.Context(), l.batch(641, 650))); !strings.Contains(p.Error(), "the grid was restored") {
				t.Errorf("a writer of the lost grid that opens again: %v", p)
			}
			again, err := begin(t, s, Restore{Owner: "a"})
			if err != nil || again.Seq != 640 || again.Lineage != first.Lineage || again.Hash != first.Hash {
				t.Errorf("the same grid begins again at %+v, %v; it was %+v", again, err, first)
			}
			_, err = begin(t, s, Restore{Owner: "b"})
			if p := permanent(t, err); !strings.Contains(p.Error(), "taken for the restore of another grid, which begins lineage 2 behind entry 640") {
				t.Errorf("another grid: %v", p)
			}
			before := len(names(t, s, ""))
			if p, err := begin(t, s, Restore{Owner: "b", ReadOnly: true}); err != nil || p.Seq != 640 || len(names(t, s, "")) != before {
				t.Errorf("a trial: %+v, %v, %d objects, before it %d", p, err, len(names(t, s, "")), before)
			}
			if p, err := begin(t, s, Restore{Owner: "b", Supersede: true}); err != nil || p.Lineage != first.Lineage+1 {
				t.Errorf("another grid supersedes it: %+v, %v", p, err)
			}
			if _, err = begin(t, s, Restore{Owner: "a"}); err == nil {
				t.Error("the first grid begins again after it was superseded")
			}
		})
	}
}

// Of several that begin at once one wins.
func TestOneRestoreWins(t *testing.T) {
	l, s := logOf(t, 200), newDir(t)
	w := openWriter(t, s, small)
	write(t, w, l, 1, 200, 20)
	w.settle()
	w.Close()
	r, err := OpenReader(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := r.Partitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = r.Begin(t.Context(), parts[0], Restore{Owner: string(rune('a' + i))})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if p := permanent(t, err); !strings.Contains(p.Error(), "another grid") {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d restores won, allowed: 1: %v", won, len(errs), errs)
	}
}

// Damage is found before anything is put.
func TestDamagedIsNotTaken(t *testing.T) {
	l, s := logOf(t, 600), newDir(t)
	w := openWriter(t, s, small)
	write(t, w, l, 1, 600, 20)
	w.settle()
	w.Close()
	if err := s.Delete(t.Context(), names(t, s, "")[0]); err != nil {
		t.Fatal(err)
	}
	before := len(names(t, s, ""))
	_, err := begin(t, s, Restore{Owner: "a"})
	if p := permanent(t, err); !strings.Contains(p.Error(), "entries 1..") || len(names(t, s, "")) != before {
		t.Errorf("%v; %d objects, before it %d", p, len(names(t, s, "")), before)
	}
}
