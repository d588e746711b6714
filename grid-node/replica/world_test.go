package replica_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A world is a whole partition in one goroutine: replicas, a network, an arbiter, clients
// and a clock, all of them driven by the test. There is no other input, so every run of a
// script or a seed is the same.

const (
	ms        = int64(time.Millisecond)
	partition = wire.PartitionID(1)
	wallStart = int64(1195137000) * int64(time.Second)
)

type world struct {
	tb     testing.TB
	opt    worldOptions
	clock  int64
	nodes  []*node
	net    []message
	arb    arbiterModel
	faults faults
	trace  strings.Builder
	quiet  bool // no trace
	// observer sees every reply frame to a client; nil traces them.
	observer func(conn uint64, frame []byte)
	// committed is the hash of every entry that any replica ever committed.
	committed map[uint64]uint64
	lineage   uint64 // of committed
	older     string // a pod whose release does not know FIX sessions, nor functions in the log
	before50  string // a pod whose processes that start do not know FIX 5.0 SP2
	posts     string // functions that processes that start are given, see scriptPosts
}

type worldOptions struct {
	replicas  int
	nodes     int      // 0: as many as replicas
	pods      []string // that the record names
	minInSync int
	limits    replica.Limits
	timing    replica.Timing
	retention replica.Retention
	memory    int64
	leases    bool
	proved    bool     // members report with every acknowledgement that they reach the arbiter
	outside   []string // names of the outside readers, if any
	rest      bool     // idle replicas skip ticks
	standby   bool     // the partition is claimed as a standby
	posts     string   // functions that every copy calls, see scriptPosts
	functions bool     // pods have functions, see scriptDecider
	computes  bool     // pods have a region and functions that clients call, see scriptComputer
	matches   bool     // the partition matches one instrument, X
	rests     int      // orders that may rest; 16
	before50  string   // a pod whose first process does not know FIX 5.0 SP2
}

// node is a pod: its replica is replaced when it restarts.
type node struct {
	w       *world
	pod     string
	address string
	starts  uint64
	r       *replica.Replica
	st      *store.Store
	out     replica.Outbox
	vitals  *replica.Vitals // driven by the process's second thread
	beatAt  int64
	self    replica.Member
	up      bool
	paused  bool            // the process is suspended
	stalled bool            // its loop hangs, its liveness thread does not
	inbox   []replica.Event // of a paused or stalled loop
	vinbox  []func()        // of a paused liveness thread
	commits uint64
	drained bool
}

type message struct {
	from, to string // addresses
	frame    []byte
	liveness bool // on a connection of the liveness threads
}

func newWorld(tb testing.TB, opt worldOptions) *world {
	w := &world{tb: tb, opt: opt, posts: opt.posts, before50: opt.before50, clock: int64(time.Second)}
	w.arb.init(w)
	w.arb.spec.Replicas, w.arb.spec.Pods = 0, opt.pods
	if len(opt.pods) > 0 {
		w.arb.spec.Replicas = opt.replicas
	}
	if w.arb.spec.WantStandby = opt.standby; opt.standby {
		w.arb.spec.Source = "grid orders-a"
	}
	for i := range max(opt.nodes, opt.replicas) {
		pod := string(rune('a' + i))
		n := &node{w: w, pod: pod, address: "10.0.0." + string(rune('1'+i)) + ":7400"}
		w.nodes = append(w.nodes, n)
		n.start()
	}
	tb.Cleanup(func() {
		for _, n := range w.nodes {
			if n.st != nil {
				n.st.Close()
			}
		}
	})
	return w
}

