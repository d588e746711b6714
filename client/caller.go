package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// caller is a connection to one node for requests that may be repeated freely:
// tables, reads, log chunks. Many goroutines share it. Once broken it is thrown
// away, and the next request dials again.
type caller struct {
	client *Client
	addr   string
	ready  chan struct{} // closed once dialling is over
	err    error         // of dialling
	p      pump
	next   uint64
	calls  map[uint64]*call
	broken error
}

// call is one request without an answer.
type call struct {
	w     waiter
	frame []byte   // the answer, a copy
	parts [][]byte // of a Query, before its end
	done  bool
	err   error

	id    uint64
	conn  *conn // it was sent on
	begun int64
	until int64
}

var errLost = errors.New("connection lost")

// maxCalls bounds the outstanding requests to one node.
const maxCalls = 16 << 10

// callerOf returns a connected caller for addr.
func (c *Client) callerOf(ctx context.Context, addr string) (*caller, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	k := c.callers[addr]
	if k == nil {
		k = &caller{client: c, addr: addr, ready: make(chan struct{}), calls: make(map[uint64]*call)}
		k.p.owner = k
		c.callers[addr] = k
		go k.dial()
	}
	c.mu.Unlock()
	select {
	case <-k.ready:
		return k, k.err
	case <-ctx.Done():
		return nil, fmt.Errorf("dial %s: %w", addr, ctx.Err())
	}
}

func (k *caller) dial() {
	defer close(k.ready)
	ctx, cancel := context.WithTimeout(k.client.ctx, k.client.attemptTimeout(time.Second))
	defer cancel()
	// Requests of many goroutines share the connection and rarely have a single waiter: the net
	// package serves that best.
	conn, _, err := k.client.dialNode(ctx, IONet, k.addr, nil)
	if err != nil {
		k.err = err
		k.client.dropCaller(k)
		return
	}
	k.p.mu.Lock()
	k.p.conn = conn
	k.p.mu.Unlock()
}

func (c *Client) dropCaller(k *caller) {
	c.mu.Lock()
	if c.callers[k.addr] == k {
		delete(c.callers, k.addr)
	}
	c.mu.Unlock()
}

// call sends one request to addr and hands the answer to decode. encode appends
// the request frame.
func (c *Client) call(ctx context.Context, addr string, encode func([]byte, uint64) []byte, decode func(frame []byte) error) error {
	k, err := c.callerOf(ctx, addr)
	if err != nil {
		return err
	}
	frame, err := k.roundTrip(ctx, encode)
	var old *OldNodeError
	if errors.As(err, &old) {
		// Unless the node was updated since: a connection that is not used does not notice that it was lost.
		if _, lost := k.roundTrip(ctx, appendPing); errors.Is(lost, errLost) {
			err = lost
		}
	}
	if errors.Is(err, errLost) {
		// Most likely the connection was lost long ago and had not been used since.
		c.dropCaller(k)
		if k, err = c.callerOf(ctx, addr); err == nil {
			frame, err = k.roundTrip(ctx, encode)
		}
	}
	if err != nil {
		return err
	}
	if err := k.refusal(frame); err != nil {
		return err
	}
	if err := decode(frame); err != nil {
		return &ProtocolError{Address: addr, What: "answer", Cause: err}
	}
	return nil
}

func appendPing(dst []byte, id uint64) []byte {
	return wire.AppendRequest(dst, wire.TypePing, &wire.Request{ReqID: id})
}

func (k *caller) roundTrip(ctx context.Context, encode func([]byte, uint64) []byte) ([]byte, error) {
	frame, _, err := k.exchange(ctx, encode, nil)
	return frame, err
}

// exchange is roundTrip for an answer of several frames. giveUp appends what is sent when no
// answer is waited for any more; nil: nothing.
func (k *caller) exchange(ctx context.Context, encode, giveUp func([]byte, uint64) []byte) ([]byte, [][]byte, error) {
	q, err := k.begin(ctx, encode)
	if err != nil {
		return nil, nil, err
	}
	return k.await(ctx, q, giveUp)
}

// begin sends a request; await has to be called.
func (k *caller) begin(ctx context.Context, encode func([]byte, uint64) []byte) (*call, error) {
	now := nanotime()
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	c := k.p.conn
	if c == nil {
		return nil, fmt.Errorf("%s: %w: %w", k.addr, errLost, k.broken)
	}
	if len(k.calls) >= maxCalls {
		return nil, fmt.Errorf("%s: %d requests are unanswered, allowed: %d; slow down", k.addr, len(k.calls), maxCalls)
	}
	from := len(c.out)
	c.out = encode(c.out, k.next+1)
	t := wire.FrameType(c.out[from:])
	if need := wire.NeededFeatures(c.out[from:]); c.features&need != need {
		c.out = c.out[:from] // the node would close the connection, which others share
		return nil, &OldNodeError{Address: k.addr, Frame: t}
	}
	k.next++
	q := &call{w: newWaiter(), id: k.next, conn: c, begun: now, until: k.client.deadline(ctx, now)}
	k.calls[q.id] = q
	k.p.flush(c, false)
	return q, nil
}

