package replica_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// member is one replica with its vitals, without a world around it.
type member struct {
	tb    testing.TB
	self  replica.Member
	r     *replica.Replica
	v     *replica.Vitals
	out   replica.Outbox
	clock int64
}

func newMember(tb testing.TB, pod string, boot uint64, leases bool) *member {
	tb.Helper()
	m := &member{tb: tb, clock: 1e9}
	m.self, _ = replica.NewMember(wire.FormatMemberID(pod, boot), "10.0.0."+pod+":7400")
	st, err := store.New(store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(st.Close)
	m.v = replica.NewVitals(m.self, partition, replica.Timing{})
	o := replica.Options{Partition: partition, Self: m.self, Store: st, Vitals: m.v}
	if leases {
		o.LeaseClock = func() int64 { return m.clock }
	}
	if m.r, err = replica.New(o); err != nil {
		tb.Fatal(err)
	}
	return m
}

// step steps the replica at a time and flushes.
func (m *member) step(clock int64, ev replica.Event) {
	m.clock = clock
	m.out.Reset()
	m.r.Step(replica.Time{Mono: clock, Wall: wallStart}, &ev, &m.out)
	m.r.Step(replica.Time{Mono: clock, Wall: wallStart}, &replica.Event{Kind: replica.EventFlush}, &m.out)
}

// said is a row of a heartbeat or of the answer to one, with the send time of the
// heartbeat.
type said struct {
	sentNs int64
	row    wire.HeartbeatRow
}

// beat returns what the vitals send at a time.
func (m *member) beat(clock int64) (rows []said) {
	for _, b := range m.v.Beats(replica.Time{Mono: clock}, nil) {
		rows = append(rows, said{clock, b.HeartbeatRow})
	}
	return rows
}

// hear gives the vitals a row of a heartbeat and returns the answer, if any.
func (m *member) hear(clock int64, s said) (answers []said) {
	if row, ok := m.v.Hear(replica.Time{Mono: clock}, &s.row); ok {
		answers = []said{{s.sentNs, row}}
	}
	return answers
}

// answered gives the vitals the answer to their heartbeat.
func (m *member) answered(clock int64, s said) {
	m.v.Answered(replica.Time{Mono: clock}, s.sentNs, &s.row)
}

// twoMembers are a primary and a backup of epoch 2.
func twoMembers(tb testing.TB, leases bool) (a, b *member) {
	a, b = newMember(tb, "1", 0xa, leases), newMember(tb, "2", 0xb, leases)
	cfg := &replica.Config{Epoch: 2, Lineage: 1, ChangeID: "x", Primary: a.self, InSync: []replica.Member{a.self, b.self}}
	for _, m := range []*member{a, b} {
		m.step(1e9, replica.Event{Kind: replica.EventConfig, Config: cfg, Fresh: true})
	}
	return a, b
}

// An answer means that the sender is alive, and nothing else.
func TestVitalsAnswerNothingButLife(t *testing.T) {
	a, b := twoMembers(t, false)
	beats := a.beat(1e9 + 5)
	if len(beats) != 1 {
		t.Fatalf("%d rows, want one", len(beats))
	}
	answers := b.hear(1e9+20, beats[0])
	if len(answers) != 1 || answers[0].row.CommitSeq != 0 {
		t.Fatalf("answers %+v, want one that names no entry", answers)
	}
	before := a.r.Status() // a hostile position in an answer counts for nothing
	answers[0].row.CommitSeq = before.LastSeq
	a.answered(1e9+30, answers[0])
	a.step(1e9+30, replica.Event{Kind: replica.EventTick})
	if s := a.r.Status(); s.CommitSeq != before.CommitSeq {
		t.Fatalf("an answer committed entry %d", s.CommitSeq)
	}
	if n := a.v.Counters().Answered; n != 1 {
		t.Fatalf("%d answers were counted", n)
	}
}

// The vitals hear the primary while the replica, which has not ticked since, believes it
// to be silent: the take-over does not happen. And once it has happened, no beacon of the
// old epoch is answered.
func TestTakeOverAndAnswersExcludeEachOther(t *testing.T) {
	a, b := twoMembers(t, true)
	for now := int64(1e9); now < 2e9; now += 10 * ms {
		for _, f := range a.beat(now) {
			if len(b.hear(now, f)) != 1 {
				t.Fatal("no answer")
			}
		}
		a.step(now, replica.Event{Kind: replica.EventTick})
		b.step(now, replica.Event{Kind: replica.EventPeerDown, Address: a.self.Address}) // leased: waits for silence
		if b.r.Status().Role != replica.RoleBackup {
			t.Fatalf("took over at %d ms although the primary was heard", (now-1e9)/ms)
		}
	}
	for now := int64(2e9); b.r.Status().Role == replica.RoleBackup; now += 10 * ms {
		b.step(now, replica.Event{Kind: replica.EventTick})
		if now > 2e9+301*ms {
			t.Fatal("no take-over from a silent primary")
		}
	}
	beats := a.beat(2e9 + 400*ms)
	if len(beats) != 1 {
		t.Fatal("the old primary is silent too: the test is inconclusive")
	}
	if len(b.hear(2e9+400*ms, beats[0])) != 0 {
		t.Fatal("a heartbeat of the old epoch was answered after the take-over was proposed")
	}
}

// The same with both threads at once, for the race detector and for the ordering: every
// answer was given before the fence, and the silence counts from there.
func TestTakeOverRacesAnswers(t *testing.T) {
	for range 200 {
		a, b := twoMembers(t, true)
		beacon := a.beat(1e9 + 1)[0]
		const late = int64(1e9) + 400*1e6
		var wg sync.WaitGroup
		var answers int
		wg.Go(func() { answers = len(b.hear(late, beacon)) })
		wg.Go(func() {
			b.step(1e9+100*ms, replica.Event{Kind: replica.EventTick})
			b.step(late, replica.Event{Kind: replica.EventTick})
		})
		wg.Wait()
		fenced := b.r.Status().Role == replica.RoleFenced
		if answers == 1 && fenced {
			t.Fatal("answered and took over at the same moment")
		}
	}
}

// A lease counts from a beacon that was sent: an answer that claims a later one does not
// extend it.
func TestVitalsLeaseFromWhatWasSent(t *testing.T) {
	a, b := twoMembers(t, true)
	beacon := a.beat(1e9 + 1)[0]
	answer := b.hear(1e9+2, beacon)[0]
	answer.sentNs = 1 << 62
	a.answered(1e9+3, answer)
	// The noop of epoch 2 must be committed before any read.
	last := a.r.Status().LastSeq
	hash := storedHash(a, last)
	a.step(1e9+5, replica.Event{Kind: replica.EventPeerFrame, Frame: wire.AppendPrepareAck(nil, partition, &wire.PrepareAck{PeerHead: wire.PeerHead{Epoch: 2, From: b.self.Boot, To: a.self.Boot}, StoredSeq: last, Hash: hash})})
	if !a.leased(1e9 + 100*ms) {
		t.Fatal("no leased read within the lease")
	}
	a.step(1e9+150*ms, replica.Event{Kind: replica.EventPeerFrame, Frame: b.stored(2, a, last)}) // it is alive: no member is dropped
	if a.leased(1e9 + 201*ms) {
		t.Fatal("a leased read after the lease that the answered beacon gave")
	}
}

// A primary that does not know yet that its own change of the epoch succeeded continues
// with the lease of the previous epoch. A backup that knows, without a message in the new
// one, waits that lease out.
func TestLeaseOfAPrimaryThatLagsItsOwnEpoch(t *testing.T) {
	a, b := twoMembers(t, true)
	if len(b.hear(1e9+2, a.beat(1e9 + 1)[0])) != 1 {
		t.Fatal("no answer, no lease: the test is inconclusive")
	}
	c, _ := replica.NewMember(wire.FormatMemberID("3", 0xc), "10.0.0.3:7400")
	cfg := &replica.Config{Epoch: 3, Lineage: 1, ChangeID: "y", Primary: a.self, InSync: []replica.Member{a.self, b.self, c}}
	b.step(1e9+3, replica.Event{Kind: replica.EventConfig, Config: cfg})
	b.step(1e9+4, replica.Event{Kind: replica.EventPeerDown, Address: a.self.Address})
	b.step(1e9+200*ms, replica.Event{Kind: replica.EventTick})
	if s := b.r.Status(); s.Role != replica.RoleBackup || s.Config.Epoch != 3 {
		t.Fatalf("%s at epoch %d while the lease is alive", s.Role, s.Config.Epoch)
	}
}

// storedHash asks the replica for the hash of its last entry, as any client may.
func storedHash(m *member, seq uint64) uint64 {
	m.step(m.clock, replica.Event{Kind: replica.EventClientFrame, Conn: 9, Frame: wire.AppendReadLog(nil, partition, &wire.ReadLog{ReqID: 1, FromSeq: 1})})
	for i := range m.out.Actions {
		if a := &m.out.Actions[i]; a.Kind == replica.ActionReply {
			var c wire.LogChunk
			if err := wire.DecodeLogChunk(append(append([]byte(nil), m.out.Head(a)...), a.Tail...), &c); err == nil && c.LastSeq == seq {
				return c.LastHash
			}
		}
	}
	m.tb.Fatal("no log")
	return 0
}

func TestVitalsDropWhatIsNotForThem(t *testing.T) {
	for name, c := range map[string]struct {
		head   wire.PeerHead
		answer bool // to a backup, which has sent nothing
		reads  bool // a later epoch: the replica reads its configuration
	}{
		"older epoch":         {head: wire.PeerHead{Epoch: 1, From: 0xa, To: 0xb}},
		"later epoch":         {head: wire.PeerHead{Epoch: 3, From: 0xa, To: 0xb}, reads: true},
		"another sender":      {head: wire.PeerHead{Epoch: 2, From: 0xc, To: 0xb}},
		"another incarnation": {head: wire.PeerHead{Epoch: 2, From: 0xa, To: 0xbb}},
		"an answer":           {head: wire.PeerHead{Epoch: 2, From: 0xa, To: 0xb}, answer: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, b := twoMembers(t, false)
			b.step(1e9+500*ms, replica.Event{Kind: replica.EventTick}) // suspended: every clock is fresh
			row := said{1e9 + 500*ms, wire.HeartbeatRow{PeerHead: c.head, Partition: partition}}
			if c.answer {
				b.answered(1e9+500*ms, row)
			} else if n := len(b.hear(1e9+500*ms, row)); n != 0 {
				t.Fatalf("%d answers", n)
			}
			if got := b.v.Counters(); got.Stale != 1 || got.Heard != 0 || got.Answered != 0 {
				t.Fatalf("counted as %+v", got)
			}
			b.step(1e9+510*ms, replica.Event{Kind: replica.EventTick})
			reads := 0
			for i := range b.out.Actions {
				if b.out.Actions[i].Kind == replica.ActionReadConfig {
					reads++
				}
			}
			if (reads == 1) != c.reads {
				t.Fatalf("%d reads of the configuration", reads)
			}
		})
	}
}

