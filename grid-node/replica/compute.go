package replica

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Functions of kind Compute, docs/adr/0069: the primary calls one with a key of a region and
// the value that all stored entries leave. What it decided is the entry: a change of the
// region and the reply of the session. No other replica calls it.

// Computer calls functions of kind Compute. Only a primary does, on the thread of Step.
type Computer interface {
	// Compute calls the function of c. It may keep nothing of it.
	Compute(c *Call) Computed
	// Names of the functions, at most wire.MaxComputes. They stay.
	Names() []string
}

// Call is what a function is called with.
type Call struct {
	Function, Region, Key, Args []byte
	Value                       []byte // of the key, none with version 0
	Version                     uint64 // the entry that wrote it; 0: there is none
	NowNs                       int64  // the primary's wall clock, unix nanoseconds
}

// CallKind is what a call had.
type CallKind uint8

// What a call may have.
const (
	CallUnknown  CallKind = iota // there is no function of that name
	CallKept                     // the value stays as it is
	CallSet                      // Value is the new one
	CallRemoved                  // the key is removed
	CallFailed                   // no result: Code and Text say why
	CallTooLarge                 // key, value and arguments do not fit what the function takes: Limit
)

// Computed of a call. Its bytes are valid until the next one.
type Computed struct {
	Kind  CallKind
	Value []byte // of CallSet
	Reply []byte // of CallKept, CallSet and CallRemoved: at most order.MaxReply
	Code  uint32 // of CallFailed: what the function returned, 0 for a fault
	Text  []byte // of CallFailed, printable
	Limit uint64 // of CallTooLarge, in bytes
}

// knowInvoked reports whether every replica knows changes that a function decided.
func (r *Replica) knowInvoked() bool {
	return r.knowRegions() && r.allKnow(wire.FeatureInvoke)
}

// invoke handles a call: the session check of an order, the function, then the log.
func (r *Replica) invoke(conn uint64, frame []byte) error {
	var m wire.Invoke
	if err := wire.DecodeInvoke(frame, &m); err != nil {
		return err
	}
	r.regions.asks = wire.TypeInvoke
	defer func() { r.regions.asks = wire.TypeSubmit }()
	sub := wire.Submit{Epoch: m.Epoch, Slot: m.Slot, Generation: m.Generation, ClientSeq: m.ClientSeq}
	s, seat := r.regionSession(conn, &sub)
	if s == nil || !(mutant(mutInvokeRetried) && m.ClientSeq <= s.Last && r.live.Sessions.Applied(s, m.ClientSeq) != 0) && !r.admitSession(conn, &sub, s, seat) || !r.admitLoad(conn, &sub) {
		return nil
	}
	switch {
	case r.opt.Compute == nil:
		r.unknownFunction(conn, &m, &sub)
	case !r.knowInvoked():
		r.rejectSubmit(conn, &sub, wire.CodeOverloaded, 0, "a copy of the partition runs a release without calls of functions, or was not heard yet; retry")
	case len(m.Key)+len(m.Args) > wire.MaxRegionPair:
		r.rejectSubmit(conn, &sub, wire.CodeTooLarge, wire.MaxRegionPair, "key and arguments together are longer than the limit")
	default:
		if at, ok := r.regionNamed(conn, &sub, m.Region); ok {
			r.acceptInvoke(conn, &m, &sub, at)
		}
	}
	return nil
}

// unknownFunction refuses a call of a function that is not here: for good once all copies of the
// partition have said that they have none of that name either. While pods are replaced another
// one may have it.
func (r *Replica) unknownFunction(conn uint64, m *wire.Invoke, sub *wire.Submit) {
	name := nameHash(string(m.Function))
	awaited := ""
	for i := range r.primary.peers {
		switch p := &r.primary.peers[i]; {
		case mutant(mutInvokeUnknownEarly):
		case slices.Contains(p.computes[:], name):
			awaited = "another copy of the partition has it"
		case !p.featuresSaid:
			r.askFeatures(p)
			awaited = cmp.Or(awaited, "another copy of the partition has not said whether it has it")
		}
	}
	if awaited != "" {
		r.rejectSubmit(conn, sub, wire.CodeFunctionAwaited, 0, fmt.Sprintf("function %.40q is not on the primary, and %s; retry when the grid's pods are replaced", m.Function, awaited))
		return
	}
	r.rejectSubmit(conn, sub, wire.CodeFunctionUnknown, 0, fmt.Sprintf("function is %.40q, allowed: one of the grid's functions of kind Compute", m.Function))
}

// computesOf are the functions of a node as it tells them to other replicas.
func computesOf(c Computer) (hashes [wire.MaxComputes]uint64) {
	if c != nil {
		for i, name := range c.Names() {
			hashes[i] = nameHash(name)
		}
	}
	return hashes
}

// nameHash is FNV-1a.
func nameHash(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}

