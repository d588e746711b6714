package region

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// reading is a Reader of which pages are read between entries, and what it has to read.
type reading struct {
	r      *Reader
	want   map[string]modelValue
	seen   []string
	clears int
}

func (r *run) open(limit int) *reading {
	x := &reading{r: r.s.Open(0, limit), want: maps.Clone(r.m.values)}
	if at, now := x.r.At(); at != r.s.Last() || now != r.s.Now() {
		r.t.Fatalf("a reader is of entry %d and time %d, want %d and %d", at, now, r.s.Last(), r.s.Now())
	}
	return x
}

// page reads some entries and reports whether the reader is at its end.
func (x *reading) page(r *run) bool {
	r.t.Helper()
	rows := 1 + r.rng.IntN(8)
	done, err := x.r.Next(1+r.rng.IntN(12), func(v *Value) bool {
		want, has := x.want[string(v.Key)]
		if !has || want.version != v.Version || want.expire != v.ExpireNs || !bytes.Equal(want.value, v.Value) {
			r.t.Fatalf("entry %d: a reader of another entry reads %q of version %d; want %+v (there: %v)", r.seq, v.Key, v.Version, want, has)
		}
		if n := len(x.seen); n > 0 && x.seen[n-1] >= string(v.Key) {
			r.t.Fatalf("entry %d: %q is read behind %q", r.seq, v.Key, x.seen[n-1])
		}
		x.seen = append(x.seen, string(v.Key))
		rows--
		return rows > 0
	})
	if err != nil {
		if !errors.Is(err, ErrCleared) || x.clears == r.clears {
			r.t.Fatalf("entry %d: %v", r.seq, err)
		}
		return true
	}
	if done && len(x.seen) != len(x.want) {
		r.t.Fatalf("entry %d: %d entries were read, want %d: %q", r.seq, len(x.seen), len(x.want), slices.Sorted(maps.Keys(x.want)))
	}
	return done
}

// TestReaderIsOfOneEntry has readers go on page by page while keys are put, patched, removed, taken and expire.
func TestReaderIsOfOneEntry(t *testing.T) {
	read := 0
	for seed := range uint64(40) {
		r := newRun(t, seed)
		var open []*reading
		for range 1500 {
			r.step()
			if r.rng.IntN(30) == 0 && len(open) < 3 {
				x := r.open(1 << 20)
				x.clears = r.clears
				open = append(open, x)
			}
			open = slices.DeleteFunc(open, func(x *reading) bool {
				if r.rng.IntN(3) > 0 || !x.page(r) {
					return false
				}
				read += len(x.seen)
				x.r.Close()
				return true
			})
			if len(r.s.readers) != len(open) {
				t.Fatalf("%d readers are open, want %d", len(r.s.readers), len(open))
			}
		}
	}
	if read < 10000 {
		t.Errorf("%d entries were read, want 10,000 or more: the test has lost its subject", read)
	}
}

// TestReaderKeepsNoMoreThanItMay.
func TestReaderKeepsNoMoreThanItMay(t *testing.T) {
	r := newRun(t, 1)
	for _, k := range []string{"a", "b", "c"} {
		r.entry(r.seq+1, &order.RegionOp{Op: order.RegionPut, Key: []byte(k), Value: make([]byte, 1000)})
	}
	rd := r.s.Open(0, 2*(1000+keptFixed+1))
	defer rd.Close()
	all := func(*Value) bool { return true }
	if done, err := rd.Next(1, all); done || err != nil {
		t.Fatalf("a page of one entry of three: done is %v, %v", done, err)
	}
	remove := func(k string) { r.entry(r.seq+1, &order.RegionOp{Op: order.RegionRemove, Key: []byte(k)}) }
	remove("a") // read already: nothing is kept
	remove("b")
	remove("c")
	if rd.bytes != rd.limit {
		t.Errorf("%d bytes are kept, want %d of two entries", rd.bytes, rd.limit)
	}
	r.entry(r.seq+1, &order.RegionOp{Op: order.RegionPut, Key: []byte("d"), Value: make([]byte, 1000)})
	remove("d") // newer than the reader
	n := 0
	if done, err := rd.Next(9, func(*Value) bool { n++; return true }); !done || err != nil || n != 2 || rd.bytes != 0 {
		t.Errorf("the rest has %d entries, done is %v, %v, %d bytes are kept; want 2, true, nil, 0", n, done, err, rd.bytes)
	}
	less := r.s.Open(0, 100)
	defer less.Close()
	r.entry(r.seq+1, &order.RegionOp{Op: order.RegionPut, Key: []byte("e"), Value: make([]byte, 1000)})
	tight := r.s.Open(0, 100)
	defer tight.Close()
	remove("e")
	var kept *KeptError
	if _, err := tight.Next(9, all); !errors.As(err, &kept) || kept.Limit != 100 || kept.Bytes != 1000+keptFixed+1 {
		t.Errorf("a reader that would keep more than it may: %v", err)
	}
	if done, err := less.Next(9, all); !done || err != nil {
		t.Errorf("a reader of before e: done is %v, %v; want true, nil", done, err)
	}
}