func TestVitalsDoNotAllocate(t *testing.T) {
	a, b := twoMembers(t, false)
	now := int64(1e9) // 51 beats take less than the stall limit
	beats := make([]replica.Beat, 0, 4)
	n := testing.AllocsPerRun(50, func() {
		now += 20 * ms
		at := replica.Time{Mono: now}
		beats = a.v.Beats(at, beats[:0])
		if answer, ok := b.v.Hear(at, &beats[0].HeartbeatRow); ok {
			a.v.Answered(at, now, &answer)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for a heartbeat and its answer, want 0", n)
	}
	if c := a.v.Counters(); c.Answered != 51 {
		t.Fatalf("%+v: they were not answered", c)
	}
}

func TestNewRefusesForeignVitals(t *testing.T) {
	a, _ := twoMembers(t, false)
	other, _ := replica.NewMember("x/00000000000000ff", "10.0.0.9:7400")
	st, err := store.New(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := replica.New(replica.Options{Partition: partition, Self: other, Store: st, Vitals: a.v}); err == nil || !strings.Contains(err.Error(), "vitals belong to 1/") {
		t.Fatalf("got %v", err)
	}
}

// FuzzVitals gives the vitals of a primary and of a backup any Heartbeat and HeartbeatAck.
func FuzzVitals(f *testing.F) {
	of := func(t wire.Type, sentNs int64, row wire.HeartbeatRow) []byte {
		return wire.AppendHeartbeat(nil, t, &wire.Heartbeat{SentNs: sentNs, Rows: []wire.HeartbeatRow{row}})
	}
	f.Add(of(wire.TypeHeartbeat, -1, wire.HeartbeatRow{PeerHead: wire.PeerHead{Epoch: 2, From: 0xa, To: 0xb}, CommitSeq: 1 << 60}))
	f.Add(of(wire.TypeHeartbeatAck, 1<<62, wire.HeartbeatRow{PeerHead: wire.PeerHead{Epoch: 2, From: 0xb, To: 0xa}}))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < wire.HeaderSize {
			return
		}
		typ := wire.FrameType(frame)
		var h wire.Heartbeat
		if typ != wire.TypeHeartbeat && typ != wire.TypeHeartbeatAck || wire.DecodeHeartbeat(frame, typ, &h) != nil {
			return
		}
		a, b := twoMembers(t, true)
		a.beat(1e9 + 1)
		for _, m := range []*member{a, b} {
			for _, row := range h.Rows {
				if typ == wire.TypeHeartbeat {
					m.hear(1e9+2, said{h.SentNs, row})
				} else {
					m.answered(1e9+2, said{h.SentNs, row})
				}
			}
			m.step(1e9+3, replica.Event{Kind: replica.EventTick})
			if s := m.r.Status(); s.CommitSeq > s.LastSeq {
				t.Fatalf("committed %d of %d", s.CommitSeq, s.LastSeq)
			}
		}
	})
}
