package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// IfAbsent is the option that a value is set only where there is none; otherwise the put ends with a *ConditionError.
func IfAbsent() PutOption { return func(m *wire.RegionApply) { m.If = wire.RegionIfAbsent } }

// PutAsync sends a put and returns; done runs once with the outcome, as that of SubmitAsync, and must not block. Key and
// value are copied. Puts of one partition are sent in the order of the calls. ErrOverloaded, after which Put tries again,
// is given to done.
func (r *Region) PutAsync(key, value []byte, done func(Receipt, error), opts ...PutOption) error {
	m := wire.RegionApply{Op: wire.RegionPut, Key: key, Value: value}
	for _, o := range opts {
		o(&m)
	}
	return r.applyAsync("PutAsync", m, done)
}

// PatchAsync is Patch as PutAsync is Put: it sends the patch and returns.
func (r *Region) PatchAsync(key []byte, offset int, b []byte, done func(Receipt, error)) error {
	if err := r.checkOffset(offset); err != nil {
		return err
	}
	return r.applyAsync("PatchAsync", wire.RegionApply{Op: wire.RegionPatch, Offset: uint32(offset), Key: key, Value: b}, done)
}

func (r *Region) applyAsync(name string, m wire.RegionApply, done func(Receipt, error)) error {
	if done == nil {
		return fmt.Errorf("client: %s: done is nil, allowed: a function; use %s to wait for the outcome", name, strings.TrimSuffix(name, "Async"))
	}
	if err := r.check(m.Key, m.Value); err != nil {
		return err
	}
	p := r.c.RouteClOrdID(m.Key)
	s, err := r.c.sharedAt(sharedKey{partition: p, regions: true})
	if err != nil {
		return &NotSentError{Partition: p, Cause: err}
	}
	n := len(m.Key)
	pair := append(append(make([]byte, 0, n+len(m.Value)), m.Key...), m.Value...)
	m.Region, m.Key, m.Value = []byte(r.name), pair[:n:n], pair[n:]
	return s.enqueue(nil, &regionOp{RegionApply: m}, func(receipt Receipt, err error) { done(receipt, r.outcome(p, err)) }, true)
}

// outcome is the error of a change as callers get it: with its region, and of a condition that does not hold what it is.
func (r *Region) outcome(p wire.PartitionID, err error) error {
	var reject *RejectError
	switch {
	case !errors.As(err, &reject) || errors.Is(err, ErrUnknownOutcome):
		return err
	case reject.Code == wire.CodeConditionFailed:
		return &ConditionError{Partition: p, Version: reject.Detail, reject: reject}
	}
	return fmt.Errorf("client: region %s: %w", r.name, err)
}
