package replica_test

import (
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// feeding is a primary with a log and a learner that joins. Frames in flight are kept by
// connection: data and bulk.
type feeding struct {
	tb         testing.TB
	clock      int64
	a, l       *replica.Replica
	stores     [2]*store.Store
	aout, lout replica.Outbox
	data, bulk [][]byte // from the primary, not delivered
	answers    [][]byte // from the learner
	cfg        *replica.Config

	seq      uint64
	flushMax int // most bytes of entries one flush gave to bulk
	bulkSent int
	acked    int
	alarms   []string
}

func newFeeding(tb testing.TB, orders int, limits replica.Limits) *feeding {
	f := &feeding{tb: tb, clock: 1e9}
	a, _ := replica.NewMember("a/000000000000000a", "10.0.0.1:7400")
	l, _ := replica.NewMember("b/000000000000000b", "10.0.0.2:7400")
	f.cfg = &replica.Config{Epoch: 1, Lineage: 1, ChangeID: "x", Version: "1", Primary: a, InSync: []replica.Member{a}}
	for i, r := range []**replica.Replica{&f.a, &f.l} {
		st, err := store.New(store.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(st.Close)
		f.stores[i] = st
		if *r, err = replica.New(replica.Options{Partition: partition, Self: []replica.Member{a, l}[i], Store: st, Limits: limits}); err != nil {
			tb.Fatal(err)
		}
	}
	f.stepA(replica.Event{Kind: replica.EventConfig, Config: f.cfg, Fresh: true})
	f.stepA(replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: wire.AppendOpenSession(nil, partition, &wire.OpenSession{IDHi: 1, Attempt: 1})})
	for range orders {
		f.submit()
	}
	if f.acked != orders {
		tb.Fatalf("%d of %d orders acknowledged", f.acked, orders)
	}
	f.stepL(replica.Event{Kind: replica.EventConfig, Config: f.cfg, Fresh: true})
	return f
}

func (f *feeding) submit() {
	f.seq++
	f.stepA(replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: wire.AppendSubmit(nil, partition, &wire.Submit{
		Generation: 1, ClientSeq: f.seq, Payload: fixOrder(fmt.Sprintf("f-%d", f.seq), 300)})})
}

// stepA is one wake-up of the primary.
func (f *feeding) stepA(ev replica.Event) {
	now := replica.Time{Mono: f.clock, Wall: wallStart}
	f.a.Step(now, &ev, &f.aout)
	f.a.Step(now, &replica.Event{Kind: replica.EventFlush}, &f.aout)
	bytes := 0
	for i := range f.aout.Actions {
		a := &f.aout.Actions[i]
		frame := append(append([]byte(nil), f.aout.Head(a)...), a.Tail...)
		switch {
		case a.Kind == replica.ActionReply && wire.FrameType(frame) == wire.TypeAck:
			f.acked += len(frame) / wire.AckSize
		case a.Kind == replica.ActionAlarm:
			f.alarms = append(f.alarms, string(a.Alarm))
		case a.Kind == replica.ActionPropose:
			done := *a.Config
			done.Version = "2"
			defer f.stepA(replica.Event{Kind: replica.EventCASResult, ChangeID: a.Config.ChangeID, Outcome: replica.OutcomeOK, Config: &done})
		case a.Kind == replica.ActionSend && a.Bulk:
			f.bulk = append(f.bulk, frame)
			bytes += len(a.Tail)
		case a.Kind == replica.ActionSend:
			f.data = append(f.data, frame)
		}
	}
	f.flushMax, f.bulkSent = max(f.flushMax, bytes), f.bulkSent+bytes
	f.aout.Reset()
}

