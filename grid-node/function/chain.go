package function

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// MaxChain is how many functions a chain may have. The budget of an order is the sum of
// their fuel.
const MaxChain = 8

// Callback is a Pre function of a chain.
type Callback struct {
	Name    string
	Module  *Module
	OnError OnError
}

// Outcome is what a chain decides.
type Outcome struct {
	Message []byte       // nil: refused
	Parsed  *order.Order // of Message
	Reason  uint32       // of a refusal, as Decision
	Text    []byte
}

// Counts of the calls of a function. Each call is accepted, refused, changed or failed;
// OnError decides what happens to an order after a failed one.
type Counts struct {
	Accepted, Refused, Changed uint64
	Failed                     [Faults]uint64 // by Fault
	Fuel                       uint64         // of all calls
}

// Chain calls Pre functions one after the other: each gets the order as those before it
// have changed it, and the first refusal ends it. It is for one goroutine.
type Chain struct {
	links   []link
	stamp   []Set // one that is set last, or none
	stamper *Amender
	layouts order.Layouts
	orders  [2]order.Order // of bufs
	bufs    [2][]byte
	turn    int
	text    []byte
	out     Outcome
	// OnFault is called after a call of function k that failed; nil: not. Explain has the
	// details. It may keep nothing.
	OnFault func(k int, fault Fault, clOrdID []byte)
}

type link struct {
	Callback
	inst   *Instance
	amend  *Amender
	counts Counts
	err    error // why what it set makes no order
}

// NewChain makes an instance of each module. A stampTag other than 0 is set in each order
// that the chain accepts, to the first 16 digits of Digest.
func NewChain(ctx context.Context, list []Callback, stampTag uint32) (*Chain, error) {
	if len(list) == 0 || len(list) > MaxChain {
		return nil, fmt.Errorf("%d functions, allowed are 1 to %d", len(list), MaxChain)
	}
	c := &Chain{}
	for _, cb := range list {
		if cb.Module.kind != Pre {
			return nil, fmt.Errorf("function %s is of kind %s, allowed is Pre", cb.Name, cb.Module.kind)
		}
		for _, tag := range cb.Module.options.Tags {
			if !Settable(tag) || tag == stampTag {
				return nil, fmt.Errorf("function %s: tag %d cannot be granted: it is of the envelope, the session or the order's identity, decides how other tags are read, or is the stamp", cb.Name, tag)
			}
		}
		inst, err := cb.Module.Instance(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("function %s: %w", cb.Name, err), c.Close(ctx))
		}
		c.links = append(c.links, link{Callback: cb, inst: inst, amend: NewAmender(cb.Module.options.Tags...)})
	}
	if stampTag != 0 {
		if !Settable(stampTag) {
			return nil, errors.Join(fmt.Errorf("stamp: tag %d cannot be set: it is of the envelope, the session or the order's identity, or decides how other tags are read", stampTag), c.Close(ctx))
		}
		c.stamp = []Set{{stampTag, []byte(c.Digest()[:16])}}
		c.stamper = NewAmender(stampTag)
	}
	return c, nil
}

// Digest is that of everything that decides: modules, their order, configuration and
// grants. It is 64 hexadecimal digits.
func (c *Chain) Digest() string {
	h := sha256.New()
	for i := range c.links {
		l := &c.links[i]
		o := &l.Module.options
		fmt.Fprintf(h, "%s %x %x %d %d %d %v\n", l.Name, l.Module.digest, sha256.Sum256(o.Config), l.OnError, o.Fuel, o.Pages, o.Tags)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// Decide calls the functions with a message that order.Parse accepted, and with what it
// found. The outcome is valid until the next call.
func (c *Chain) Decide(timeNs int64, msg []byte, parsed *order.Order) *Outcome {
	out := &c.out
	*out = Outcome{Message: msg, Parsed: parsed}
	for k := range c.links {
		l := &c.links[k]
		o := Order{Time: timeNs, Raw: out.Message, Places: out.Parsed.Places(), Parsed: out.Parsed}
		accepted := l.inst.accepts(context.Background(), &o)
		l.counts.Fuel += uint64(l.inst.Used())
		if accepted {
			l.counts.Accepted++
		} else if d := c.decided(k, out); d.Verdict == Refuse {
			*out = Outcome{Reason: d.Reason, Text: d.Text}
			return out
		}
	}
	if c.stamp != nil && !c.set(c.stamper, c.stamp, out) {
		*out = Outcome{Reason: FaultReason, Text: textStamp}
	}
	return out
}

// decided makes the change that function k wants, or returns why the order is refused.
func (c *Chain) decided(k int, out *Outcome) Decision {
	l := &c.links[k]
	d := l.inst.decided
	if d.Verdict == Change && !c.change(l, &d, out) {
		d = Decision{Fault: BadResult}
	}
	l.counts.add(&d)
	if d.Fault == None {
		return d
	}
	if c.OnFault != nil {
		c.OnFault(k, d.Fault, out.Message[out.Parsed.ClOrdIDOff:][:out.Parsed.ClOrdIDLen])
	}
	l.err = nil
	if d = l.OnError.Apply(d); d.Verdict == Refuse {
		c.text = append(append(append(c.text[:0], l.Name...), ": "...), d.Text...)
		d.Text = c.text
	}
	return d
}

var textStamp = []byte("function: no room for the stamp")

// change applies the sets of a function; false if they make no valid order.
func (c *Chain) change(l *link, d *Decision, out *Outcome) bool {
	if c.set(l.amend, d.Sets, out) {
		return true
	}
	l.err = errors.New("what it sets makes no valid order")
	return false
}

// set makes the message with the tags the next one, in the buffer that the present one is
// not in.
func (c *Chain) set(a *Amender, sets []Set, out *Outcome) bool {
	buf, err := a.Amend(c.bufs[c.turn][:0], out.Message, out.Parsed.Places(), sets)
	if err != nil {
		return false
	}
	o := &c.orders[c.turn]
	c.bufs[c.turn] = buf
	if err := c.layouts.Parse(buf, o); err != nil {
		return false
	}
	c.turn = 1 - c.turn
	out.Message, out.Parsed = buf, o
	return true
}

// add counts a call that did not accept.
func (n *Counts) add(d *Decision) {
	switch {
	case d.Fault != None:
		n.Failed[d.Fault]++
	case d.Verdict == Refuse:
		n.Refused++
	default:
		n.Changed++
	}
}

// Explain describes the fault of the last call of function k; it is for OnFault.
func (c *Chain) Explain(k int, fault Fault) string {
	l := &c.links[k]
	if l.err != nil {
		return l.err.Error()
	}
	return l.inst.explain(fault)
}

// Len is how many functions there are.
func (c *Chain) Len() int { return len(c.links) }

// Callback returns function k.
func (c *Chain) Callback(k int) Callback { return c.links[k].Callback }

// Counts returns the counts of function k.
func (c *Chain) Counts(k int) Counts { return c.links[k].counts }

// Close frees the instances, not the modules.
func (c *Chain) Close(ctx context.Context) error {
	var errs []error
	for i := range c.links {
		errs = append(errs, c.links[i].inst.Close(ctx))
	}
	c.links = nil
	return errors.Join(errs...)
}
