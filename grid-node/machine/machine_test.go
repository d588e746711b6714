package machine

import (
	"math/rand/v2"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// entries generates a log as a primary makes it: sessions opened and evicted, orders with
// clientSeqs skipped and filled in later, or far ahead, epochs that change, positions.
type entries struct {
	rnd   *rand.Rand
	seq   uint64
	epoch uint32
	last  map[uint32]uint64 // by session
	gen   map[uint32]uint64
	fix   bool // with FIX sessions
}

func newEntries(seed uint64) *entries {
	return &entries{rnd: rand.New(rand.NewPCG(seed, 1)), epoch: 1, last: map[uint32]uint64{}, gen: map[uint32]uint64{}}
}

// next is an entry that m's Check lets through.
func (g *entries) next(m *Machine) (*order.Entry, []byte) {
	g.seq++
	e := &order.Entry{Seq: g.seq, Epoch: g.epoch, Session: uint32(g.rnd.IntN(5))}
	payload := make([]byte, 16)
	if g.fix && g.rnd.IntN(3) == 0 {
		return g.nextFix(m, e)
	}
	switch n := g.rnd.IntN(100); {
	case n < 3:
		g.epoch += uint32(1 + g.rnd.IntN(2))
		e.Kind, e.Epoch, e.Session = order.KindNoop, g.epoch, 0
		le.PutUint64(payload, uint64(g.epoch/7))
	case n < 6:
		e.Kind, payload = order.KindTruncate, le.AppendUint64(nil, g.seq/2)
	case n < 10:
		e.Kind, payload = order.KindCursor, le.AppendUint64(nil, g.seq-1)
	case n < 14 || g.gen[e.Session] == 0:
		e.Session = min(e.Session, uint32(len(g.gen))) // slots are used in their order
		g.gen[e.Session]++
		g.last[e.Session] = 0
		e.Kind, e.ClientSeq = order.KindSessionOpen, g.gen[e.Session]
		le.PutUint64(payload, g.seq)
	default:
		e.Kind = order.KindOrder
		last := g.last[e.Session]
		e.ClientSeq = last + 1 + uint64(g.rnd.IntN(3))
		if g.rnd.IntN(50) == 0 {
			e.ClientSeq += 20
		}
		if back := max(1, last) - min(max(1, last)-1, uint64(g.rnd.IntN(9))); g.rnd.IntN(3) == 0 && m.Sessions.Applied(&m.Sessions.slots[e.Session], back) == 0 {
			e.ClientSeq = back
		}
		g.last[e.Session] = max(last, e.ClientSeq)
	}
	return e, payload
}

// nextFix makes an entry of FIX sessions: openings, on later days too, steps of several,
// refusals, removals, orders.
func (g *entries) nextFix(m *Machine, e *order.Entry) (*order.Entry, []byte) {
	x := &m.Fix
	e.Kind, e.Session = order.KindFix, 0
	slot := uint32(g.rnd.IntN(6))
	if int(slot) >= x.Slots() || !x.At(slot).Open || g.rnd.IntN(20) == 0 {
		slot = min(slot, uint32(x.Slots()))
		o := order.FixOpening{ID: [2]uint64{g.seq, 1}, Day: uint32(g.seq / 500), Form: uint8(g.rnd.IntN(3)), Flags: uint8(g.rnd.IntN(2))}
		if int(slot) < x.Slots() && x.At(slot).Open {
			o.ID, o.Day = x.At(slot).ID, max(o.Day, x.At(slot).Day)
		} else if int(slot) < x.Slots() {
			o.Day = max(o.Day, x.At(slot).Day+1)
		}
		r, o, _ := x.Opening(o, slot, 1)
		r.Body = o.Append(nil)
		return e, order.AppendFixRecord(nil, &r)
	}
	if g.rnd.IntN(3) == 0 {
		e.Kind, e.Flags, e.Session, e.ClientSeq = order.KindOrder, order.FixFlags(x.At(slot).Day), slot, x.At(slot).In+uint64(g.rnd.IntN(3))
		return e, make([]byte, 16)
	}
	var payload []byte
	for ; int(slot) < x.Slots(); slot++ {
		s := x.At(slot)
		r := order.FixRecord{Slot: slot, Attempt: s.Attempt, Generation: s.Generation, In: s.In + 1, Op: order.FixStep, Outs: uint8(1 + g.rnd.IntN(255))}
		if n := g.rnd.IntN(8); n == 0 {
			r.Op, r.Outs, r.In = order.FixRemove, 0, s.In
		} else if n == 1 {
			r.Op, r.Outs, r.Body = order.FixRefusal, 1, []byte("why")
		}
		if s.Open {
			payload = order.AppendFixRecord(payload, &r)
		}
	}
	return e, payload
}

// TestDigest compares the digest with a walk over the state, and with machines that
// reached the state by a snapshot at any earlier entry.
func TestDigest(t *testing.T) {
	for seed := range uint64(20) {
		g := newEntries(seed)
		g.fix = seed%2 == 1
		var live, restored Machine
		live.Begin(8, 0)
		restored.Begin(8, 0)
		for range 2000 {
			e, payload := g.next(&live)
			if err := live.Check(e, payload); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			live.Apply(e, payload)
			restored.Apply(e, payload)
			if live.Digest() != live.Recount() || live.Digest() != restored.Digest() {
				t.Fatalf("seed %d, entry %d (%s): digest %016x, of the state %016x, of the one that was restored %016x", seed, e.Seq, e.Kind, live.Digest(), live.Recount(), restored.Digest())
			}
			if g.rnd.IntN(40) == 0 {
				var err error
				base, err := decode(encode(&live), uint32(live.SnapshotSlots()), e.Seq)
				if err != nil {
					t.Fatalf("seed %d, entry %d: %v", seed, e.Seq, err)
				}
				restored = base.Clone()
			}
		}
	}
}

// TestDigestSeesEveryField changes one thing of a state at a time.
func TestDigestSeesEveryField(t *testing.T) {
	before := aState().Digest()
	for name, change := range map[string]func(*Machine){
		"sink":       func(m *Machine) { m.Cursors.Sink.To++ },
		"lineage":    func(m *Machine) { m.Orders.Lineage++ },
		"epoch":      func(m *Machine) { m.Orders.epochs[1].epoch++ },
		"epoch's":    func(m *Machine) { m.Orders.epochs[1].seq++ },
		"epochs":     func(m *Machine) { m.Orders.epochs = m.Orders.epochs[1:] },
		"generation": func(m *Machine) { m.Sessions.slots[0].Generation++ },
		"id":         func(m *Machine) { m.Sessions.slots[0].ID[1]++ },
		"last":       func(m *Machine) { m.Sessions.slots[0].Last++ },
		"touched":    func(m *Machine) { m.Sessions.slots[2].Touched++ },
		"reply":      func(m *Machine) { m.Sessions.slots[0].ring[3]++ },
		"no reply":   func(m *Machine) { m.Sessions.slots[0].ring[3] = 0 },
		"replies":    func(m *Machine) { r := m.Sessions.slots[0].ring; r[3], r[4] = r[4], r[3] },
		"slots":      func(m *Machine) { s := m.Sessions.slots; s[0], s[2] = s[2], s[0] },
		"open":       func(m *Machine) { m.Sessions.slots[2].Open = false },
	} {
		m := aState()
		change(m)
		if m.Recount() == before {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

// orders applies the orders of one session, one a call.
func orders() (next func()) {
	var m Machine
	m.Begin(512, 0)
	e := order.Entry{Kind: order.KindSessionOpen, Seq: 1, Epoch: 1, ClientSeq: 1}
	m.Apply(&e, make([]byte, 16))
	e.Kind = order.KindOrder
	return func() {
		e.Seq++
		e.ClientSeq++
		m.Apply(&e, nil)
	}
}

func TestApplyDoesNotAllocate(t *testing.T) {
	next := orders()
	next()
	if n := testing.AllocsPerRun(1000, next); n != 0 {
		t.Errorf("an order allocates %.1f times", n)
	}
}

func BenchmarkApply(b *testing.B) {
	next := orders()
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
}