func (f *feeding) stepL(ev replica.Event) {
	now := replica.Time{Mono: f.clock, Wall: wallStart}
	f.l.Step(now, &ev, &f.lout)
	f.l.Step(now, &replica.Event{Kind: replica.EventFlush}, &f.lout)
	for i := range f.lout.Actions {
		switch a := &f.lout.Actions[i]; a.Kind {
		case replica.ActionSend:
			if a.Bulk {
				f.tb.Error("a learner sends bulk")
			}
			f.answers = append(f.answers, append([]byte(nil), f.lout.Head(a)...))
		case replica.ActionAlarm:
			f.alarms = append(f.alarms, string(a.Alarm))
		}
	}
	f.lout.Reset()
}

func (f *feeding) tick(ns int64) {
	f.clock += ns
	f.stepA(replica.Event{Kind: replica.EventTick})
	f.stepL(replica.Event{Kind: replica.EventTick})
}

// deliver delivers everything on these connections.
func (f *feeding) deliver(frames *[][]byte) {
	in := *frames
	*frames = nil
	for _, b := range in {
		f.stepL(replica.Event{Kind: replica.EventPeerFrame, Frame: b})
	}
}

func (f *feeding) answer() {
	in := f.answers
	f.answers = nil
	for _, b := range in {
		f.stepA(replica.Event{Kind: replica.EventPeerFrame, Frame: b})
	}
}

func (f *feeding) joined() bool {
	s := f.a.Status()
	return len(s.Config.InSync) == 2 && s.CommitSeq == s.LastSeq && f.l.Status().LastSeq == s.LastSeq
}

// A learner's log is fed in small parts beside the orders, and on a connection of its own:
// no entry is ever missed there although the two connections are not ordered against each
// other, and every order is acknowledged in its own wake-up until the learner is in the
// ack set.
func TestFeedDoesNotHoldOrdersUp(t *testing.T) {
	f := newFeeding(t, 20_000, replica.Limits{JoinBound: 64})
	loaded, beside := f.acked, 0
	for i := 0; !f.joined(); i++ {
		if i > 5000 {
			t.Fatalf("not joined: %+v, learner has %d", f.a.Status(), f.l.Status().LastSeq)
		}
		f.clock += 200_000
		if f.l.Status().LastSeq < 19_000 {
			before := f.acked
			f.submit()
			if beside++; f.acked != before+1 {
				t.Fatal("an order had to wait for a learner")
			}
		}
		// Data overtakes bulk, and bulk arrives in bursts.
		f.deliver(&f.data)
		if i%3 == 0 {
			f.deliver(&f.bulk)
		}
		f.answer()
		if i%50 == 0 {
			f.tick(0)
		}
	}
	if f.acked != loaded+beside || beside < 20 {
		t.Fatalf("%d of %d orders acknowledged while it joined, want all of 20 or more", f.acked-loaded, beside)
	}
	if f.flushMax > 64<<10 || f.bulkSent < 5<<20 {
		t.Fatalf("%d bytes fed, %d in one flush; want all of the log, and at most 64 KiB a flush", f.bulkSent, f.flushMax)
	}
	if c := f.a.Counters(); len(f.alarms) > 0 || c.PeerGaps+c.Resends+f.l.Counters().PeerGaps > 0 || c.LearnerBytes != uint64(f.bulkSent) {
		t.Fatalf("alarms %v, counters %+v", f.alarms, c)
	}
	if _, h := f.stores[0].Last(); h != f.stores[1].HashAt(f.a.Status().LastSeq) {
		t.Fatal("the logs differ")
	}
}

// A learner that does not read costs its window and nothing else.
func TestFeedOfALearnerThatStops(t *testing.T) {
	const window = 1 << 20
	f := newFeeding(t, 20_000, replica.Limits{LearnerBytes: window, JoinBound: 64})
	for range 10 { // joins, takes a little
		f.deliver(&f.data)
		f.deliver(&f.bulk)
		f.answer()
	}
	before, acked := f.bulkSent, f.acked
	for range 5 { // shorter than the resend time
		f.clock += 10 * ms
		for range 100 {
			f.submit()
		}
		f.deliver(&f.data) // it is alive, and acknowledges
	}
	if f.acked != acked+500 {
		t.Fatalf("%d of 500 orders acknowledged", f.acked-acked)
	}
	if n := f.bulkSent - before; n < window-(128<<10) || n > window+(64<<10) {
		t.Fatalf("%d bytes sent to a learner that does not acknowledge, want about %d", n, window)
	}
}

