package replica_test

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// pair is a primary and a backup wired back to back, without the world's bookkeeping, so
// that only Step is measured.
type pair struct {
	tb       testing.TB
	now      replica.Time
	a, b     *replica.Replica
	stores   [2]*store.Store
	ao, bo   replica.Outbox
	frame    []byte // Submit
	link     []byte // a frame in flight
	off, n   int    // of the ClOrdID's digits in frame
	seq      uint64
	acks     int
	bytesOut int
	frames   [256]int // carried, by type
	alarms   []replica.AlarmKind
	alter    func(frame []byte) // before it is carried; nil: not
}

const pairBatch = 64

func newPair(tb testing.TB, payload []byte, change ...func(*replica.Limits)) *pair {
	return newPairOf(tb, payload, func(o *replica.Options) {
		for _, f := range change {
			f(&o.Limits)
		}
	})
}

func newPairOf(tb testing.TB, payload []byte, change func(*replica.Options)) *pair {
	p := &pair{tb: tb, now: replica.Time{Mono: 1e9, Wall: wallStart}, link: make([]byte, 0, wire.MaxFrame)}
	members := make([]replica.Member, 2)
	for i := range members {
		members[i], _ = replica.NewMember(wire.FormatMemberID(string(rune('a'+i)), uint64(i+1)), "10.0.0.1:"+fmt.Sprint(7400+i))
	}
	cfg := &replica.Config{Epoch: 1, Lineage: 1, ChangeID: "x", Primary: members[0], InSync: members}
	for i, r := range []**replica.Replica{&p.a, &p.b} {
		st, err := store.New(store.Options{Lends: 1 << 30})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(st.Close)
		p.stores[i] = st
		o := replica.Options{Partition: partition, Self: members[i], Store: st}
		change(&o)
		if *r, err = replica.New(o); err != nil {
			tb.Fatal(err)
		}
	}
	// Both learn of a configuration that has both in sync: the log is empty.
	p.b.Step(p.now, &replica.Event{Kind: replica.EventConfig, Config: cfg, Fresh: true}, &p.bo)
	p.a.Step(p.now, &replica.Event{Kind: replica.EventConfig, Config: cfg, Fresh: true}, &p.ao)
	p.exchange()
	p.a.Step(p.now, &replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: wire.AppendOpenSession(nil, partition, &wire.OpenSession{IDHi: 1, Attempt: 1})}, &p.ao)
	p.exchange()
	off, length, ok := order.Find(payload, 11)
	if !ok || p.a.Status().CommitSeq < 2 {
		tb.Fatalf("the pair does not stand: %+v", p.a.Status())
	}
	p.off, p.n = wire.SubmitFixed+off, length
	p.frame = wire.AppendSubmit(nil, partition, &wire.Submit{Generation: 1, ClientSeq: 1, Payload: payload})
	return p
}

// prefault provides the memory of that many orders ahead, as nodes do.
func (p *pair) prefault(orders int) {
	for _, st := range p.stores {
		for ahead := 8 << 20; ahead < orders*512+8<<20; ahead += 8 << 20 {
			st.Prefault(ahead)
		}
	}
}

// submit gives the primary one order with a new ClOrdID and a new clientSeq.
func (p *pair) submit() {
	p.seq++
	v := p.seq
	for i := p.off + p.n - 1; i >= p.off+p.n-8; i-- {
		p.frame[i] = byte('0' + v%10)
		v /= 10
	}
	order.Seal(p.frame[wire.SubmitFixed:])
	le64(p.frame[24:], p.seq)
	p.a.Step(p.now, &replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: p.frame}, &p.ao)
}

func le64(b []byte, v uint64) {
	for i := range 8 {
		b[i] = byte(v >> (8 * i))
	}
}

// exchange flushes both sides until nothing is in flight.
func (p *pair) exchange() {
	for {
		p.a.Step(p.now, &replica.Event{Kind: replica.EventFlush}, &p.ao)
		p.carry(&p.ao, p.b, &p.bo)
		p.b.Step(p.now, &replica.Event{Kind: replica.EventFlush}, &p.bo)
		if p.carry(&p.bo, p.a, &p.ao) == 0 {
			p.count()
			return
		}
	}
}