// await waits for the answer to what begin sent, which may be a while ago: silence counts from now on.
func (k *caller) await(ctx context.Context, q *call, giveUp func([]byte, uint64) []byte) ([]byte, [][]byte, error) {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	from, reads := nanotime(), q.conn.reads
	var t *time.Timer
	for !q.done && ctx.Err() == nil && nanotime() < q.until {
		if t == nil && !k.p.leads() { // the one that reads looks at the time itself
			t = time.AfterFunc(time.Duration(q.until-nanotime()), q.w.signal)
			defer t.Stop()
		}
		k.p.wait(ctx, &q.w, q.until)
	}
	k.p.leave(&q.w)
	delete(k.calls, q.id)
	if !q.done && giveUp != nil && k.p.conn == q.conn {
		q.conn.out = giveUp(q.conn.out, q.id)
		k.p.flush(q.conn, false)
	}
	if owed := nanotime() - from; !q.done && q.conn.reads == reads && owed >= int64(k.client.cfg.SuspectAfter) {
		// Nothing arrived: a middlebox may have dropped the connection. The next request dials
		// again.
		k.p.fail(q.conn, &silentError{k.addr, time.Duration(owed), "the client reconnects"})
	}
	switch {
	case q.done:
		return q.frame, q.parts, q.err
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("%s: no answer: %w", k.addr, ctx.Err())
	}
	return nil, nil, fmt.Errorf("%s: no answer: %w", k.addr, &timeoutError{limit: time.Duration(q.until - q.begun).Round(time.Millisecond)})
}

// refusal turns the frames that any request may be answered with into errors.
func (k *caller) refusal(frame []byte) error {
	switch wire.FrameType(frame) {
	case wire.TypeNotPrimary:
		var m wire.NotPrimary
		if err := wire.DecodeNotPrimary(frame, &m); err != nil {
			return &ProtocolError{Address: k.addr, What: "not-primary", Cause: err}
		}
		return &notPrimaryError{partition: wire.FramePartition(frame), address: k.addr, epoch: m.Epoch, hint: string(m.Address)}
	case wire.TypeReject:
		var m wire.Reject
		if err := wire.DecodeReject(frame, &m); err != nil {
			return &ProtocolError{Address: k.addr, What: "reject", Cause: err}
		}
		return &RejectError{Partition: wire.FramePartition(frame), Code: m.Code, Tag: m.Tag, Detail: m.Detail, Limit: m.Limit, Text: printable(m.Text)}
	}
	return nil
}

// onFrame finds the request that a frame answers: every answer has the request
// id first.
func (k *caller) onFrame(c *conn, frame []byte) error {
	t := wire.FrameType(frame)
	switch {
	case t == wire.TypeGoaway:
		_, err := c.checkGoaway(frame)
		return err
	case !wire.Row(t).Answers():
		return &ProtocolError{Address: c.addr, What: fmt.Sprintf("frame type %s was not asked for", t)}
	case len(frame) < wire.HeaderSize+8:
		return &ProtocolError{Address: c.addr, What: fmt.Sprintf("a %s frame of %d bytes", t, len(frame))}
	}
	id := binary.LittleEndian.Uint64(frame[wire.HeaderSize:])
	if id == 0 || id > k.next {
		return &ProtocolError{Address: c.addr, What: fmt.Sprintf("%s has reqID %d, allowed: 1..%d", t, id, k.next)}
	}
	q := k.calls[id]
	switch {
	case q == nil || q.done: // no request waits for it any more
	case t == wire.TypeQueryRows:
		q.parts = append(q.parts, append([]byte(nil), frame...))
	default:
		q.frame, q.done = append([]byte(nil), frame...), true
		q.w.signal()
	}
	return nil
}

func (k *caller) onBroken(_ *conn, cause error) {
	k.broken = cause
	for _, q := range k.calls {
		if !q.done {
			q.done, q.err = true, fmt.Errorf("%s: %w: %w", k.addr, errLost, cause)
			q.w.signal()
		}
	}
	go k.client.dropCaller(k) // takes Client.mu, which is locked before pump.mu elsewhere
}

func (k *caller) onPause(*conn, int64) {}

func (k *caller) close() {
	<-k.ready
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	if c := k.p.conn; c != nil {
		k.p.fail(c, ErrClosed)
	}
}