// start makes an empty replica with a new boot id: a1, a2, … in traces.
func (n *node) start() {
	n.starts++
	self, err := replica.NewMember(wire.FormatMemberID(n.pod, n.boot(n.starts)), n.address)
	if err != nil {
		n.w.tb.Fatal(err)
	}
	if n.st != nil {
		n.st.Close()
	}
	n.st, err = store.New(store.Options{Limit: n.w.opt.memory, Block: 4096})
	if err != nil {
		n.w.tb.Fatal(err)
	}
	n.out.Reset() // pending actions of the previous process
	n.self, n.up, n.paused, n.stalled, n.inbox, n.vinbox, n.drained, n.commits = self, true, false, false, nil, nil, false, 0
	o := replica.Options{
		Partition: partition, Self: self, Store: n.st, Retention: n.w.opt.retention, Limits: n.w.opt.limits,
		Replicas: n.w.opt.replicas, MinInSync: n.w.opt.minInSync, Preferred: n.pod == "a", Timing: n.w.opt.timing, Readers: n.w.opt.outside, Outside: n.w.opt.outside,
	}
	if n.w.opt.leases {
		o.LeaseClock = func() int64 { return n.w.clock }
	}
	o.Vitals, o.Rest = replica.NewVitals(self, partition, o.Timing), n.w.opt.rest
	n.vitals = o.Vitals
	scriptComputes(n.w.opt.computes, &o)
	if n.w.opt.functions {
		o.Pre = &scriptDecider{n: n}
	}
	o.Functions = scriptPosts(n.w.posts)
	if n.w.opt.matches {
		o.Execution = &replica.Execution{Orders: max(16, n.w.opt.rests), Pages: 16, Books: 1, Work: 4, Instruments: []machine.Instrument{
			{Instrument: match.Instrument{Low: 10000, High: 11000, Tick: 25, Lot: 1, Ref: 10425}, Symbol: "IBM", PriceDigits: 2, State: match.Open}}}
	}
	if n.pod == n.w.before50 {
		o.Known = wire.Features &^ wire.FeatureFix50
	}
	if n.r, err = replica.New(o); err != nil {
		n.w.tb.Fatal(err)
	}
	n.w.arb.get(n)
}

// boot is the boot id of the pod's i-th process.
func (n *node) boot(i uint64) uint64 { return uint64(n.pod[0]-'a'+0xa)<<8 | i }

func (w *world) node(pod string) *node {
	for _, n := range w.nodes {
		if n.pod == pod {
			return n
		}
	}
	w.tb.Fatalf("no node %q", pod)
	return nil
}

func (w *world) byAddress(address string) *node {
	for _, n := range w.nodes {
		if n.address == address {
			return n
		}
	}
	return nil
}

func (w *world) now() replica.Time {
	return replica.Time{Mono: w.clock, Wall: wallStart + w.clock}
}

func (w *world) logf(format string, args ...any) {
	if !w.quiet {
		fmt.Fprintf(&w.trace, format+"\n", args...)
	}
}

// step gives the node one event, and then a flush, as one wake-up would.
func (n *node) step(ev replica.Event) {
	if !n.up {
		return
	}
	if n.paused || n.stalled {
		ev.Frame = append([]byte(nil), ev.Frame...)
		n.inbox = append(n.inbox, ev)
		return
	}
	n.r.Step(n.w.now(), &ev, &n.out)
	n.r.Step(n.w.now(), &replica.Event{Kind: replica.EventFlush}, &n.out)
	n.act()
}

// act executes the replica's actions.
func (n *node) act() {
	restart := false
	for i := range n.out.Actions {
		a := &n.out.Actions[i]
		switch a.Kind {
		case replica.ActionReply:
			n.w.reply(n, a.Conn, join(n.out.Head(a), a.Tail))
		case replica.ActionSend:
			n.w.send(n, a.Address, join(n.out.Head(a), a.Tail), false)
		case replica.ActionPropose:
			n.w.arb.propose(n, a.Config)
		case replica.ActionReadConfig:
			n.w.arb.get(n)
		case replica.ActionCommitted:
			n.checkCommitted(a.Seq)
		case replica.ActionAlarm:
			n.w.logf("%s ALARM %s: %s", n.name(), a.Alarm, n.w.short(a.Text))
			if a.Alarm == replica.AlarmInvariant {
				n.w.tb.Errorf("%s: %s", n.name(), a.Text)
			}
		case replica.ActionCloseConn:
			n.w.logf("%s closes conn %d: %s", n.name(), a.Conn, a.Text)
		case replica.ActionDrained:
			n.drained = true
			n.w.logf("%s drained", n.name())
		case replica.ActionStatus:
			n.w.logf("%s is %s", n.name(), n.statusText())
		case replica.ActionRestart:
			restart = true
			n.w.logf("%s RESTART: %s", n.name(), n.w.short(a.Text))
		}
	}
	n.out.Reset()
	if restart {
		n.start() // the outbox was executed: a process exits after that
	}
}

// checkCommitted compares every commit with all earlier ones: what one replica committed,
// no other may ever commit differently (I2, I5, I6).
func (n *node) checkCommitted(to uint64) {
	if c := n.r.Status().Config; c.Lineage > n.w.lineage { // the loss of earlier entries is accepted
		n.w.committed, n.w.lineage = map[uint64]uint64{}, c.Lineage
	}
	base, _ := n.st.Base() // a snapshot is compared by its last entry
	for seq := max(n.commits+1, base); seq <= to; seq++ {
		hash, known := n.w.committed[seq]
		if known && hash != n.st.HashAt(seq) {
			n.w.tb.Errorf("%s commits entry %d with hash %016x, it was committed with %016x", n.name(), seq, n.st.HashAt(seq), hash)
		}
		n.w.committed[seq] = n.st.HashAt(seq)
	}
	n.commits = to
}

