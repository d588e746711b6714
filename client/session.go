package client

import (
	"context"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Session sends orders to one partition and is safe for concurrent use: one
// connection to the partition's primary, one replicated session of the grid.
// It reconnects by itself and sends what is unanswered again under the same
// numbers, in order, so that an order is applied once whatever happens between.
//
// A goroutine that is the only user of a session writes and reads the socket
// itself. Give each latency-critical thread a Session of its own.
type Session struct {
	client    *Client
	partition wire.PartitionID
	id        [2]uint64
	io        IO
	patience  time.Duration // versionPatience
	regions   bool          // it is for changes of regions
	reads     readerKind    // what a Reader's is for; 0: orders
	turn      int           // of readsOfBackup: which copy comes next

	p pump // p.mu guards all fields below

	win        window
	slot, gen  uint32
	empties    empties
	expected   uint64 // what a node last reported as missing, 0 for nothing
	epoch      uint64
	attempt    uint64 // of opening the session; rises with every connection
	opened     bool   // slot and gen are valid
	evicting   bool   // the grid forgot the session; answers still come in
	closed     bool
	recovering bool
	suspecting bool
	stop       chan struct{} // closed by Close

	lookups lookups
	awaited awaited

	completed  []completion // completions whose callbacks have not run, and
	found      []found      // reads
	spareDone  []completion // empty, to take turns with completed
	spareFound []found
	view       OrderView
	onBatch    func()
	calling    bool
	async      int // unanswered orders of SubmitAsync, and reads
	reader     bool
	idle       bool
	wake       chan struct{} // wakes the idle reader goroutine

	lastAck   uint64 // highest acknowledged clientSeq
	lastSeq   uint64 // and the place in the log it got
	lastOK    int64  // monotonic time of the last answer
	lastSweep int64
	suspected int64  // when the table was last requested on suspicion
	member    string // member id of the node connected to
	broken    error  // permanent: no node will ever accept this session
	followed  uint64 // highest epoch that was followed without a pause
	trouble   trouble
	stats     Stats
	outages   outageLog
}

func newSession(c *Client, partition wire.PartitionID, auto IO, reads readerKind) *Session {
	if c.cfg.IO != IOAuto {
		auto = c.cfg.IO
	}
	s := &Session{
		client: c, partition: partition, id: randomID(), io: auto, win: newWindow(c.cfg.MaxInFlight),
		stop: make(chan struct{}), wake: make(chan struct{}, 1), reads: reads,
	}
	if reads != 0 {
		s.lookups = newLookups(c.cfg.MaxInFlight)
	}
	s.p.owner, s.patience = s, versionPatience
	return s
}

// Partition the session sends to.
func (s *Session) Partition() wire.PartitionID { return s.partition }

// Submit sends one FIX message (35=D, F or G) and waits until it is committed on every
// in-sync copy. See FateOf for what an error means. fix is not kept. Without a
// deadline in ctx, Config.RequestTimeout applies; a cancelled or passed ctx is
// noticed within about 20 ms. With the window full, Submit waits. An order that is refused
// with ErrVersionAwaited is sent again for up to a second.
func (s *Session) Submit(ctx context.Context, fix []byte) (Receipt, error) {
	return s.submit(ctx, fix, nil, true)
}

// TrySubmit is Submit that returns ErrWindowFull at once instead of waiting for room.
func (s *Session) TrySubmit(ctx context.Context, fix []byte) (Receipt, error) {
	return s.submit(ctx, fix, nil, false)
}

// submit sends an order, or with op a change of a region.
func (s *Session) submit(ctx context.Context, fix []byte, op *regionOp, wait bool) (Receipt, error) {
	if err := ctx.Err(); err != nil {
		return Receipt{}, &NotSentError{Partition: s.partition, Cause: err}
	}
	now := nanotime()
	deadline := s.client.deadline(ctx, now)
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if op == nil {
		if err := sized(s.partition, fix); err != nil {
			return Receipt{}, err
		}
	}
	if err := s.admit(ctx, now, deadline, wait); err != nil {
		return Receipt{}, err
	}
	o := s.win.take()
	o.op = op
	o.payload, o.submitted, o.deadline = fix, now, deadline
	s.submitted(o)
	s.push()
	if s.listens() {
		s.wakeReader()
	}
	for !o.done {
		s.p.wait(ctx, &o.w, min(o.deadline, s.awaited.until()))
		if err := ctx.Err(); err != nil && !o.done && !s.stopAwaiting(o, err) {
			s.giveUp(o.clientSeq, join(err, s.trouble.last))
		}
	}
	s.p.leave(&o.w)
	receipt, err := o.receipt, o.err
	s.win.release(o)
	return receipt, err
}

// admit waits for room in the window and makes the checks that need no node.
func (s *Session) admit(ctx context.Context, now, deadline int64, wait bool) error {
	if s.full() && !s.closed {
		if !wait {
			s.connect() // the answers that make room have to come over a connection
			s.stats.WindowFull++
			return ErrWindowFull
		}
		w := waiters.Get().(*waiter)
		w.wantsRoom = true
		for s.full() && !s.closed && ctx.Err() == nil && nanotime() < deadline {
			s.waitUntil(ctx, w, deadline)
		}
		w.wantsRoom = false
		s.p.leave(w)
		waiters.Put(w)
		if s.full() && !s.closed {
			return &NotSentError{Partition: s.partition, Waited: time.Duration(nanotime() - now), Cause: s.why(ctx, deadline-now)}
		}
	}
	if s.closed {
		return &NotSentError{Partition: s.partition, Cause: ErrClosed}
	}
	return nil
}

// waitUntil is pump.wait with its own deadline, for a caller that has no order in the window that
// the sweep would end. It is rare enough for a timer.
func (s *Session) waitUntil(ctx context.Context, w *waiter, deadline int64) {
	s.connect()
	t := time.AfterFunc(time.Duration(deadline-nanotime()), w.signal)
	s.p.wait(ctx, w, deadline)
	t.Stop()
}

// why is what ended a wait for room or a connection.
func (s *Session) why(ctx context.Context, limit int64) error {
	if s.broken != nil {
		return s.broken
	}
	cause := &timeoutError{limit: time.Duration(limit).Round(time.Millisecond), last: s.trouble.last}
	if err := ctx.Err(); err != nil {
		return join(err, cause.last)
	}
	return cause
}

// open waits for the connection. ctx has a deadline.
func (s *Session) open(ctx context.Context) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	now := nanotime()
	deadline := s.client.deadline(ctx, now)
	w := waiters.Get().(*waiter)
	defer waiters.Put(w)
	defer s.p.leave(w)
	s.p.list(w)
	s.connect()
	for s.p.conn == nil && s.broken == nil && !s.closed && ctx.Err() == nil && nanotime() < deadline {
		s.p.wait(ctx, w, deadline)
	}
	switch {
	case s.p.conn != nil:
		return nil
	case s.closed:
		return ErrClosed
	}
	return fmt.Errorf("client: open a session of %s: %w: %w", s.partition, ErrUnavailable, s.why(ctx, deadline-now))
}