func TestFeedRate(t *testing.T) {
	const rate = 8 << 20
	f := newFeeding(t, 20_000, replica.Limits{LearnerRate: rate, JoinBound: 64})
	end := f.clock + 500*ms
	for f.clock < end {
		f.clock += 500_000
		f.deliver(&f.data)
		f.deliver(&f.bulk)
		f.answer()
		if f.clock%(10*ms) == 0 {
			f.tick(0)
		}
	}
	want := rate / 2
	if f.bulkSent < want*9/10 || f.bulkSent > want+want/10+(64<<10) {
		t.Fatalf("%d bytes fed in half a second at %d bytes a second", f.bulkSent, rate)
	}
}

// A learner counts for acknowledgements only when it has acknowledged what it was fed:
// otherwise data would overtake the feed, and orders would wait for it.
func TestLearnerIsSettledBeforeItCounts(t *testing.T) {
	// begin lets a learner join, and be fed a first part and, in another wake-up, a
	// second.
	begin := func(orders int) *feeding {
		f := newFeeding(t, orders, replica.Limits{JoinBound: 64})
		f.answer()
		f.deliver(&f.data)
		f.answer()
		f.tick(ms)
		if len(f.bulk) != 2 {
			t.Fatalf("%d parts fed, want 2", len(f.bulk))
		}
		f.stepL(replica.Event{Kind: replica.EventPeerFrame, Frame: f.bulk[0]})
		f.bulk = f.bulk[1:]
		return f
	}
	part := int(begin(1000).l.Status().LastSeq)
	f := begin(part + 20)
	f.answer() // closer than the bound, with the second part in flight
	before := f.acked
	f.submit()
	if f.acked != before+1 {
		t.Error("an order waits for a learner that is still being fed")
	}
	for range 20 {
		f.deliver(&f.bulk)
		f.deliver(&f.data)
		f.answer()
		f.tick(ms)
	}
	if !f.joined() {
		t.Errorf("not joined: %+v", f.a.Status())
	}
}

// A raised rate applies at once, regardless of the delay of the previous one.
func TestFeedRateRises(t *testing.T) {
	limits := replica.Limits{LearnerRate: 64 << 10, LearnerBytes: 4 << 20, LearnerBatch: 32 << 10, InFlightBytes: 1 << 20, PendingReadBytes: 1 << 20, JoinBound: 64}
	f := newFeeding(t, 20_000, limits)
	if n := f.a.Feeds(); n != 0 {
		t.Fatalf("%d learners before one joins", n)
	}
	wakeUps := func() {
		for range 20 {
			f.clock += 100_000
			f.deliver(&f.data)
			f.deliver(&f.bulk)
			f.answer()
			f.tick(0)
		}
	}
	wakeUps()
	if n := f.a.Feeds(); f.bulkSent == 0 || f.bulkSent > 128<<10 || f.flushMax > 32<<10 || n != 1 {
		t.Fatalf("%d bytes fed at 64 KiB a second to %d learners", f.bulkSent, n)
	}
	before := f.bulkSent
	limits.LearnerRate = 1 << 30
	f.a.SetShare(limits)
	wakeUps()
	if n := f.bulkSent - before; n < 1<<20 {
		t.Fatalf("%d bytes fed in 2 ms at 1 GiB a second", n)
	}
	for range 100 {
		wakeUps()
	}
	if n := f.a.Feeds(); !f.joined() || n != 0 {
		t.Fatalf("joined %t, and %d learners are fed", f.joined(), n)
	}
}
