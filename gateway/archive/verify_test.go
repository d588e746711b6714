package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// written is an archive of the log with segments and batches.
func written(t testing.TB, l *testLog) *directory {
	t.Helper()
	s := newDir(t)
	w := openWriter(t, s, small)
	n := uint64(len(l.entries))
	for seq := uint64(1); seq <= n; seq += 20 {
		write(t, w, l, seq, min(seq+19, n), 20)
		w.settle()
	}
	w.Close()
	return s
}

// Any byte of any object that is changed is found, and named with its object; in a block, with its entries. What is
// behind is still read.
func TestFlippedBitIsFound(t *testing.T) {
	l := logOf(t, 350)
	s := written(t, l)
	for _, name := range names(t, s, grid) {
		path := s.path(name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		h, err := decodeHeader(good)
		if err != nil {
			t.Fatal(err)
		}
		body := headerSize + h.indexSize()
		for at := 0; at < len(good); at += 1 + len(good)/97 {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << (at % 8)
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			r := verifyAll(t, s)
			if len(r.Problems) == 0 {
				t.Fatalf("%s: byte %d of %d: nothing was found", name, at, len(good))
			}
			p := r.Problems[0]
			if p.Object != name || at >= body && (p.Block == 0 || p.First < h.First || p.Last > h.Last) {
				t.Fatalf("%s: byte %d of %d: the problem is %v", name, at, len(good), &p)
			}
			if r.Last != 350 && h.Last != 350 {
				t.Fatalf("%s: byte %d: the archive was read up to entry %d", name, at, r.Last)
			}
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	holds(t, s, l, 1, 350)
}

// An entry that was changed by a program, with checksums that fit, does not have the hash that the next one names.
func TestChangedEntryIsFound(t *testing.T) {
	l := logOf(t, 350)
	s := written(t, l)
	changed := bytes.Clone(l.entries[149].Bytes)
	changed[len(changed)-9] ^= 1
	name := segmentName(grid, part, 101)
	enc := newEncoder()
	d := newDecoder()
	defer d.close()
	h, err := readWhole(t.Context(), s, d, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	enc.begin(h, 101, h.PrevHash)
	enc.h.Entries, enc.h.Orders = 0, 0
	enc.h.Raw = 0
	for i := range l.entries[100:200] {
		e := l.entries[100+i]
		if e.Seq == 150 {
			e.Bytes = changed
		}
		enc.hash = e.PrevHash // as a forger would
		if err := enc.add(&e.Entry, e.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	_, data := enc.finish()
	if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	r := verifyAll(t, s)
	if len(r.Problems) != 1 || r.Problems[0].First != 151 || !strings.Contains(r.Problems[0].What, "prevHash") {
		t.Errorf("the problems are %v", r.Problems)
	}
}

func TestCutOffObject(t *testing.T) {
	s := written(t, logOf(t, 350))
	name := segmentName(grid, part, 101)
	good, err := os.ReadFile(s.path(name))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(good); n += 1 + len(good)/50 {
		if err := os.WriteFile(s.path(name), good[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verifyAll(t, s); r.Intact() || r.Problems[0].Object != name || r.Last != 350 {
			t.Fatalf("%d of %d bytes: the report is %+v", n, len(good), r)
		}
	}
	if err := os.WriteFile(s.path(name), append(bytes.Clone(good), 0), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verifyAll(t, s); r.Intact() {
		t.Error("a byte behind the last block was not found")
	}
}

// A batch of a writer that had been replaced, left where batches were merged, has to be the same history.
func TestLeftoverOfAnotherHistoryIsFound(t *testing.T) {
	l := logOf(t, 350)
	s := written(t, l)
	if err := s.Create(t.Context(), tailName(grid, part, 121, 0), object2(t, l, 121, 130, 77)); err != nil {
		t.Fatal(err)
	}
	r := verifyAll(t, s)
	if r.Leftovers != 1 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].What, "two histories") {
		t.Errorf("the report is %+v", r)
	}
}

func TestEntriesOfARange(t *testing.T) {
	l := logOf(t, 350)
	s := written(t, l)
	r, err := OpenReader(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]uint64{{1, 1}, {1, 350}, {100, 101}, {120, 120}, {199, 345}, {341, 350}, {350, 0}, {1, 400}, {351, 400}} {
		var got []string
		err := r.Entries(t.Context(), part, c[0], c[1], func(e *client.LogEntry) error {
			got = append(got, fmt.Sprint(e.Seq))
			return nil
		})
		want := []string{}
		for seq := c[0]; seq <= 350 && (c[1] == 0 || seq <= c[1]); seq++ {
			want = append(want, fmt.Sprint(seq))
		}
		if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
}

// A replay is what a replica makes of the log.
func TestReplay(t *testing.T) {
	l := logOf(t, 350)
	r, err := OpenReader(t.Context(), written(t, l), grid)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Replay(t.Context(), part)
	if err != nil {
		t.Fatal(err)
	}
	var m machine.Machine
	m.Begin(SessionWindow, 0)
	for i := range l.entries {
		e := &l.entries[i]
		if err := m.Check(&e.Entry, order.Payload(e.Bytes)); err != nil {
			t.Fatal(err)
		}
		m.Apply(&e.Entry, order.Payload(e.Bytes))
	}
	if s.Problem != nil || s.Seq != 350 || s.Orders != 348 || s.Sessions != 1 || s.Digest != fmt.Sprintf("%016x", m.Digest()) || s.Hash != fmt.Sprintf("%016x", l.hash) {
		text, _ := json.Marshal(s)
		t.Errorf("the replay is %s", text)
	}
	if seq := s.Machine.Sessions.Applied(s.Machine.Sessions.At(0), 348); seq != 350 {
		t.Errorf("order 348 of the session is entry %d", seq)
	}
	// With a hole there is nothing to restore behind it.
	if err := r.store.Delete(t.Context(), segmentName(grid, part, 201)); err != nil {
		t.Fatal(err)
	}
	if s, err = r.Replay(t.Context(), part); err != nil || s.Problem == nil || s.Problem.First != 201 || s.Seq != 200 {
		t.Errorf("the replay is %+v, %v", s, err)
	}
}
