package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

func newDir(t testing.TB) *directory {
	t.Helper()
	s, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s.(*directory)
}

func TestArchiveIsTheLog(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			l, s := logOf(t, 1000), s(t)
			w := openWriter(t, s, small)
			if pos := w.Position(); pos != (client.Position{}) {
				t.Errorf("the position of an empty archive is %+v", pos)
			}
			write(t, w, l, 1, 640, 7)
			w.settle()
			if pos := w.Position(); pos != l.batch(1, 640).Through {
				t.Errorf("the position is %+v", pos)
			}
			report := holds(t, s, l, 1, 640)
			if report.Segments < 3 || report.Orders != 638 || report.Lineage != 1 || !report.End.Equal(began.Add(640e3)) {
				t.Errorf("the report is %+v", report)
			}
			w.Close()
			w = openWriter(t, s, small)
			if pos := w.Position(); pos != l.batch(1, 640).Through {
				t.Errorf("the position after opening again is %+v", pos)
			}
			write(t, w, l, 641, 1000, 50)
			w.settle()
			holds(t, s, l, 1, 1000)
		})
	}
}

// A log whose begin is freed: the archive begins where the log does, also for the next writer.
func TestArchiveOfALogWithoutItsBegin(t *testing.T) {
	l, s := logOf(t, 500), newDir(t)
	w := openWriter(t, s, small)
	write(t, w, l, 200, 210, 11)
	w.Close()
	w = openWriter(t, s, small)
	if pos := w.Position(); pos != l.batch(1, 210).Through {
		t.Errorf("the position is %+v", pos)
	}
	write(t, w, l, 211, 500, 20)
	w.settle()
	holds(t, s, l, 200, 500)
	w.Close()
	openWriter(t, s, small)
	holds(t, s, l, 200, 500)
}

// A writer that was replaced is refused, whatever the next one has done since.
func TestReplacedWriterIsRefused(t *testing.T) {
	for name, since := range map[string]func(t *testing.T, w *writer, l *testLog){
		"opened": func(*testing.T, *writer, *testLog) {},
		"wrote":  func(t *testing.T, w *writer, l *testLog) { write(t, w, l, 41, 50, 10) },
		"merged": func(t *testing.T, w *writer, l *testLog) {
			for seq := uint64(41); seq < 300; seq += 10 { // a merge takes what is there when it begins
				write(t, w, l, seq, seq+9, 10)
				w.settle()
			}
			if len(w.tail) > 10 {
				t.Fatalf("%d batches are not merged", len(w.tail))
			}
		},
		"merged and opened again": func(t *testing.T, w *writer, l *testLog) {
			for seq := uint64(41); seq < 300; seq += 10 { // a merge takes what is there when it begins
				write(t, w, l, seq, seq+9, 10)
				w.settle()
			}
			openWriter(t, w.t.store, small)
		},
	} {
		for _, before := range []uint64{0, 40} {
			t.Run(name+" at "+map[uint64]string{0: "begin", 40: "40"}[before], func(t *testing.T) {
				l, s := logOf(t, 400), newDir(t)
				old := openWriter(t, s, small)
				next := old
				if before > 0 {
					write(t, old, l, 1, before, 20)
				}
				next = openWriter(t, s, small)
				if before == 0 && name != "opened" {
					write(t, next, l, 1, 40, 20)
				}
				since(t, next, l)
				if err := old.Write(t.Context(), l.batch(before+1, before+5)); !errors.Is(err, sink.ErrFenced) {
					t.Errorf("the error is %v, allowed: ErrFenced", err)
				}
				if next.Position().Seq > 0 {
					holds(t, s, l, 1, next.Position().Seq)
				}
				// Whatever it left behind, the next one goes on.
				third := openWriter(t, s, small)
				write(t, third, l, third.Position().Seq+1, 400, 30)
				third.settle()
				holds(t, s, l, 1, 400)
			})
		}
	}
}

