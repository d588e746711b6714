package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// decides gives a fifth of the worlds a function that decides on orders before they are
// entries. Started so that no seed in testdata/seeds.txt became another world.
func decides(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, decidesBegin)); rng.IntN(5) == 0 {
		p.decides = rng
	}
}

const decidesBegin = 0x646563690006a7ce

// module is what the administrator deployed; a pod may be given another one by mistake,
// which the process must not load.
const (
	module      = "m1"
	wrongModule = "m2"
)

// stampTag has what a decider adds to an order: who decided, and by which module.
const stampTag = 10001

// decider is a function with memory, as users write them. It refuses some orders for what
// they are, all processes the same. It refuses others for what it happened to count, which
// no other process would. It leaves a quarter as they are and stamps the rest.
type decider struct {
	boot   uint64
	module string
	calls  uint64
	last   []byte
	order  order.Order
}

// mix is a hash of a ClOrdID and numbers.
func mix(key string, more ...uint64) uint64 {
	h := order.HashClOrdID([]byte(key))
	for _, v := range more {
		h = (h ^ v) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// neverAccepted reports whether every process refuses an order with this ClOrdID.
func neverAccepted(key string) bool { return mix(key, 1)%25 == 0 }

// unstamped reports whether an order with this ClOrdID stays as it is.
func unstamped(key string) bool { return mix(key, 2)%4 == 0 }

func (d *decider) Decide(_ int64, msg []byte, f *order.Order, to *replica.Decision) {
	*to = d.decide(msg, f)
}

func (d *decider) decide(msg []byte, f *order.Order) replica.Decision {
	d.calls++
	key := string(msg[f.ClOrdIDOff:][:f.ClOrdIDLen])
	switch {
	case neverAccepted(key):
		return replica.Decision{Reason: 3, Text: []byte("never")}
	case mix(key, 3, d.boot, d.calls)%20 == 0:
		return replica.Decision{Reason: 99, Text: []byte("not now")}
	case unstamped(key):
		return replica.Decision{Message: msg, Fields: &f.Fields}
	}
	d.last = stampedMessage(msg, d.boot, d.module)
	if err := order.Parse(d.last, &d.order); err != nil {
		panic(err) // a mistake in this package
	}
	return replica.Decision{Message: d.last, Fields: &d.order.Fields}
}

// stampedMessage is a message as a process decides it: with one more field at its end.
func stampedMessage(msg []byte, boot uint64, module string) []byte {
	begin, rest, _ := bytes.Cut(msg, []byte("\x0135="))
	begin, _, _ = bytes.Cut(begin, []byte("\x01"))
	body := append([]byte("35="), rest[:len(rest)-len("10=000\x01")]...)
	body = append(body, stamp(boot, module)...)
	b := fmt.Appendf(nil, "%s\x019=%d\x01%s10=000\x01", begin, len(body), body)
	if !order.Seal(b) {
		panic("message has no trailer")
	}
	return b
}

func stamp(boot uint64, module string) string {
	return fmt.Sprintf("%d=%x.%s\x01", stampTag, boot, module)
}

// newDecider returns that of a process, nil in a world without functions.
func (w *world) newDecider(p *process) replica.Decider {
	if w.profile.decides == nil {
		return nil
	}
	d := &decider{boot: p.self.Boot, module: module}
	if p.pod.given != "" {
		d.module, p.pod.given = p.pod.given, ""
	}
	return d
}

// misdeployed reports whether a process that is about to start is given another module than
// the one the administrator named. It compares digests, and does not start until it has the
// right one.
func (w *world) misdeployed(p *pod) bool {
	rng := w.profile.decides
	if rng == nil || w.healing || w.phase != phaseChaos || rng.IntN(8) != 0 {
		return false
	}
	if operatorMutant(mutModuleUnchecked) {
		p.given = wrongModule
		return false
	}
	w.faults.hit(faultWrongModule)
	w.logf("%s is given another module, and does not start", p.name)
	w.after(rng.Int64N(300*millisecond), func() { w.restart(p) })
	return true
}

// checkDecided: a committed order is what the primary of its epoch decided, once, by the
// module that was deployed; what every primary refuses is not in the log.
func (w *world) checkDecided(p *process, e *order.Entry, entry []byte) {
	if w.profile.decides == nil {
		return
	}
	key, payload := string(order.ClOrdID(entry)), order.Message(entry)
	if neverAccepted(key) {
		w.violation("decided", "entry %d is order %s, which is to be refused", e.Seq, key)
		return
	}
	if unstamped(key) {
		if w.profile.match == nil && !bytes.Equal(payload, w.fixOrder(key)) {
			w.violation("decided", "entry %d is order %s, which was to stay as it is: %q", e.Seq, key, payload)
		}
		return
	}
	committers := w.check.committers[w.life(p.status.Config)]
	if int(e.Epoch) >= len(committers) || committers[e.Epoch] == 0 {
		return // of an epoch before a restore
	}
	boot := committers[e.Epoch]
	right := bytes.Equal(payload, stampedMessage(w.fixOrder(key), boot, module))
	if w.profile.match != nil { // messages of several kinds
		right = bytes.Contains(payload, []byte("\x01"+stamp(boot, module)))
	}
	if !right {
		w.violation("decided", "entry %d of epoch %d is order %s, not as %s decides it by %s: %q", e.Seq, e.Epoch, key, w.name(boot), module, payload)
	}
}

// decidedAgainst handles a refusal by a function: it is final.
func (c *client) decidedAgainst(m *wire.Reject, lineage uint64) {
	w := c.w
	if m.Code == wire.CodeFunctionRefused && w.profile.decides == nil || m.Code == wire.CodeLimitRefused && w.profile.guards == nil {
		w.violation("wire", "client %d is refused by a function or a limit, and there is none: %s", c.id, m.Text)
		return
	}
	if a, ok := c.again[m.RequestID]; ok && a.lineage == lineage {
		w.violation("I7", "client %d sends order %s again, which was acknowledged at %d, and a function or a limit refuses it", c.id, a.key, a.seq)
		return
	}
	if r := c.take(m.RequestID); r != nil {
		c.given[m.RequestID] = true
		w.stats.Decided++
		w.history.ops[r.op].decided = true
		w.refused(c, r)
	}
}
