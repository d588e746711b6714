package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Functions of kind Compute (docs/adr/0069): two clients more of the region call functions
// that count. What a call decided has to follow from the value that the entries before it
// leave, and its reply is the same however often it is sent (I51).

// computes gives half of the worlds with regions functions. It uses its own random source,
// begun so that no seed in testdata/seeds.txt became another world.
func computes(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, computesBegin)); rng.IntN(2) == 0 && p.regions != nil {
		p.computes = rng
		p.limits.Sessions += 2 * invokers
	}
}

// invokes reports whether clients call functions: a world that is made of another one may have
// no regions.
func (p *profile) invokes() bool { return p.regions != nil && p.computes != nil }

const (
	computesBegin = 0x636f6d7075746506
	invokers      = 2
	counters      = 2 // keys
	countMost     = 40
)

// computer calls functions. It knows who it is and how often it was called: what it decides
// no other process would.
type computer struct {
	boot  uint64
	late  bool // it has the function late
	calls uint64
	value []byte
	reply []byte
}

func (w *world) newComputer(p *process) replica.Computer {
	if !w.profile.invokes() {
		return nil
	}
	return &computer{boot: p.self.Boot, late: hasLate(p)}
}

// hasLate reports whether a process has the function late: every other one of a pod, and of the
// first of the pods, as while pods are replaced by those that have one function more or less.
func hasLate(p *process) bool { return (p.self.Boot>>16^p.self.Boot)&1 == 0 }

// Names implements replica.Computer.
func (c *computer) Names() []string {
	if c.late {
		return []string{"count", "drop", "peek", "late"}
	}
	return []string{"count", "drop", "peek"}
}

// Compute implements replica.Computer: count adds one up to the number of the arguments and
// is its own error from there on, drop removes, peek and late read. Now and then a call fails.
func (c *computer) Compute(x *replica.Call) replica.Computed {
	c.calls++
	if mix(string(x.Key), 51, c.boot, c.calls)%20 == 0 {
		return replica.Computed{Kind: replica.CallFailed, Text: []byte("not now")}
	}
	c.reply = append(c.reply[:0], x.Value...)
	switch n := counted(string(x.Value)); string(x.Function) {
	case "count":
		if most, _ := strconv.Atoi(string(x.Args)); len(x.Args) > 0 && n >= most {
			return replica.Computed{Kind: replica.CallFailed, Code: uint32(n), Text: []byte("it has that many")}
		}
		c.value = append(c.value[:0], countOf(n+1, c.boot)...)
		c.reply = fmt.Appendf(c.reply[:0], "%d", n)
		return replica.Computed{Kind: replica.CallSet, Value: c.value, Reply: c.reply}
	case "drop":
		return replica.Computed{Kind: replica.CallRemoved, Reply: c.reply}
	case "late":
		if !c.late {
			return replica.Computed{}
		}
		return replica.Computed{Kind: replica.CallKept, Reply: c.reply}
	case "peek":
		return replica.Computed{Kind: replica.CallKept, Reply: c.reply}
	}
	return replica.Computed{}
}

// countOf is the value of a counter as a process writes it, counted the number in it.
func countOf(n int, boot uint64) string { return fmt.Sprintf("%d by %x", n, boot) }

func counted(value string) int {
	n, _ := strconv.Atoi(strings.SplitN(value, " ", 2)[0])
	return n
}

func (w *world) addInvokers() {
	if !w.profile.invokes() {
		return
	}
	for i := range invokers {
		c := &regionClient{w: w, rng: w.profile.computes, id: regionClients + i, reads: map[uint64]regionAsk{}, invokes: true}
		c.pod = w.pods[c.rng.IntN(len(w.pods))]
		c.newSession()
		w.regionClients = append(w.regionClients, c)
		c.schedule()
	}
}

// call sends a new call, or two.
func (c *regionClient) call() {
	r := c.newCall("count", c.key())
	switch n := c.rng.IntN(36); {
	case n < 8:
		r.Value = strconv.AppendInt(nil, 1+c.rng.Int64N(countMost), 10)
	case n < 10:
		r.function = "drop"
	case n < 14:
		r.function = "peek"
	case n == 14:
		r.function = "none"
	case n < 20:
		r.function = "late"
	case n < 26 && len(c.open) < regionOpen:
		// Right behind it one that fails, on the value that the first one makes and that no
		// other copy has yet.
		again := c.newCall("count", string(r.Key))
		again.Value = []byte("1")
		c.send(r)
		r = again
	}
	c.send(r)
}