// carry copies frames to the other side, as sockets would.
func (p *pair) carry(from *replica.Outbox, to *replica.Replica, out *replica.Outbox) (n int) {
	for i := range from.Actions {
		a := &from.Actions[i]
		if a.Kind == replica.ActionAlarm {
			p.alarms = append(p.alarms, a.Alarm)
		}
		if a.Kind != replica.ActionSend {
			continue
		}
		p.link = append(append(p.link[:0], from.Head(a)...), a.Tail...)
		p.frames[wire.FrameType(p.link)]++
		if p.alter != nil {
			p.alter(p.link)
		}
		to.Step(p.now, &replica.Event{Kind: replica.EventPeerFrame, Frame: p.link}, out)
		n++
	}
	if from == &p.ao {
		p.count()
	} else {
		from.Reset()
	}
	return n
}

// count takes the replies out of the primary's outbox.
func (p *pair) count() {
	for i := range p.ao.Actions {
		if a := &p.ao.Actions[i]; a.Kind == replica.ActionReply {
			p.acks += len(p.ao.Head(a)) / wire.AckSize
			p.bytesOut += len(p.ao.Head(a))
		}
	}
	p.ao.Reset()
}

func seedOrder(tb testing.TB) []byte { return seedOf(tb, "fix44") }

func seedOf(tb testing.TB, version string) []byte {
	b, err := os.ReadFile("../order/testdata/order-305-" + version + ".txt")
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestHotPathDoesNotAllocate covers the whole path of an order on primary and backup, and
// a confirmed read.
func TestHotPathDoesNotAllocate(t *testing.T) {
	for _, version := range []string{"fix44", "fix50"} {
		t.Run(version, func(t *testing.T) { hotPath(t, seedOf(t, version)) })
	}
}

func hotPath(t *testing.T, payload []byte) {
	p := newPair(t, payload, func(l *replica.Limits) { l.DigestEvery = pairBatch })
	batch := func() {
		for range pairBatch {
			p.submit()
		}
		p.exchange()
		p.now.Mono += 1000
	}
	for range 200 { // grow the outboxes and the session's ring
		batch()
	}
	p.acks = 0
	if n := testing.AllocsPerRun(200, batch); n != 0 {
		t.Errorf("%v allocations for %d orders, want 0", n, pairBatch)
	}
	if p.acks != 201*pairBatch {
		t.Errorf("%d orders acknowledged, want %d", p.acks, 201*pairBatch)
	}
	get := wire.AppendGet(nil, partition, &wire.Get{By: wire.ByID, Mode: wire.ModeConfirmed, Seq: 5})
	tick := func() {
		p.a.Step(p.now, &replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: get}, &p.ao)
		p.now.Mono += 20e6
		p.a.Step(p.now, &replica.Event{Kind: replica.EventTick}, &p.ao)
		p.b.Step(p.now, &replica.Event{Kind: replica.EventTick}, &p.bo)
		p.exchange()
	}
	tick()
	if n := testing.AllocsPerRun(200, tick); n != 0 {
		t.Errorf("%v allocations for a read, a tick and a beacon, want 0", n)
	}
}

// cpuTime returns what this process has used, of its own and of the kernel: on a busy machine the
// clock says more about others.
func cpuTime() (user, system time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}

// reportCPU ends a benchmark with its CPU time an order, that of the garbage collector included.
// The kernel's is mostly that of memory that is used for the first time, which nodes provide ahead.
func reportCPU(b *testing.B, user, system time.Duration) {
	b.StopTimer()
	u, s := cpuTime()
	b.ReportMetric(float64((u-user).Nanoseconds())/float64(b.N), "user-ns/op")
	b.ReportMetric(float64((s-system).Nanoseconds())/float64(b.N), "system-ns/op")
}

