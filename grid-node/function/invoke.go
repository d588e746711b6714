package function

import "context"

// Action is what a Compute function does with the value of a key.
type Action uint8

// Actions.
const (
	Keep   Action = iota
	SetTo         // Result.Value is the new one
	Remove        // the key
	Again         // of StepEnd: the function is not at its end, and wants to be called once more
)

// KeyCall is what a Compute function is called with for a key of a region.
type KeyCall struct {
	Region, Key, Args []byte
	Value             []byte // the present one
	Version           uint64 // of the value; 0: there is none
	Time              int64  // of the caller, in nanoseconds since 1970

	Step          Step // 0: the call is about this key alone
	Slice, Slices uint32
	OfOrders      bool // a Map over orders: with StepEnd, for InvokeOrder has those
}

// OrderCall is what a Compute function is called with for an order of a Map.
type OrderCall struct {
	Order
	Args          []byte
	Slice, Slices uint32
}

// Sources of a Map.
const (
	ofKeys   = 0
	ofOrders = 1
)

// Step is what a call of a Map is for. The memory of an instance lasts as long as the Map.
type Step uint32

// Steps of a Map.
const (
	StepRow Step = 1 // Key, Value and Version are an entry
	StepEnd Step = 2 // there is no entry any more: the function answers, or wants to be called again
)

// Result of a call for a key. Its bytes are valid until the next call.
type Result struct {
	Action Action
	Value  []byte
	Out    []byte // the reply, or what the function says of its error
	Code   int32  // its own error, then nothing is to be changed; 0: none
	Fault  Fault  // then the rest is empty
	Room   int    // not 0: the call has more bytes than this, and was not made
}

// Invoke calls a Compute function for a key. After a fault the memory of the instance is as
// it was when it was made.
func (i *Instance) Invoke(ctx context.Context, c *KeyCall) Result {
	r := i.invoke(ctx, c)
	if r.Fault != None {
		i.reset()
	}
	return r
}

// InvokeOrder calls a Compute function for an order, as a step of a Map: StepRow. After a fault the memory of the
// instance is as it was when it was made.
func (i *Instance) InvokeOrder(ctx context.Context, c *OrderCall) Result {
	i.used = 0
	area, ok := i.view()
	if !ok {
		i.reset()
		return Result{Fault: BadResult}
	}
	if room := len(area) - areaData; len(c.Args)+len(c.Raw) > room {
		return Result{Room: room}
	}
	le.PutUint64(area[areaSeq:], c.Seq)
	le.PutUint64(area[areaTime:], uint64(c.Time))
	clear(area[areaTags:areaData])
	at := uint32(areaData)
	putSpan(area[areaValue:], at, uint32(copy(area[at:], c.Raw)))
	i.fillFields(area, &c.Order, at)
	at += uint32(len(c.Raw))
	putSpan(area[areaPayload:], at, uint32(copy(area[at:], c.Args)))
	putStep(area, StepRow, c.Slice, c.Slices, ofOrders)
	r := i.decide(ctx, area, StepRow)
	if r.Fault != None {
		i.reset()
	}
	return r
}

func putStep(area []byte, step Step, slice, slices, source uint32) {
	for k, v := range [...]uint32{uint32(step), slice, slices, source} {
		le.PutUint32(area[areaStep+4*k:], v)
	}
}

func (i *Instance) invoke(ctx context.Context, c *KeyCall) Result {
	i.used = 0
	area, ok := i.view()
	if !ok {
		return Result{Fault: BadResult}
	}
	if room := len(area) - areaData; len(c.Region)+len(c.Key)+len(c.Args)+len(c.Value) > room {
		return Result{Room: room}
	}
	le.PutUint64(area[areaSeq:], c.Version)
	le.PutUint64(area[areaTime:], uint64(c.Time))
	clear(area[areaTags:areaData])
	source := uint32(ofKeys)
	if c.OfOrders {
		source = ofOrders
		clear(area[areaQuantity:areaClOrdID]) // of the last order
	}
	putStep(area, c.Step, c.Slice, c.Slices, source)
	at := uint32(areaData)
	for _, part := range [...]struct {
		place int
		bytes []byte
	}{{areaPayload, c.Args}, {areaValue, c.Value}, {areaClOrdID, c.Key}, {areaSymbol, c.Region}} {
		putSpan(area[part.place:], at, uint32(copy(area[at:], part.bytes)))
		at += uint32(len(part.bytes))
	}
	return i.decide(ctx, area, c.Step)
}

// decide makes a call for which the area is filled.
func (i *Instance) decide(ctx context.Context, area []byte, step Step) Result {
	if f := i.run(ctx, i.call, i.result[:]); f != None {
		return Result{Fault: f}
	}
	out, ok := output(area)
	r := Result{Out: out, Code: int32(i.result[0])}
	if ok && r.Code == 0 {
		r.Value, ok = spanOf(area, areaSet)
		switch action := le.Uint32(area[areaAction:]); {
		case !allowed(step, Action(action)):
			ok = false
		case action != uint32(SetTo):
			r.Value = nil
			fallthrough
		default:
			r.Action = Action(action)
		}
	}
	if !ok {
		return Result{Fault: BadResult}
	}
	return r
}

// allowed reports whether a function may ask for something: a Map changes nothing.
func allowed(s Step, a Action) bool {
	switch s {
	case StepRow:
		return a == Keep
	case StepEnd:
		return a == Keep || a == Again
	}
	return a <= Remove
}

// spanOf returns the bytes of a span, and whether it is inside the area.
func spanOf(area []byte, place int) ([]byte, bool) {
	at, n := le.Uint32(area[place:]), le.Uint32(area[place+4:])
	if uint64(at)+uint64(n) > uint64(len(area)) {
		return nil, false
	}
	return area[at : at+n], true
}
