package match

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// snapshot returns the parts of a snapshot.
func (e *Engine) snapshot() (parts [][]byte) {
	for c := (Cursor{}); !c.Done; {
		var part []byte
		part, c = e.AppendSnapshot(nil, c)
		parts = append(parts, part)
	}
	return parts
}

func restore(e *Engine, parts [][]byte) error {
	r := NewRestorer(e)
	for i, part := range parts {
		done, err := r.Add(part)
		if err != nil {
			return err
		}
		if done != (i == len(parts)-1) {
			return fmt.Errorf("part %d of %d: done is %v", i, len(parts), done)
		}
	}
	return nil
}

// TestSnapshot restores an engine in the middle of flows: it has the same digest, writes
// the same records from there on, and makes the same snapshot.
func TestSnapshot(t *testing.T) {
	sweeping, uncrossing, hiding := 0, 0, 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 5))
		f := &flow{draw: random.IntN}
		e, err := newFlowEngine()
		if err != nil {
			t.Fatal(err)
		}
		var out, again []Record
		for i := range 600 {
			op := f.op()
			if i < 3 {
				op = Op{Kind: SetState, Book: []uint16{0, 1, 3}[i], State: Open}
			}
			out = e.Apply(&op, out[:0])
			busy := false
			for n := range e.books {
				busy = busy || e.books[n].state == Uncrossing
			}
			if i%20 != 19 && !busy {
				continue
			}
			sweeping += len(e.sweeps)
			for n := range e.books {
				uncrossing += int(b2u(e.books[n].state == Uncrossing))
			}
			for s := uint32(1); s <= e.top; s++ {
				hiding += int(b2u(e.orders[s].display != 0))
			}
			r, err := New(flowConfig)
			if err != nil {
				t.Fatal(err)
			}
			if err := restore(r, e.snapshot()); err != nil {
				t.Fatalf("seed %d operation %d: %v", seed, i, err)
			}
			if r.Digest() != e.Digest() || r.Position() != e.Position() {
				t.Fatalf("seed %d operation %d: restored %x %v, want %x %v", seed, i, r.Digest(), r.Position(), e.Digest(), e.Position())
			}
			if err := r.check(); err != nil {
				t.Fatalf("seed %d operation %d: %v", seed, i, err)
			}
			if err := same2(e.snapshot(), r.snapshot()); err != nil {
				t.Fatalf("seed %d operation %d: %v", seed, i, err)
			}
			// The two go on side by side, and the restored one takes over.
			for range 30 {
				op := f.op()
				out, again = e.Apply(&op, out[:0]), r.Apply(&op, again[:0])
				if err := same(again, out); err != nil {
					t.Fatalf("seed %d after operation %d: %v", seed, i, err)
				}
			}
			if r.Digest() != e.Digest() {
				t.Fatalf("seed %d after operation %d: digest %x, want %x", seed, i, r.Digest(), e.Digest())
			}
			e = r
		}
	}
	if sweeping == 0 || uncrossing == 0 || hiding == 0 {
		t.Errorf("snapshots with %d pending mass cancels, %d auctions, %d icebergs, want some of each", sweeping, uncrossing, hiding)
	}
}

func same2(a, b [][]byte) error {
	if fmt.Sprintf("%x", a) != fmt.Sprintf("%x", b) {
		return fmt.Errorf("the restored engine makes another snapshot")
	}
	return nil
}

// TestSnapshotParts: a snapshot of many orders has bounded parts.
func TestSnapshotParts(t *testing.T) {
	e := filled(t, 10_000, 1)
	parts := e.snapshot()
	if len(parts) < 8 {
		t.Errorf("%d parts, want at least 8", len(parts))
	}
	for i, p := range parts {
		if len(p) > snapshotPart+1024 {
			t.Errorf("part %d has %d bytes, allowed: %d", i, len(p), snapshotPart+1024)
		}
	}
	r, err := New(e.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := restore(r, parts); err != nil || r.Digest() != e.Digest() {
		t.Fatalf("restored %x: %v, want %x", r.Digest(), err, e.Digest())
	}
}

// filled returns an engine with one book of so many resting orders, of owner 1 and 2.
func filled(t testing.TB, orders int, groups uint32) *Engine {
	t.Helper()
	e, err := New(Config{Orders: orders, Pages: orders, Books: 2, Work: 1024, Data: L1 | L2 | L3})
	if err == nil {
		err = e.Define(0, Instrument{Tick: 1, Lot: 1, Low: 1, High: 10_000, Ref: 5000})
	}
	if err != nil {
		t.Fatal(err)
	}
	out := make([]Record, 0, e.MaxRecords())
	out = e.Apply(&Op{Kind: SetState, State: Open}, out)
	for i := range orders {
		op := Op{Kind: Enter, ID: uint64(i + 1), Type: Limit, Qty: 5, Owner: uint32(1 + i%2), Party: 1, Group: uint32(i) % groups, Side: Buy, Price: int64(1 + i%4000)}
		if i%2 == 1 {
			op.Side, op.Price = Sell, int64(6000+i%4000)
		}
		if out = e.Apply(&op, out[:0]); out[0].Kind != Accepted {
			t.Fatalf("order %d: %v", i, out[0].Reason)
		}
	}
	return e
}

// FuzzRestore: whatever the bytes are, Restore reports an error or leaves an engine whose
// parts fit together.
func FuzzRestore(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 5))
	flow := &flow{draw: random.IntN}
	e, err := newFlowEngine()
	if err != nil {
		f.Fatal(err)
	}
	for range 200 {
		op := flow.op()
		e.Apply(&op, nil)
	}
	for _, part := range e.snapshot() {
		f.Add(part)
	}
	f.Fuzz(func(t *testing.T, part []byte) {
		r, err := New(flowConfig)
		if err != nil {
			t.Fatal(err)
		}
		if done, err := NewRestorer(r).Add(part); err == nil && done {
			if err := r.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestSnapshotDamaged: a snapshot with one bit changed anywhere is refused.
func TestSnapshotDamaged(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 5))
	f := &flow{draw: random.IntN}
	e, err := newFlowEngine()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 400 || len(e.sweeps) == 0 || e.Resting() < 20; i++ {
		op := f.op()
		if i < 3 {
			op = Op{Kind: SetState, Book: []uint16{0, 1, 3}[i], State: Open}
		}
		e.Apply(&op, nil)
	}
	parts := e.snapshot()
	if len(parts) != 1 {
		t.Fatalf("%d parts, want 1", len(parts))
	}
	for i := range parts[0] {
		damaged := append([]byte(nil), parts[0]...)
		damaged[i] ^= 1 << (i % 8)
		r, err := New(flowConfig)
		if err != nil {
			t.Fatal(err)
		}
		if restore(r, [][]byte{damaged}) == nil {
			t.Errorf("byte %d of %d (word %d of its item) changed: restored", i, len(damaged), i/8)
		}
	}
	for n := range len(parts[0]) {
		r, err := New(flowConfig)
		if err != nil {
			t.Fatal(err)
		}
		if done, _ := NewRestorer(r).Add(parts[0][:n]); done {
			t.Errorf("the first %d bytes of %d: restored", n, len(parts[0]))
		}
	}
}