// BenchmarkSubmitToAck is an order's whole path through both replicas, without sockets:
// one at a time, and in wake-ups of 64.
func BenchmarkSubmitToAck(b *testing.B) {
	for _, batch := range []int{1, 64} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			p := newPair(b, seedOrder(b))
			p.prefault(b.N)
			b.ReportAllocs()
			b.ResetTimer()
			user, system := cpuTime()
			for i := range b.N {
				p.submit()
				if (i+1)%batch == 0 || i == b.N-1 {
					p.exchange()
				}
			}
			reportCPU(b, user, system)
			if p.acks < b.N {
				b.Fatalf("%d of %d acknowledged", p.acks, b.N)
			}
		})
	}
}

// BenchmarkGet is a confirmed read by ClOrdID, 64 a wake-up.
func BenchmarkGet(b *testing.B) {
	p := newPair(b, seedOrder(b))
	for range 64 {
		p.submit()
	}
	p.exchange()
	id := append([]byte(nil), p.frame[p.off:p.off+p.n]...)
	get := wire.AppendGet(nil, partition, &wire.Get{By: wire.ByClOrdID, Mode: wire.ModeConfirmed, Key: id})
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		p.a.Step(p.now, &replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: get}, &p.ao)
		if (i+1)%64 == 0 || i == b.N-1 {
			p.exchange()
		}
	}
}

// TestPrefetchIsAHint: a frame cut anywhere, or of any other kind, changes nothing.
func TestPrefetchIsAHint(t *testing.T) {
	p := newPair(t, seedOrder(t))
	p.submit()
	p.exchange()
	before, acks := p.a.Status(), p.acks
	for n := range len(p.frame) + 1 {
		p.a.Prefetch(p.frame[:n])
	}
	p.a.Prefetch(make([]byte, 4096))
	if after := p.a.Status(); after.LastSeq != before.LastSeq || p.acks != acks {
		t.Errorf("the log ends at %d, was %d; %d acknowledged", after.LastSeq, before.LastSeq, p.acks)
	}
	p.submit()
	p.exchange()
	if p.acks != acks+1 {
		t.Errorf("%d acknowledged, want %d", p.acks, acks+1)
	}
}

// TestHintOfAnother: a hint that belongs to another replica, or to another part of the
// message, hides no duplicate, and the order is found again under its ClOrdID.
func TestHintOfAnother(t *testing.T) {
	p := newPair(t, seedOrder(t))
	p.submit()
	p.exchange()
	step := func(h replica.Hint) {
		p.seq++
		le64(p.frame[24:], p.seq)
		p.a.Step(p.now, &replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: p.frame, Hint: h}, &p.ao)
	}
	other := newPair(t, seedOrder(t))
	other.submit()
	hints := map[string]replica.Hint{"none": {}, "its own": p.a.Prefetch(p.frame), "another replica's": other.a.Prefetch(p.frame)}
	if hints["its own"] == hints["none"] || hints["another replica's"] == hints["none"] {
		t.Fatal("a Submit like the last one has no hint")
	}
	for name, h := range hints {
		last := p.a.Status().LastSeq
		step(h)
		p.exchange()
		if p.a.Status().LastSeq != last {
			t.Errorf("hint %s: a ClOrdID that is there was stored again", name)
		}
	}
	at := p.off - wire.SubmitFixed
	moved := append([]byte(nil), p.frame[wire.SubmitFixed:]...)
	copy(moved[at-4:], "\x0158=") // the ClOrdID's place has a text, and the text's the ClOrdID
	text := bytes.LastIndex(moved, []byte("\x0158=")) + 4
	if text <= at {
		t.Fatal("no text behind the ClOrdID")
	}
	copy(moved[text-4:], "\x0111=")
	order.Seal(moved)
	h := p.a.Prefetch(p.frame) // the hint of the earlier content
	p.frame = wire.AppendSubmit(p.frame[:0], partition, &wire.Submit{Generation: 1, ClientSeq: 1, Payload: moved})
	for want := p.a.Status().LastSeq + 1; ; {
		step(h)
		p.exchange()
		if got := p.a.Status().LastSeq; got != want {
			t.Fatalf("the log ends at %d, want %d: the order once, and its duplicate refused", got, want)
		}
		if h == (replica.Hint{}) {
			break
		}
		h = replica.Hint{}
	}
}
