package client

import (
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// IfAbsent is the option that a value is set only where there is none; otherwise the put ends with a *ConditionError.
func IfAbsent() PutOption { return func(m *wire.RegionApply) { m.If = wire.RegionIfAbsent } }

// PutAsync sends a put and returns; done runs once with the outcome, as that of SubmitAsync, and must not block. Key and
// value are copied. Puts of one partition are sent in the order of the calls. ErrOverloaded, after which Put tries again,
// is given to done.
func (r *Region) PutAsync(key, value []byte, done func(Receipt, error), opts ...PutOption) error {
	if done == nil {
		return errors.New("client: PutAsync: done is nil, allowed: a function; use Put to wait for the outcome")
	}
	if err := r.check(key, value); err != nil {
		return err
	}
	p := r.c.RouteClOrdID(key)
	s, err := r.c.sharedAt(sharedKey{partition: p, regions: true})
	if err != nil {
		return &NotSentError{Partition: p, Cause: err}
	}
	pair := append(append(make([]byte, 0, len(key)+len(value)), key...), value...)
	op := &regionOp{RegionApply: wire.RegionApply{Op: wire.RegionPut, Region: []byte(r.name), Key: pair[:len(key):len(key)], Value: pair[len(key):]}}
	for _, o := range opts {
		o(&op.RegionApply)
	}
	return s.enqueue(nil, op, func(receipt Receipt, err error) { done(receipt, r.outcome(p, err)) }, true)
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
