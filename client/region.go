package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Region is a named map of keys to values in the partitions of a grid. It is safe for
// concurrent use. A key is in the partition of its hash, as a ClOrdID is. Changes of one
// partition share a session: each is applied once, whatever fails in between.
type Region struct {
	c    *Client
	name string
}

// Region names a region. Whether the grid has it is known when it is used: ErrRegionUnknown.
func (c *Client) Region(name string) *Region { return &Region{c, name} }

// Entry is a value of a region.
type Entry struct {
	Key, Value []byte
	Version    uint64    // rises with every change of the key's partition; never 0
	Expires    time.Time // zero: never
	Partition  wire.PartitionID
	CommitSeq  uint64 // committed prefix of the replica that answered
}

// ConditionError is a change that was not made, because the value was another one.
type ConditionError struct {
	Partition wire.PartitionID
	Version   uint64 // of the value that is there, 0 for none
	reject    *RejectError
}

func (e *ConditionError) Error() string {
	if e.Version == 0 {
		return fmt.Sprintf("%s: the key has no value, as the change requires", e.Partition)
	}
	return fmt.Sprintf("%s: the value has version %d, not what the change requires", e.Partition, e.Version)
}

// Unwrap is the refusal.
func (e *ConditionError) Unwrap() error { return e.reject }

// PutOption changes a put.
type PutOption func(*wire.RegionApply)

// Expires makes the value go by itself after d, which is at least a nanosecond; Forever makes
// it stay where the region has another default.
func Expires(d time.Duration) PutOption {
	return func(m *wire.RegionApply) { m.LifeNs = max(int64(d), 1) }
}

// Forever is the option that a value does not expire.
func Forever() PutOption { return func(m *wire.RegionApply) { m.LifeNs = -1 } }

// Put sets a value. The receipt's Seq is its version.
func (r *Region) Put(ctx context.Context, key, value []byte, opts ...PutOption) (Receipt, error) {
	return r.put(ctx, wire.RegionApply{Op: wire.RegionPut, Key: key, Value: value}, opts)
}

// PutIf sets a value if the present one has this version, 0: if there is none. A
// *ConditionError says which one it has; then nothing was changed.
func (r *Region) PutIf(ctx context.Context, key, value []byte, version uint64, opts ...PutOption) (Receipt, error) {
	m := wire.RegionApply{Op: wire.RegionPut, If: wire.RegionIfVersion, Version: version, Key: key, Value: value}
	if version == 0 {
		m.If = wire.RegionIfAbsent
	}
	return r.put(ctx, m, opts)
}

func (r *Region) put(ctx context.Context, m wire.RegionApply, opts []PutOption) (Receipt, error) {
	for _, o := range opts {
		o(&m)
	}
	_, receipt, err := r.keyed(ctx, m)
	return receipt, err
}

// Patch writes b over the value's bytes from offset on, which may be its end; the value
// keeps its expiry. A *ConditionError: there is no value.
func (r *Region) Patch(ctx context.Context, key []byte, offset int, b []byte) (Receipt, error) {
	if err := r.checkOffset(offset); err != nil {
		return Receipt{}, err
	}
	_, receipt, err := r.keyed(ctx, wire.RegionApply{Op: wire.RegionPatch, Offset: uint32(offset), Key: key, Value: b})
	return receipt, err
}

func (r *Region) checkOffset(offset int) error {
	if offset < 0 || offset > wire.MaxRegionPair {
		return fmt.Errorf("client: region %s: offset is %d, allowed: 0..%d", r.name, offset, wire.MaxRegionPair)
	}
	return nil
}

// Remove removes a key. It reports whether there was a value.
func (r *Region) Remove(ctx context.Context, key []byte) (bool, error) {
	_, _, err := r.keyed(ctx, wire.RegionApply{Op: wire.RegionRemove, Key: key})
	if errors.Is(err, ErrConditionFailed) {
		return false, nil
	}
	return err == nil, err
}

// RemoveIf removes a key whose value has this version, which is not 0. A *ConditionError says which one it has, 0 for none;
// then nothing was changed. Of several that remove a version one succeeds.
func (r *Region) RemoveIf(ctx context.Context, key []byte, version uint64) (Receipt, error) {
	_, receipt, err := r.keyed(ctx, wire.RegionApply{Op: wire.RegionRemove, If: wire.RegionIfVersion, Version: version, Key: key})
	return receipt, err
}

// Take removes a key and returns its value, once: no other taker gets it, and a retry after a
// failover gets the same. ErrNotFound: there is none.
func (r *Region) Take(ctx context.Context, key []byte) ([]byte, Receipt, error) {
	value, receipt, err := r.keyed(ctx, wire.RegionApply{Op: wire.RegionTake, Key: key})
	if errors.Is(err, ErrConditionFailed) {
		return nil, Receipt{}, fmt.Errorf("client: region %s: %w", r.name, ErrNotFound)
	}
	return value, receipt, err
}