func join(head, tail []byte) []byte {
	return append(append(make([]byte, 0, len(head)+len(tail)), head...), tail...)
}

func (n *node) name() string { return fmt.Sprintf("%s%d", n.pod, n.starts) }

func (n *node) statusText() string {
	s := n.r.Status()
	text := s.Role.String()
	if s.Suspended {
		text += " (suspended)"
	}
	if s.HandingOver {
		text += " (handing over)"
	}
	if s.Draining {
		text += " (draining)"
	}
	if s.Config != nil {
		text += ", " + n.w.configText(s.Config)
	}
	return text
}

func (w *world) configText(c *replica.Config) string {
	if c.Epoch == 0 {
		return "epoch 0"
	}
	return w.short(c.String())
}

// short writes "a/0000000000000a01" as "a1" and drops the partition.
func (w *world) short(s string) string {
	s = strings.TrimPrefix(s, partition.String()+": ")
	for _, n := range w.nodes {
		for i := uint64(1); i <= n.starts; i++ {
			s = strings.ReplaceAll(s, wire.FormatMemberID(n.pod, n.boot(i)), fmt.Sprintf("%s%d", n.pod, i))
			s = strings.ReplaceAll(s, wire.FormatBootID(n.boot(i)), fmt.Sprintf("%s%d", n.pod, i))
		}
	}
	return s
}

// send puts a frame on the network, unless a fault drops it.
func (w *world) send(from *node, to string, frame []byte, liveness bool) {
	if w.opt.proved && wire.FrameType(frame) == wire.TypePrepareAck {
		frame[5] |= wire.FlagReachesArbiter
	}
	if wire.FrameType(frame) == wire.TypePrepareAck && from.pod == w.older {
		frame[5] &^= wire.FlagFix | wire.FlagGuard | wire.FlagFunctions | wire.FlagOtherFunctions
	}
	if wire.FrameType(frame) == wire.TypeFeatures && from.pod == w.older {
		return
	}
	m := message{from: from.address, to: to, frame: frame, liveness: liveness}
	w.faults.copies(w, &m)
	if w.faults.drops(w, &m) {
		if w.tracing(&m) {
			w.logf("%s   LOST", w.frameText(&m))
		}
		return
	}
	w.net = append(w.net, m)
}

// reply gives a client its frames.
func (w *world) reply(from *node, conn uint64, frames []byte) {
	for len(frames) > 0 {
		frame, rest, err := wire.Split(frames)
		if err != nil || frame == nil {
			w.tb.Fatalf("%s sent client %d a broken frame: %v", from.name(), conn, err)
		}
		if w.observer != nil {
			w.observer(conn, frame)
		} else {
			w.logf("%s -> client %d: %s", from.name(), conn, replyText(frame))
		}
		frames = rest
	}
}

// deliver delivers everything in flight, in the order it was sent, until nothing is left.
func (w *world) deliver() {
	for i := 0; len(w.net) > 0 || w.arb.busy(); i++ {
		if i > 100000 {
			w.tb.Fatal("the replicas never become quiet")
		}
		if len(w.net) == 0 {
			w.arb.answerNext()
			continue
		}
		m := w.net[0]
		w.net = w.net[1:]
		w.arrive(&m)
	}
}

// arrive delivers one message.
func (w *world) arrive(m *message) {
	n := w.byAddress(m.to)
	if n == nil || !n.up {
		return
	}
	if w.tracing(m) {
		w.logf("%s", w.frameText(m))
	}
	if m.liveness {
		n.hear(m.from, m.frame)
		return
	}
	n.step(replica.Event{Kind: replica.EventPeerFrame, Frame: m.frame})
}

// tick advances the clock in steps of 10 ms and delivers everything.
func (w *world) tick(d int64) {
	for end := w.clock + d; w.clock < end; {
		w.clock += min(10*ms, end-w.clock)
		for _, n := range w.nodes {
			if !n.paused && !n.stalled {
				n.step(replica.Event{Kind: replica.EventTick})
			}
		}
		for _, n := range w.nodes {
			n.beat()
		}
		w.deliver()
	}
}

// crash ends a process; the others see their connections reset.
func (w *world) crash(n *node, reset bool) {
	n.up = false
	kept := w.net[:0]
	for _, m := range w.net {
		if m.from != n.address && m.to != n.address {
			kept = append(kept, m)
		}
	}
	w.net = kept
	if reset {
		for _, o := range w.nodes {
			if o != n {
				o.step(replica.Event{Kind: replica.EventPeerDown, Address: n.address})
			}
		}
	}
}