// Another log under the same name, such as that of a grid that was created again.
func TestOtherHistoryIsRefused(t *testing.T) {
	l, other, s := logOf(t, 100), newLog(t), newDir(t)
	other.begin(2)
	other.orders(100)
	w := openWriter(t, s, small)
	write(t, w, l, 1, 50, 10)
	err := w.Write(t.Context(), other.batch(51, 60))
	if p := permanent(t, err); !strings.Contains(p.Error(), "two histories") {
		t.Error(err)
	}
	// The same entry, written by two: the second finds the first one's.
	old := openWriter(t, s, small)
	if err := old.t.store.Create(t.Context(), old.slot(), object2(t, other, 51, 60, order.Hash(l.entries[49].Bytes))); err != nil {
		t.Fatal(err)
	}
	err = old.Write(t.Context(), l.batch(51, 60))
	if p := permanent(t, err); !strings.Contains(p.Error(), "two histories") {
		t.Error(err)
	}
}

// object2 is a batch of another log, put behind the hash of this one.
func object2(t *testing.T, l *testLog, from, to, prevHash uint64) []byte {
	t.Helper()
	o := testLog{t: t, maker: l.maker, hash: prevHash, seq: from - 1, epoch: 9}
	o.orders(int(to - from + 1))
	_, data, err := newEncoder().encode(Header{Kind: KindTail, Grid: grid, Partition: part, Writer: 1}, from, prevHash, o.entries)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestHoleIsRefused(t *testing.T) {
	l, s := logOf(t, 100), newDir(t)
	w := openWriter(t, s, small)
	write(t, w, l, 1, 20, 10)
	err := w.Write(t.Context(), l.batch(31, 40))
	if p := permanent(t, err); !strings.Contains(p.Error(), "entries 21..30 of p3 are missing") {
		t.Error(err)
	}
	holds(t, s, l, 1, 20)
}

// forgetting deletes an object, as a lifecycle rule would.
func TestStoreThatForgets(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			l, s := logOf(t, 1000), s(t)
			w := openWriter(t, s, small)
			for seq := uint64(1); seq < 550; seq += 10 {
				write(t, w, l, seq, seq+9, 10)
				w.settle()
			}
			w.Close()
			for _, forgotten := range []struct{ object, missing string }{
				{segmentName(grid, part, 201), "201..300"}, {segmentName(grid, part, 1), "1..100"}, {tailName(grid, part, 511, 0), "511..520"},
				{segmentName(grid, part, 401), "401..500"},
			} {
				data := read(t, s, forgotten.object)
				if err := s.Delete(t.Context(), forgotten.object); err != nil {
					t.Fatal(err)
				}
				report := verifyAll(t, s)
				text := ""
				for _, p := range report.Problems {
					text += p.Error() + "\n"
				}
				if !strings.Contains(text, "entries "+forgotten.missing) {
					t.Errorf("%s: the report is\n%s", forgotten.object, text)
				}
				_, err := NewTarget(s, small).Open(t.Context(), part)
				if p := permanent(t, err); !strings.Contains(p.Error(), "entries "+forgotten.missing+" of p3 are missing") {
					t.Errorf("%s: %v", forgotten.object, err)
				}
				if err := s.Create(t.Context(), forgotten.object, data); err != nil {
					t.Fatal(err)
				}
			}
			w = openWriter(t, s, small)
			write(t, w, l, 551, 1000, 10)
			w.settle()
			holds(t, s, l, 1, 1000)
		})
	}
}