// Clear removes all keys: at once in each partition, in one after the other.
func (r *Region) Clear(ctx context.Context) error {
	for p := range r.c.Table() {
		if err := r.ClearPartition(ctx, wire.PartitionID(p)); err != nil {
			return err
		}
	}
	return nil
}

// ClearPartition removes the keys that are in a partition, at once. Their memory is free when entries that follow have
// freed it, a bounded part with each.
func (r *Region) ClearPartition(ctx context.Context, p wire.PartitionID) error {
	_, _, err := r.apply(ctx, p, regionOp{RegionApply: wire.RegionApply{Op: wire.RegionClear}})
	return err
}

// keyed applies a change of a key.
func (r *Region) keyed(ctx context.Context, m wire.RegionApply) ([]byte, Receipt, error) {
	if err := r.check(m.Key, m.Value); err != nil {
		return nil, Receipt{}, err
	}
	op, receipt, err := r.apply(ctx, r.c.RouteClOrdID(m.Key), regionOp{RegionApply: m})
	return op.value, receipt, err
}

func (r *Region) check(key, value []byte) error {
	switch {
	case len(r.name) == 0 || len(r.name) > 48:
		return fmt.Errorf("client: region name has %d bytes, allowed: 1..48", len(r.name))
	case len(key) == 0 || len(key)+len(value) > wire.MaxRegionPair:
		return fmt.Errorf("client: region %s: key has %d bytes, value %d, allowed: a key of 1 or more, together at most %d", r.name, len(key), len(value), wire.MaxRegionPair)
	}
	return nil
}

// regionOp is a change on its way. What it points to is the caller's until the answer.
type regionOp struct {
	wire.RegionApply
	function []byte // of a call; Value are its arguments
	value    []byte // of the answer

	batch   *wire.RegionBatch // several changes; RegionApply is not used
	skipped uint32            // of the answer: keys of the batch that have no value
	untold  bool              // the node that was asked last does not know batches, and was asked for nothing
}

// apply sends a change, a batch, or a call of a function, until it is applied or refused. A refusal for load, or for a function
// that the primary has not yet, is sent again: the node has applied nothing then. It returns of with the answer.
func (r *Region) apply(ctx context.Context, p wire.PartitionID, of regionOp) (regionOp, Receipt, error) {
	of.Region = []byte(r.name)
	s, err := r.c.sharedAt(sharedKey{partition: p, regions: true})
	if err != nil {
		return of, Receipt{}, &NotSentError{Partition: p, Cause: err}
	}
	deadline := r.c.deadline(ctx, nanotime())
	var back backoff
	var last error
	for back.wait(ctx.Done(), r.c.cfg.RetryMax) {
		op := of
		receipt, err := s.submit(ctx, nil, &op, true)
		var reject *RejectError
		var unsent *NotSentError
		switch {
		case err == nil:
			return op, receipt, nil
		case errors.As(err, &unsent) && last != nil:
			return of, Receipt{}, &NotSentError{Partition: p, Waited: unsent.Waited, Cause: join(unsent.Cause, last)}
		case !errors.As(err, &reject) || errors.Is(err, ErrUnknownOutcome),
			!op.waits(reject.Code), nanotime() > deadline:
			return of, Receipt{}, r.outcome(p, op.told(err))
		}
		last = op.told(err)
	}
	return of, Receipt{}, &NotSentError{Partition: p, Cause: join(ctx.Err(), last)}
}

// encodeRegion appends the frame of a change. It says which answers the session has: all
// below the oldest number without one.
func (s *Session) encodeRegion(c *conn, seq uint64, op *regionOp) {
	switch {
	case op.function != nil:
		s.encodeInvoke(c, seq, op)
		return
	case op.batch != nil:
		s.encodeBatch(c, seq, op)
		return
	}
	m := op.RegionApply
	m.Epoch, m.Slot, m.Generation, m.ClientSeq, m.Received = s.epoch, s.slot, s.gen, seq, min(s.win.head, seq)-1
	c.out = wire.AppendRegionApply(c.out, s.partition, &m)
}

// onRegionApplied is onAck of a change.
func (s *Session) onRegionApplied(c *conn, frame []byte) error {
	var m wire.RegionApplied
	if err := wire.DecodeRegionApplied(frame, &m); err != nil {
		return s.violation(c, "answer to a RegionApply", err)
	}
	if s.awaits(m.ClientSeq) {
		if o := s.win.at(m.ClientSeq).ord; o != nil && o.op != nil {
			if taken := m.Flags&wire.RegionHasValue != 0; taken != (o.op.Op == wire.RegionTake) {
				return s.violation(c, fmt.Sprintf("answer to operation %d of a region has flags %d, allowed: %d of a take, and of nothing else", o.op.Op, m.Flags, wire.RegionHasValue), nil)
			}
			o.op.value = append([]byte(nil), m.Value...)
		}
	}
	return s.onAck(c, &m.Ack)
}