// sized rejects a message that no node accepts for its size.
func sized(p wire.PartitionID, fix []byte) error {
	if len(fix) == 0 || len(fix) > wire.MaxPayload {
		return tooLarge(p, len(fix))
	}
	return nil
}

func tooLarge(p wire.PartitionID, n int) error {
	if n == 0 {
		return &RejectError{Partition: p, Code: wire.CodeBadFIX, Text: "not sent: the message is empty"}
	}
	return &RejectError{Partition: p, Code: wire.CodeTooLarge, Detail: wire.MaxPayload, Text: "not sent: the message exceeds the largest size a node accepts (65472 bytes)"}
}

// send gives o its number and, with a connection, its place in the write
// buffer. Without one it goes out after the reconnect.
func (s *Session) send(o *pending) {
	s.win.add(o)
	if c := s.p.conn; c != nil && !s.evicting {
		s.encode(c, o.clientSeq)
		return
	}
	if s.opened {
		s.troubled(o.submitted, o.submitted, nil)
	}
	s.connect()
}

// encode appends the Submit frame of one cell. A cell whose order was given up,
// or that was refused, is sent without payload: the node cannot accept that, so
// the number is used up and nothing else happens, unless the order had been
// applied before; then the stored reply comes back.
func (s *Session) encode(c *conn, seq uint64) {
	cell := s.win.at(seq)
	if cell.isSettled() {
		s.encodeEmpty(c, seq)
		return
	}
	m := wire.Submit{Epoch: s.epoch, Slot: s.slot, Generation: s.gen, ClientSeq: seq}
	if cell.ord != nil {
		m.Payload = cell.ord.payload
	}
	if cell.sent {
		cell.resent = true
		s.stats.Resent++
	}
	cell.sent = true
	if cell.ord != nil && cell.ord.op != nil {
		s.encodeRegion(c, seq, cell.ord.op)
		return
	}
	c.out = wire.AppendSubmit(c.out, s.partition, &m)
}