func read(t testing.TB, s Store, name string) []byte {
	t.Helper()
	r, err := s.Open(t.Context(), name, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := readAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What a killed writer left without a name goes when the next one opens.
func TestFilesWithoutNameAreRemoved(t *testing.T) {
	l, s := logOf(t, 30), newDir(t)
	w := openWriter(t, s, small)
	write(t, w, l, 1, 20, 10)
	w.Close()
	left := filepath.Join(s.root, grid, "p3", tail, temporary+"X")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(t, s, l, 1, 20)
	openWriter(t, s, small)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestDirectoryErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenDir(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewTarget(s, small).Open(context.Background(), part)
	if p := permanent(t, err); !strings.Contains(p.Error(), "name a directory") {
		t.Error(err)
	}
	for url, want := range map[string]string{
		"":                          "empty URL",
		"gs://b":                    `scheme "gs"`,
		"s3://":                     "names no bucket",
		"s3://key:secret@b":         "credentials are never in one",
		"s3://b?acl=x":              `parameter "acl"`,
		"s3://b?endpoint=host":      `endpoint "host"`,
		"s3://b?caFile=/nowhere/ca": "caFile /nowhere/ca",
		"file://host/dir":           "file://host/dir",
	} {
		_, err := OpenURL(url, "")
		if p := permanent(t, err); !strings.Contains(p.Error(), want) {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// An answer that was lost: the object is there, and it is the one that was to be made.
func TestLostAnswerIsNoOtherWriter(t *testing.T) {
	l, s := logOf(t, 40), newDir(t)
	w := openWriter(t, s, small)
	write(t, w, l, 1, 20, 10)
	b := l.batch(21, 30)
	h := w.header(KindTail)
	_, data, err := newEncoder().encode(h, 21, b.Entries[0].PrevHash, b.Entries)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), w.slot(), data); err != nil {
		t.Fatal(err)
	}
	write(t, w, l, 21, 40, 10)
	holds(t, s, l, 1, 40)
}

// A reader that is half way through the batches when they are merged goes on behind what it has read.
func TestReadWhileMerged(t *testing.T) {
	l, s := logOf(t, 400), newDir(t)
	w := openWriter(t, s, Options{Grid: grid, SegmentEntries: 150})
	write(t, w, l, 1, 140, 10)
	r, err := OpenReader(t.Context(), s, grid)
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(1)
	err = r.Entries(t.Context(), part, 0, 0, func(e *client.LogEntry) error {
		if e.Seq != next {
			t.Fatalf("entry %d was read, allowed: %d", e.Seq, next)
		}
		if next++; e.Seq == 55 {
			write(t, w, l, 141, 400, 20)
			w.settle()
		}
		return nil
	})
	if err != nil || next < 141 {
		t.Errorf("it was read up to entry %d: %v", next-1, err)
	}
}

// A tail that is far too long, as of a writer that could not merge: the next one merges it first, and its own fence, which
// is the last object then, stays.
func TestLongTailIsMergedFirst(t *testing.T) {
	l, s := logOf(t, 300), newDir(t)
	w := openWriter(t, s, Options{Grid: grid})
	write(t, w, l, 1, 200, 10)
	w.Close()
	w = openWriter(t, s, Options{Grid: grid, SegmentBatches: 4})
	write(t, w, l, 201, 210, 10)
	w.settle()
	if r := holds(t, s, l, 1, 210); r.Segments != 1 || r.Batches > 3 {
		t.Errorf("%d segments and %d batches are left", r.Segments, r.Batches)
	}
	w.Close()
	w = openWriter(t, s, small)
	write(t, w, l, 211, 300, 10)
	w.settle()
	holds(t, s, l, 1, 300)
}

// Copies of before an accepted loss, or of a grid that was restored since, do not go on with the archive.
func TestEarlierLineageIsRefused(t *testing.T) {
	l, s := logOf(t, 60), newDir(t)
	w := openWriter(t, s, small)
	write(t, w, l, 1, 20, 10)
	l.lineage = 3
	write(t, w, l, 21, 30, 10)
	w.Close()
	l.lineage = 2
	w = openWriter(t, s, small)
	if pos := w.Position(); pos.Lineage != 3 {
		t.Errorf("the position is %+v", pos)
	}
	err := w.Write(t.Context(), l.batch(31, 40))
	if p := permanent(t, err); !strings.Contains(p.Error(), "of lineage 3 of p3, and the entries to write are of lineage 2") {
		t.Error(err)
	}
	// A fence of a restored grid has its lineage, and no entries.
	w = openWriter(t, s, small)
	w.pos.Lineage = 7
	if _, err := w.fence(t.Context(), 31, w.pos.Hash); err != nil {
		t.Fatal(err)
	}
	if w = openWriter(t, s, small); w.Position().Lineage != 7 {
		t.Errorf("the position is %+v", w.Position())
	}
}

// deaf is a store whose answers to creations of segments are lost: the client tries again, and is refused.
type deaf struct{ Store }

func (s deaf) Create(ctx context.Context, name string, data []byte) error {
	if err := s.Store.Create(ctx, name, data); err != nil || !strings.Contains(name, "/"+segments+"/") {
		return err
	}
	return s.Store.Create(ctx, name, data)
}

func TestLostAnswerOfASegment(t *testing.T) {
	l, s := logOf(t, 300), newDir(t)
	w := openWriter(t, deaf{s}, small)
	for seq := uint64(1); seq <= 300; seq += 20 {
		write(t, w, l, seq, seq+19, 20)
		w.settle()
	}
	if r := holds(t, s, l, 1, 300); r.Segments != 3 {
		t.Errorf("there are %d segments", r.Segments)
	}
}
