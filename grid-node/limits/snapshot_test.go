package limits

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func snapshot(l *Limits) (parts [][]byte) {
	for c := (Cursor{}); !c.Done; {
		var part []byte
		part, c = l.AppendSnapshot(nil, c)
		parts = append(parts, part)
	}
	return parts
}

func restore(l *Limits, parts [][]byte) error {
	r := NewRestorer(l)
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

// TestSnapshot restores an instance in the middle of flows, every 20 steps. It has the same
// digest, gives the same answers from there on, and takes over.
func TestSnapshot(t *testing.T) {
	kills, halts, recents, restricted := 0, 0, 0, 0
	for seed := range uint64(25) {
		f := &flow{draw: rand.New(rand.NewPCG(seed, 5)).IntN}
		l, twin := newFlow(t), (*Limits)(nil)
		steps := 0
		for _, c := range f.setup() {
			l.Change(&c)
		}
		f.run(t, 600, func(op *Op, c *Change) Reason {
			got, again := None, None
			if c != nil {
				got = l.Change(c)
				if twin != nil {
					again = twin.Change(c)
				}
			} else {
				got = l.Apply(op)
				if twin != nil {
					again = twin.Apply(op)
				}
			}
			if twin != nil && (got != again || l.Digest() != twin.Digest() || twin.Digest() != twin.Recount()) {
				t.Fatalf("seed %d: %+v %+v: %q, restored %q; digest %x, restored %x", seed, op, c, got, again, l.Digest(), twin.Digest())
			}
			if steps++; steps%20 == 0 {
				kills, recents = kills+len(l.kills), recents+int(l.held)
				for n := range l.algorithms {
					halts += int(min(1, l.algorithms[n].profile))
				}
				for _, w := range l.restricted.words {
					restricted += int(min(1, w))
				}
				if twin != nil {
					l = twin
				}
				twin = newFlow(t)
				if err := restore(twin, snapshot(l)); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if twin.Digest() != l.Digest() || twin.Recount() != l.Digest() || fmt.Sprint(credits(twin)) != fmt.Sprint(credits(l)) || fmt.Sprint(twin.Kills()) != fmt.Sprint(l.Kills()) {
					t.Fatalf("seed %d: restored %x, want %x", seed, twin.Digest(), l.Digest())
				}
			}
			return got
		})
	}
	if kills == 0 || halts == 0 || recents == 0 || restricted == 0 {
		t.Errorf("snapshots with %d kills, %d halted algorithms, %d recent orders, %d restricted symbols, want some of each", kills, halts, recents, restricted)
	}
}

// TestSnapshotParts: parts are bounded, in bytes and in the places that they visit.
func TestSnapshotParts(t *testing.T) {
	c := flowConfig
	c.Orders, c.Sessions = 5000, 500_000
	l := newAs(t, c)
	for i := range uint64(5000) {
		if why := l.Apply(&Op{Kind: Enter, ID: i + 1, Party: 1, Side: Buy, Price: 1, Qty: 1}); why != None {
			t.Fatalf("order %d: %v", i, why)
		}
	}
	parts := snapshot(l)
	if len(parts) < 5 {
		t.Errorf("%d parts, want at least 5", len(parts))
	}
	for i, p := range parts {
		if len(p) > 65<<10 {
			t.Errorf("part %d has %d bytes, allowed: %d", i, len(p), 65<<10)
		}
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := restore(r, parts); err != nil || r.Digest() != l.Digest() {
		t.Fatalf("restored %x: %v, want %x", r.Digest(), err, l.Digest())
	}
}

// newAs returns an instance with party 1, whose orders on symbol 0 pass.
func newAs(t testing.TB, c Config) *Limits {
	t.Helper()
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Change{
		{Kind: SetProfile, N: 1}, {Kind: Authorise, N: 1, Other: 1}, {Kind: SetClient, N: 1, Profile: 1}, {Kind: SetSession, N: 1, Profile: 1},
		{Kind: SetSymbol, Multiplier: 1, Price: 100}, {Kind: SetCredit, N: 1, Amount: 1 << 50}, {Kind: SetCredit, Amount: 1 << 50},
		{Kind: SetParty, N: 1, Party: Party{Session: 1, Trader: 1, Algorithm: 1, Client: 1}},
	} {
		c.Who = 7
		if why := l.Change(&c); why != None {
			t.Fatalf("%+v: %v", c, why)
		}
	}
	return l
}

// busy returns an instance with something of everything.
func busy(t testing.TB) *Limits {
	f := &flow{draw: rand.New(rand.NewPCG(9, 5)).IntN}
	l := newFlow(t)
	for _, c := range f.setup() {
		l.Change(&c)
	}
	for i := 0; i < 60 && (l.Open() < 3 || len(l.kills) == 0 || l.held == 0); i++ {
		f.run(t, 10, func(op *Op, c *Change) Reason {
			if c != nil {
				return l.Change(c)
			}
			return l.Apply(op)
		})
	}
	if l.Open() < 3 || len(l.kills) == 0 || l.held == 0 {
		t.Fatalf("%d orders, %d kills, %d recent orders, want some of each", l.Open(), len(l.kills), l.held)
	}
	return l
}

// TestSnapshotDamaged: a snapshot with one bit changed anywhere, or without its end, is
// refused.
func TestSnapshotDamaged(t *testing.T) {
	parts := snapshot(busy(t))
	if len(parts) != 1 {
		t.Fatalf("%d parts, want 1", len(parts))
	}
	for i := range 8 * len(parts[0]) {
		damaged := append([]byte(nil), parts[0]...)
		damaged[i/8] ^= 1 << (i % 8)
		if restore(newFlow(t), [][]byte{damaged}) == nil {
			t.Errorf("bit %d of byte %d of %d changed: restored", i%8, i/8, len(damaged))
		}
	}
	for n := range len(parts[0]) {
		if done, _ := NewRestorer(newFlow(t)).Add(parts[0][:n]); done {
			t.Errorf("the first %d bytes of %d: restored", n, len(parts[0]))
		}
	}
}

// TestSnapshotOrder: two recent orders that changed places are refused: the oldest is
// forgotten first.
func TestSnapshotOrder(t *testing.T) {
	l := newAs(t, flowConfig)
	l.Change(&Change{Kind: SetProfile, N: 1, Who: 7, Rules: Rules{DuplicateWindow: second}})
	for i := range uint64(2) {
		if why := l.Apply(&Op{Kind: Enter, ID: i + 1, Party: 1, Side: Buy, Price: 1, Qty: 1 + int64(i)}); why != None {
			t.Fatal(why)
		}
	}
	part := snapshot(l)[0]
	if err := restore(newFlow(t), [][]byte{part}); err != nil {
		t.Fatal(err)
	}
	size := 8 + 8*itemWords[itemRecent]
	at := 0
	for le.Uint64(part[at:]) != itemRecent {
		at += 8 + 8*itemWords[le.Uint64(part[at:])]
	}
	swapped := append([]byte(nil), part...)
	copy(swapped[at:], part[at+size:at+2*size])
	copy(swapped[at+size:], part[at:at+size])
	if restore(newFlow(t), [][]byte{swapped}) == nil {
		t.Error("recent orders in another order: restored")
	}
}

// FuzzRestore: whatever the bytes are, Add reports an error or leaves an instance that
// works.
func FuzzRestore(f *testing.F) {
	for _, part := range snapshot(busy(f)) {
		f.Add(part)
	}
	f.Fuzz(func(t *testing.T, part []byte) {
		l := newFlow(t)
		if _, err := NewRestorer(l).Add(part); err != nil {
			return
		}
		if l.Digest() != l.Recount() {
			t.Fatalf("digest %x, recount %x", l.Digest(), l.Recount())
		}
		flow := &flow{draw: rand.New(rand.NewPCG(3, 5)).IntN}
		flow.run(t, 100, func(op *Op, c *Change) Reason {
			if c != nil {
				return l.Change(c)
			}
			return l.Apply(op)
		})
	})
}
