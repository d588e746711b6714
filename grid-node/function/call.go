package function

import (
	"context"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Verdict is what a Pre function decides.
type Verdict uint8

// Verdicts.
const (
	Accept Verdict = iota
	Refuse
	Change
)

// Set is a tag that a Pre function sets.
type Set struct {
	Tag   uint32
	Value []byte
}

// Decision is the result of a Pre function. Its bytes are valid until the next call.
type Decision struct {
	Verdict Verdict
	Reason  uint32 // of Refuse: OrdRejReason (103), 0 to 99
	Text    []byte // of Refuse: at most 64 printable characters
	Sets    []Set  // of Change
	Fault   Fault  // then the rest is empty, and OnError decides
}

// OnError is what an administrator wants if a Pre function has no result.
type OnError uint8

// What to do with an order whose function failed. Reject is the default.
const (
	Reject OnError = iota
	Pass
)

func (e OnError) String() string { return [...]string{"Reject", "Pass"}[e] }

// FaultReason is the OrdRejReason (103) of an order that is refused because its function
// failed: 99, other.
const FaultReason = 99

// Apply returns the decision that holds.
func (e OnError) Apply(d Decision) Decision {
	if d.Fault == None {
		return d
	}
	if e == Pass {
		return Decision{Fault: d.Fault}
	}
	return Decision{Verdict: Refuse, Reason: FaultReason, Text: faultTexts[d.Fault], Fault: d.Fault}
}

var faultTexts = [...][]byte{nil, []byte("function: out of fuel"), []byte("function: calls too deep"), []byte("function: trap"),
	[]byte("function: bad result")}

const maxText = 64

// Decide calls a Pre function. After a fault the memory of the instance is as it was when it
// was made.
func (i *Instance) Decide(ctx context.Context, o *Order) Decision {
	if i.accepts(ctx, o) {
		return Decision{}
	}
	return i.decided
}

// accepts calls a Pre function and reports whether it takes the order as it is. Otherwise
// decided has what it wants.
func (i *Instance) accepts(ctx context.Context, o *Order) bool {
	out, fault := i.ask(ctx, o)
	if fault == None && uint32(i.result[0]) == uint32(Accept) {
		return true
	}
	if i.decided = i.read(out, fault); i.decided.Fault != None {
		i.reset()
	}
	return false
}

// read reads what a Pre function left that did not accept.
func (i *Instance) read(out []byte, fault Fault) Decision {
	if fault != None {
		return Decision{Fault: fault}
	}
	switch uint32(i.result[0]) {
	case uint32(Refuse):
		reason := le.Uint32(i.area[areaReason:])
		if reason > FaultReason || len(out) > maxText || !printable(out) {
			break
		}
		return Decision{Verdict: Refuse, Reason: reason, Text: out}
	case uint32(Change):
		if !i.readSets(out) {
			break
		}
		return Decision{Verdict: Change, Sets: i.sets}
	}
	return Decision{Fault: BadResult}
}

// ask calls the function with an order and returns its output.
func (i *Instance) ask(ctx context.Context, o *Order) ([]byte, Fault) {
	i.used = 0
	area, ok := i.view()
	if !ok || len(o.Raw) > order.MaxPayload {
		return nil, BadResult
	}
	i.fill(area, o)
	if f := i.run(ctx, i.call, i.result[:]); f != None {
		return nil, f
	}
	out, ok := output(area)
	if !ok {
		return nil, BadResult
	}
	return out, None
}

// view returns the area, which a module may have made smaller since it was loaded, and so
// keeps in area while it is as large as it was: memory neither moves nor shrinks.
func (i *Instance) view() ([]byte, bool) {
	if a := i.area; a != nil && le.Uint32(a[areaSize:]) == uint32(len(a)) {
		return a, true
	}
	size, ok := i.memory.ReadUint32Le(i.at + areaSize)
	if !ok || size > maxArea || size < needed(i.module.payload, len(i.module.tags)) {
		return nil, false
	}
	i.area, ok = i.memory.Read(i.at, size)
	return i.area, ok
}

func printable(v []byte) bool {
	for _, c := range v {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// readSets reads tags and values: u32 tag, u32 length, value, filled up to 4 bytes. A tag
// is set once, by those that were granted.
func (i *Instance) readSets(out []byte) bool {
	i.sets = i.sets[:0]
	for len(out) > 0 {
		if len(out) < 8 || len(i.sets) == maxTags {
			return false
		}
		tag, n := le.Uint32(out), le.Uint32(out[4:])
		if n == 0 || n > order.MaxValue || uint64(n+3)&^3+8 > uint64(len(out)) || !i.granted(tag) {
			return false
		}
		value := out[8 : 8+n]
		if !printable(value) {
			return false
		}
		for _, s := range i.sets {
			if s.Tag == tag {
				return false
			}
		}
		i.sets = append(i.sets, Set{tag, value})
		out = out[8+(n+3)&^3:]
	}
	return len(i.sets) > 0
}

func (i *Instance) granted(tag uint32) bool {
	for _, t := range i.module.options.Tags {
		if t == tag {
			return true
		}
	}
	return false
}

// Record calls a Post function and returns its record, empty if it has none, valid until
// the next call. After a fault there is none; what the function had written into its memory
// until then stays, the same on all copies.
func (i *Instance) Record(ctx context.Context, o *Order) ([]byte, Fault) {
	out, fault := i.ask(ctx, o)
	switch code := uint32(i.result[0]); {
	case fault != None:
		return nil, fault
	case code > 1:
		return nil, BadResult
	case code == 0:
		return nil, None
	}
	return out, None
}

// Compute calls a Compute function with bytes and returns its result, valid until the next
// call, and its code: 0, or an error that is its own.
func (i *Instance) Compute(ctx context.Context, args []byte) (out []byte, code int32, fault Fault) {
	area, ok := i.view()
	if !ok || len(args) > len(area)-areaData {
		return nil, 0, BadResult
	}
	putSpan(area[areaPayload:], areaData, uint32(copy(area[areaData:], args)))
	putSpan(area[areaOut:], 0, 0)
	if fault = i.run(ctx, i.call, i.result[:]); fault == None {
		if out, ok = output(area); !ok {
			fault = BadResult
		}
	}
	if fault != None {
		i.reset()
		return nil, 0, fault
	}
	return out, int32(i.result[0]), None
}