// acceptInvoke calls the function and appends what it decided to the log.
func (r *Replica) acceptInvoke(conn uint64, m *wire.Invoke, sub *wire.Submit, at uint16) {
	s := r.live.Regions
	v, found := s.Present(r.now.Wall, at, m.Key, r.regions.value[:0])
	if found {
		r.regions.value = v.Value
		if mutant(mutInvokeCommitted) && v.Version > r.commit {
			v, found = region.Value{}, false
		}
	}
	out := r.opt.Compute.Compute(&Call{Function: m.Function, Region: m.Region, Key: m.Key, Args: m.Args, Value: v.Value, Version: v.Version, NowNs: r.now.Wall})
	o := order.RegionOp{Op: order.RegionKeep, Invoked: true, Region: at, Received: m.Received, Key: m.Key, Reply: out.Reply}
	if mutant(mutInvokeNothingReceived) {
		o.Received = m.ClientSeq
	}
	switch out.Kind {
	case CallUnknown:
		r.unknownFunction(conn, m, sub)
		return
	case CallTooLarge:
		r.rejectSubmit(conn, sub, wire.CodeTooLarge, out.Limit, fmt.Sprintf("key, value and arguments have %d bytes, more than function %s takes", len(m.Key)+len(v.Value)+len(m.Args), m.Function))
		return
	case CallFailed:
		r.failInvoke(conn, m, v.Version, out.Code, out.Text)
		return
	case CallSet:
		o.Op, o.Value = order.RegionPut, out.Value
		if o.ExpireNs = v.ExpireNs; !found {
			o.ExpireNs = r.expiryOf(s, s.Regions()[at].LifeNs, 0)
		}
	case CallRemoved:
		if found {
			o.Op = order.RegionRemove
		}
	}
	if len(o.Key)+len(o.Value)+len(o.Reply) > order.MaxRegionPair || len(o.Reply) > order.MaxReply {
		r.failInvoke(conn, m, v.Version, 0, textLongResult)
		return
	}
	verdict, _ := s.Admit(r.now.Wall, &o, region.Always, 0)
	r.countRefused(RegionInvoke, &o, verdict)
	if verdict == region.Full {
		r.rejectRegionFull(conn, sub, at)
		return
	}
	r.appendRegion(conn, m.ClientSeq, m.Slot, pendingInvoke, &o, RegionInvoke)
}

var textLongResult = []byte("function: value and reply are longer than the limit")

// failInvoke answers a call without a result. What it was called with may be lost with this
// primary: it is committed first.
func (r *Replica) failInvoke(conn uint64, m *wire.Invoke, version uint64, code uint32, text []byte) {
	need := version
	if version == 0 {
		need = r.live.Regions.Last()
	}
	if mutant(mutInvokeFailedEarly) {
		need = 0
	}
	r.count.Rejects[min(int(wire.CodeFunctionFailed), len(r.count.Rejects)-1)]++
	r.regions.op = wire.AppendReject(r.regions.op[:0], r.part, &wire.Reject{RequestID: m.ClientSeq, Slot: m.Slot, Code: wire.CodeFunctionFailed, ForType: wire.TypeInvoke, Detail: uint64(code), Text: text})
	rd := read{conn: conn, reqID: m.ClientSeq, slot: m.Slot, kind: readRegion, need: need, size: uint32(len(r.regions.op)), commit: uint64(wire.TypeInvoke)}
	rd.seq = uint64(r.keepAnswer(r.regions.op))
	r.confirm(rd)
}

// invoked answers an Invoke with the entry that it became.
func (r *Replica) invoked(conn uint64, ack *wire.Ack) {
	ack.Hash, ack.Lineage = r.store.HashAt(ack.Seq), uint32(r.cfg.Lineage)
	m := wire.Invoked{Ack: *ack}
	m.Reply, _ = r.live.Regions.Taken(r.regions.value[:0], ack.Slot, ack.ClientSeq)
	r.regions.value = m.Reply
	off := len(r.out.buf)
	r.out.buf = wire.AppendInvoked(r.out.buf, r.part, &m)
	r.out.reply(conn, off, nil)
}

// mutateInvoked is what a backup with mutInvokedOnBackup makes of an entry: it calls its own
// function.
func (r *Replica) mutateInvoked(entry []byte, e *order.Entry) []byte {
	if !mutant(mutInvokedOnBackup) || r.opt.Compute == nil || e.Kind != order.KindRegion {
		return entry
	}
	o := order.RegionOf(order.Payload(entry))
	if !o.Invoked || o.Op != order.RegionPut {
		return entry
	}
	v, _ := r.live.Regions.Present(r.now.Wall, o.Region, o.Key, nil)
	out := r.opt.Compute.Compute(&Call{Function: mutatedFunction, Key: o.Key, Value: v.Value, Version: v.Version, NowNs: r.now.Wall})
	if out.Kind != CallSet {
		return entry
	}
	o.Value, o.Reply = out.Value, out.Reply
	changed := o.Append(nil)
	e.Size = uint32(order.HeaderSize + len(changed))
	b := make([]byte, order.HeaderSize, e.Size)
	e.Put(b)
	return append(b, changed...)
}

// mutatedFunction is the one that mutInvokedOnBackup calls: the entry has no name.
var mutatedFunction = []byte("count")