// encodeEmpty uses up a number that no caller waits for.
func (s *Session) encodeEmpty(c *conn, seq uint64) {
	s.empties.sent(seq)
	c.out = wire.AppendSubmit(c.out, s.partition, &wire.Submit{Epoch: s.epoch, Slot: s.slot, Generation: s.gen, ClientSeq: seq})
}

func (s *Session) push() {
	if c := s.p.conn; c != nil {
		s.p.flush(c, false)
	}
}

// finish gives an order its outcome. The caller updates the cell.
func (s *Session) finish(o *pending, r Receipt, err error) {
	if o == s.awaited.probe {
		s.probed(err)
	}
	if o.callback != nil {
		s.completed = append(s.completed, completion{o.callback, r, err})
		s.async--
		s.win.release(o)
		return
	}
	o.receipt, o.err, o.done = r, err, true
	o.w.signal()
}

// settle marks a number as answered and moves the head over answered ones.
func (s *Session) settle(seq uint64) {
	cell := s.win.at(seq)
	*cell = cell.settled()
	for s.win.head < s.win.next && s.win.at(s.win.head).isSettled() {
		s.win.head++
	}
	s.room()
}

// room wakes the callers that wait for room in the window.
func (s *Session) room() {
	n := int(s.win.limit) - int(s.win.inFlight()) - len(s.awaited.orders)
	for w := s.p.first; w != nil && n > 0; w = w.next {
		if w.wantsRoom {
			w.signal()
			n--
		}
	}
}

// giveUp ends waiting for an answer. The number stays in the window until the
// grid has answered it; it is never sent with its payload again.
func (s *Session) giveUp(seq uint64, cause error) {
	cell := s.win.at(seq)
	o := cell.ord
	cell.ord = nil
	waited := time.Duration(nanotime() - o.submitted)
	if cell.sent {
		s.stats.Unknown++
		s.finish(o, Receipt{}, &UnknownOutcomeError{Partition: s.partition, ClientSeq: seq, Waited: waited, Cause: cause})
	} else {
		s.stats.NotSent++
		s.finish(o, Receipt{}, &NotSentError{Partition: s.partition, Waited: waited, Cause: cause})
	}
	// Numbers at the end that no node has seen can be reused.
	for s.win.next > s.win.head {
		if last := s.win.at(s.win.next - 1); last.ord != nil || last.sent {
			break
		}
		s.win.next--
	}
	s.room()
}

// owed reports whether an answer is outstanding.
func (s *Session) owed() bool { return s.win.inFlight() > 0 || !s.lookups.empty() }

// full reports whether the session has as many orders as it may.
func (s *Session) full() bool { return s.win.inFlight()+uint64(len(s.awaited.orders)) >= s.win.limit }

// Drain waits until no order of the session is unanswered and the callbacks of
// all have returned. Not to be called from a callback.
func (s *Session) Drain(ctx context.Context) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.push()
	w := waiters.Get().(*waiter)
	defer waiters.Put(w)
	defer s.p.leave(w)
	for (s.owed() || len(s.awaited.orders) > 0 || len(s.completed)+len(s.found) > 0 || s.calling) && !s.closed {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.owed() || len(s.awaited.orders) > 0 {
			s.waitUntil(ctx, w, nanotime()+int64(tick))
			continue
		}
		// Only callbacks still run, on another goroutine: rare, short, and no
		// reason to burden every batch of answers with a signal.
		s.p.mu.Unlock()
		time.Sleep(100 * time.Microsecond)
		s.p.mu.Lock()
	}
	return nil
}

// Close ends the session. Orders without an answer end with ErrUnknownOutcome
// or ErrNotSent, both with cause ErrClosed; those that wait to be sent again, with their refusal.
func (s *Session) Close() error {
	s.p.mu.Lock()
	if s.closed {
		s.p.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.stop)
	if c := s.p.conn; c != nil {
		s.p.fail(c, ErrClosed)
	}
	for seq := s.win.head; seq < s.win.next; seq++ {
		if s.win.at(seq).ord != nil {
			s.giveUp(seq, ErrClosed)
		}
	}
	s.endAwaited(ErrClosed)
	s.giveUpLookups(ErrClosed)
	s.p.wakeAll()
	s.wakeReader()
	s.runCallbacks(nanotime())
	s.p.mu.Unlock()
	s.client.forget(s)
	return nil
}

// Stats of the session so far.
func (s *Session) Stats() Stats {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.stats
}