// newCall is open from here on.
func (c *regionClient) newCall(function, key string) *regionRequest {
	r := &regionRequest{from: c.known(), function: function}
	r.ClientSeq, r.Key = c.next, []byte(key)
	c.next++
	c.open = append(c.open, r)
	return r
}

func (c *regionClient) sendCall(r *regionRequest, received uint64) {
	c.conn.send(wire.AppendInvoke(nil, partition, &wire.Invoke{
		Slot: c.slot, Generation: c.gen, ClientSeq: r.ClientSeq, Received: received,
		Region: []byte(regionName), Function: []byte(r.function), Key: r.Key, Args: r.Value,
	}))
}

// checkDecidedCall: an entry is what the primary of its epoch decides on the value that the
// entries before it leave (I51).
func (w *world) checkDecidedCall(p *process, t *timeline, e *order.Entry, o *order.RegionOp) {
	if !w.profile.invokes() {
		w.violation("I51", "entry %d is of a function, and there is none", e.Seq)
		return
	}
	before := t.region.at(string(o.Key), e.Seq)
	if before.gone {
		before.value = ""
	}
	if o.Op != order.RegionPut {
		if string(o.Reply) != before.value || o.Op == order.RegionRemove && before.gone {
			w.violation("I51", "entry %d, a %s of %s, answers %q; the value is %q (gone: %v)", e.Seq, o.Op, o.Key, o.Reply, before.value, before.gone)
		}
		return
	}
	n := counted(before.value)
	want := countOf(n+1, 0)
	want = want[:len(want)-1]
	if committers := w.check.committers[w.life(p.status.Config)]; int(e.Epoch) < len(committers) && committers[e.Epoch] != 0 {
		want = countOf(n+1, committers[e.Epoch])
	}
	if !strings.HasPrefix(string(o.Value), want) || string(o.Reply) != strconv.Itoa(n) || o.ExpireNs != 0 {
		w.violation("I51", "entry %d makes %q of %s and answers %q; the value before is %q, so %q is expected", e.Seq, o.Value, o.Key, o.Reply, before.value, want)
	}
}

// checkInvoked: a call is answered with the reply of its own entry (I51).
func (w *world) checkInvoked(c *regionClient, r *regionRequest, m *wire.Invoked) {
	did, known := w.timeline(1).region.ops[m.Seq]
	if !known || did.session != m.Slot || did.clientSeq != m.ClientSeq || did.key != string(r.Key) || !did.invoked || did.reply != string(m.Reply) ||
		(did.op == order.RegionPut) != (r.function == "count") {
		w.violation("I51", "client %d is told that call %d (%s of %s) is entry %d and answered %q; the entry is %+v (committed: %v)", c.id, m.ClientSeq, r.function, r.Key, m.Seq, m.Reply, did, known)
	}
}

// checkUnknown: a call is refused for good as one of a function that is not there only where no
// copy in sync has it (I51).
func (w *world) checkUnknown(p *process, frame []byte) {
	var m wire.Reject
	if err := wire.DecodeReject(frame, &m); err != nil || m.Code != wire.CodeFunctionUnknown || p.status.Config == nil || !strings.Contains(string(m.Text), "late") {
		return
	}
	for _, member := range p.status.Config.InSync {
		if o := w.incarnation(member.Boot); o != nil && hasLate(o) {
			w.violation("I51", "%s refuses call %d for good, and %s has the function: %s", p.name, m.RequestID, o.name, m.Text)
		}
	}
}

// checkCallFailed: the error of a function is one of a committed value (I51).
func (w *world) checkCallFailed(c *regionClient, r *regionRequest, m *wire.Reject) {
	if m.Detail == 0 {
		return // a fault
	}
	t := w.timeline(1)
	if !t.region.ever(string(r.Key), r.from, uint64(len(t.hashes)), func(s regionState) bool {
		return !s.gone && counted(s.value) == int(m.Detail)
	}) {
		w.violation("I51", "client %d is told that call %d on %s failed on the value %d; no committed state from entry %d to %d has it: %+v",
			c.id, m.RequestID, r.Key, m.Detail, r.from, len(t.hashes), t.region.history[string(r.Key)])
	}
}
