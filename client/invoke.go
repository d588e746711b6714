package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// FunctionError is a call of a function that had no result. Nothing was changed.
type FunctionError struct {
	Function string
	Code     int32 // the error that the function returned; 0: it failed, as by running out of fuel
	Text     string
	reject   *RejectError
}

func (e *FunctionError) Error() string {
	if e.Code == 0 {
		return fmt.Sprintf("function %s failed: %s", e.Function, e.Text)
	}
	return fmt.Sprintf("function %s returned error %d: %s", e.Function, e.Code, e.Text)
}

// Unwrap is the refusal.
func (e *FunctionError) Unwrap() error { return e.reject }

// Invoke calls a function of kind Compute with a key of a region and its value, on the
// primary of the key's partition. What the function makes of the value is one change, applied
// once, also when a failover lies between; the reply is the one of that change. A
// *FunctionError is final, and so is ErrFunctionUnknown: no copy of the partition has a function
// of that name. While pods are replaced a copy may have it, and the primary not: the call is
// sent again until its deadline, and then fails with ErrFunctionAwaited; nothing was changed.
func (c *Client) Invoke(ctx context.Context, region, function string, key, args []byte) ([]byte, Receipt, error) {
	r := c.Region(region)
	if err := r.check(key, args); err != nil {
		return nil, Receipt{}, err
	}
	if len(function) == 0 || len(function) > 32 {
		return nil, Receipt{}, fmt.Errorf("client: function name has %d bytes, allowed: 1..32", len(function))
	}
	op, receipt, err := r.apply(ctx, c.RouteClOrdID(key), regionOp{RegionApply: wire.RegionApply{Key: key, Value: args}, function: []byte(function)})
	return op.value, receipt, functionError(function, err)
}

// functionError makes the refusal for want of a result a FunctionError.
func functionError(function string, err error) error {
	var reject *RejectError
	if errors.As(err, &reject) && reject.Code == wire.CodeFunctionFailed {
		return &FunctionError{Function: function, Code: int32(uint32(reject.Detail)), Text: reject.Text, reject: reject}
	}
	return err
}

// encodeInvoke appends the frame of a call.
func (s *Session) encodeInvoke(c *conn, seq uint64, op *regionOp) {
	c.out = wire.AppendInvoke(c.out, s.partition, &wire.Invoke{
		Epoch: s.epoch, Slot: s.slot, Generation: s.gen, ClientSeq: seq, Received: min(s.win.head, seq) - 1,
		Region: op.Region, Function: op.function, Key: op.Key, Args: op.Value,
	})
}

// onInvoked is onAck of a call.
func (s *Session) onInvoked(c *conn, frame []byte) error {
	var m wire.Invoked
	if err := wire.DecodeInvoked(frame, &m); err != nil {
		return s.violation(c, "answer to an Invoke", err)
	}
	if s.awaits(m.ClientSeq) {
		if o := s.win.at(m.ClientSeq).ord; o != nil && o.op != nil {
			o.op.value = append([]byte(nil), m.Reply...)
		}
	}
	return s.onAck(c, &m.Ack)
}
