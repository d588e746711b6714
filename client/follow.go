package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// ErrReplaced: another follower follows under the same name.
var ErrReplaced = errors.New("replaced by another follower of the name")

// Follower follows the committed log of a partition as it grows. It gets each entry once, in
// order, over as many connections and replicas as that takes. Next, After and Close are for one goroutine at a time, Advance
// and Select for any.
type Follower struct {
	c        *Client
	o        FollowOptions
	after    Position
	atEnd    bool
	conn     *conn
	reqID    uint64
	epoch    uint64 // of the table when it connected
	batch    FollowBatch
	window   int   // as granted
	taken    int   // bytes not credited
	heardAt  int64 // nanotime
	pingedAt int64
	lookedAt int64
	back     backoff
	advances advances
	unended  []byte // executions of an entry that the next frame goes on with
	answered bool   // the replica has answered the request
	// With FollowOptions.Selection: the present one, and which of them the node was told.
	selection  atomic.Pointer[numbered]
	selectSent uint32
}

const (
	defaultFollowWindow = 1 << 20
	// followSilence is how long a replica may say nothing before it is asked whether it is there.
	followSilence = time.Second
	// followLook is how often a follower that gets nothing looks where the partition is.
	followLook = 5 * time.Second
)

// Follow returns a follower; it connects at the first Next.
func (c *Client) Follow(_ context.Context, o FollowOptions) (*Follower, error) {
	if err := c.checkPartition(o.Partition); err != nil {
		return nil, err
	}
	if o.Window == 0 {
		o.Window = defaultFollowWindow
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	f := &Follower{c: c, o: o, after: o.After, atEnd: o.AtEnd, batch: FollowBatch{Partition: o.Partition}}
	if o.Selection != nil {
		f.selection.Store(&numbered{*o.Selection, 1})
	}
	f.advances.init(f)
	return f, nil
}

// After is the last entry that was examined for the batches of Next.
func (f *Follower) After() Position { return f.after }

// Close ends the follower. What was advanced and not sent yet is lost: see Flush.
func (f *Follower) Close() error {
	f.disconnect()
	f.advances.close()
	return nil
}

// Next returns the next batch, which may be without entries. It waits until there is one, and
// connects as often as it has to, until ctx ends. Other errors are for good: *SnapshotRequiredError,
// *DivergedError, ErrReplaced, *RejectError, *LogError, *GoawayError.
func (f *Follower) Next(ctx context.Context) (*FollowBatch, error) {
	var last error
	for {
		if err := f.advances.failure(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil || f.c.ctx.Err() != nil {
			if f.c.ctx.Err() != nil {
				last = join(last, ErrClosed)
			}
			return nil, fmt.Errorf("client: follow %s behind entry %d: %w", f.o.Partition, f.after.Seq, join(ctx.Err(), last))
		}
		if f.conn == nil {
			if !f.back.wait(ctx.Done(), f.c.cfg.RetryMax) {
				continue
			}
			if err := f.connect(ctx); err != nil {
				if f.final(err) {
					return nil, err
				}
				last = err
				f.lookAround(ctx)
				continue
			}
		}
		batch, err := f.read(ctx)
		switch {
		case err == nil && batch != nil:
			f.back = backoff{}
			return batch, nil
		case err == nil:
		case f.final(err):
			f.disconnect()
			return nil, err
		default:
			f.disconnect()
			last = err
			if ctx.Err() == nil {
				f.c.cfg.Logger.Info("follower goes on elsewhere", "partition", f.o.Partition.String(), "behind", f.after.Seq, "reason", err)
				f.lookAround(ctx)
			}
		}
	}
}

// final reports whether following again cannot help.
func (f *Follower) final(err error) bool {
	var snapshot *SnapshotRequiredError
	var diverged *DivergedError
	var fault *LogError
	var reject *RejectError
	return permanent(err) || errors.Is(err, errUnselected) || errors.Is(err, ErrReplaced) || errors.Is(err, ErrClosed) || errors.As(err, &snapshot) || errors.As(err, &diverged) || errors.As(err, &fault) ||
		errors.As(err, &reject) && !passing(reject.Code)
}

// lookAround asks where the partition is now.
func (f *Follower) lookAround(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.c.attemptTimeout(0))
	defer cancel()
	f.c.refresh(ctx, f.o.Partition, "") //nolint:errcheck // the next attempt shows it
}

func (f *Follower) disconnect() {
	if f.conn != nil {
		f.conn.st.Close() //nolint:errcheck // nothing more is read
		f.conn = nil
	}
}

// connect asks a replica for the log behind what the follower holds.
func (f *Follower) connect(ctx context.Context) error {
	addr := f.o.Replica
	if addr == "" {
		addr = f.c.replica(f.o.Partition, true, f.back.attempts)
	}
	f.epoch = f.c.epochOf(f.o.Partition)
	if addr == "" {
		return fmt.Errorf("%s has no copy in sync at epoch %d", f.o.Partition, f.epoch)
	}
	f.reqID++
	m := wire.Follow{ReqID: f.reqID, FromSeq: f.after.Seq + 1, FromHash: f.after.Hash, Lineage: f.after.Lineage, Window: uint32(f.o.Window), Name: []byte(f.o.Name)}
	if f.atEnd {
		m.FromSeq = 0
	}
	if f.o.Account != "" {
		m.Filter, m.Value = wire.FilterAccount, []byte(f.o.Account)
	}
	request := wire.AppendFollow(nil, f.o.Partition, &m)
	if f.streams() {
		request = f.streamRequest(&m)
	}
	if f.o.Selection != nil {
		request = append(request, f.selectFrame()...)
	}
	dial, cancel := context.WithTimeout(ctx, f.c.attemptTimeout(time.Second))
	defer cancel()
	conn, _, err := f.c.dialNode(dial, IONet, addr, request)
	if err != nil {
		return err
	}
	conn.grow(readerBuffer)
	f.conn, f.taken, f.window, f.unended, f.answered = conn, 0, f.o.Window, f.unended[:0], false
	f.heardAt, f.pingedAt = nanotime(), 0
	return nil
}

// read returns the next batch, nil if there is none yet.
func (f *Follower) read(ctx context.Context) (*FollowBatch, error) {
	k := f.conn
	for {
		frame, rest, err := wire.Split(k.in[k.r:k.w])
		if err != nil {
			return nil, &ProtocolError{Address: k.addr, What: "undecodable bytes", Cause: err}
		}
		if frame != nil {
			k.r = k.w - len(rest)
			batch, err := f.handle(frame)
			if err != nil || batch != nil {
				return batch, err
			}
			continue
		}
		if err := errors.Join(f.credit(ctx), f.sendSelection(ctx)); err != nil {
			return nil, err
		}
		now := nanotime()
		n, err := k.st.Read(k.space(), now+int64(tick))
		k.w += n
		switch {
		case n > 0:
			f.heardAt, f.pingedAt, f.lookedAt = nanotime(), 0, 0
		case errors.Is(err, errTick):
			return nil, f.silent(ctx)
		case err != nil:
			return nil, fmt.Errorf("%s: %w: %w", k.addr, errLost, err)
		}
	}
}

// credit gives the node room for what was taken in, a part of the window at a time.
func (f *Follower) credit(ctx context.Context) error {
	if f.taken < f.window/4 {
		return nil
	}
	f.taken = 0
	return f.send(ctx, wire.AppendFollowCredit(nil, f.o.Partition, &wire.FollowCredit{ReqID: f.reqID, Through: f.after.Seq, Window: uint32(f.o.Window)}))
}

func (f *Follower) send(ctx context.Context, frame []byte) error {
	return f.conn.send(ctx, frame, nanotime()+int64(f.c.attemptTimeout(time.Second)))
}

// silent is for a replica from which nothing comes: is it there, and is it still one of the partition?
func (f *Follower) silent(ctx context.Context) error {
	now := nanotime()
	quiet := time.Duration(now - f.heardAt)
	patience := max(f.c.cfg.SuspectAfter, followSilence)
	switch {
	case ctx.Err() != nil:
		return nil
	case f.pingedAt != 0 && now-f.pingedAt > int64(patience):
		return &silentError{f.conn.addr, quiet, "another replica is followed"}
	case f.pingedAt == 0 && quiet > patience:
		f.pingedAt = now
		return f.send(ctx, wire.AppendRequest(nil, wire.TypePing, &wire.Request{ReqID: f.reqID}))
	}
	return nil
}

// handle takes a frame in; nil: it is no batch.
func (f *Follower) handle(frame []byte) (*FollowBatch, error) {
	addr, first := f.conn.addr, !f.answered
	f.answered = true
	switch t := wire.FrameType(frame); t {
	case wire.TypeFollowEntries:
		var m wire.FollowEntries
		if err := wire.DecodeFollowEntries(frame, &m); err != nil {
			return nil, &ProtocolError{Address: addr, What: "follow-entries", Cause: err}
		}
		f.taken += len(frame)
		f.batch.Executions = f.batch.Executions[:0]
		return f.take(&m)
	case wire.TypeStreamPart:
		return f.takePart(frame)
	case wire.TypeStreamSelected:
		return nil, f.selected(frame)
	case wire.TypeFollowEnd:
		var m wire.FollowEnd
		if err := wire.DecodeFollowEnd(frame, &m); err != nil {
			return nil, &ProtocolError{Address: addr, What: "follow-end", Cause: err}
		}
		return nil, f.ended(&m)
	case wire.TypePong:
		return nil, f.stillThere()
	case wire.TypeReject, wire.TypeNotPrimary:
		return nil, (&caller{client: f.c, addr: addr}).refusal(frame)
	case wire.TypeGoaway:
		_, err := f.conn.checkGoaway(frame)
		if first && f.o.Selection != nil {
			return nil, unselected(f.o.Partition, err)
		}
		return nil, err
	default:
		return nil, &ProtocolError{Address: addr, What: fmt.Sprintf("frame type %s was not asked for", t)}
	}
}

// stillThere leaves a replica that is quiet, if the partition has moved on without it.
func (f *Follower) stillThere() error {
	now := nanotime()
	f.pingedAt = 0
	f.heardAt = now
	if f.o.Replica != "" || now-f.lookedAt < int64(followLook) {
		return nil
	}
	first := f.lookedAt == 0
	f.lookedAt = now
	if first {
		return nil
	}
	go f.c.refresh(f.c.ctx, f.o.Partition, "") //nolint:errcheck // the next look sees what became of it
	info, _ := f.c.partition(f.o.Partition)
	if info.Epoch <= f.epoch {
		return nil
	}
	f.epoch = info.Epoch
	for _, m := range info.Members {
		if m.InSync && m.Address == f.conn.addr {
			return nil
		}
	}
	return fmt.Errorf("%s: no copy of %s in sync any more at epoch %d", f.conn.addr, f.o.Partition, info.Epoch)
}

// take checks a part of the log and makes a batch of it.
func (f *Follower) take(m *wire.FollowEntries) (*FollowBatch, error) {
	fault := func(seq uint64, format string, args ...any) (*FollowBatch, error) {
		return nil, &LogError{Partition: f.o.Partition, Address: f.conn.addr, Seq: seq, What: fmt.Sprintf(format, args...)}
	}
	if f.atEnd {
		f.atEnd, f.after = false, Position{Seq: m.From - 1}
	}
	if m.From != f.after.Seq+1 {
		return fault(m.From, "it begins a part of the stream, allowed: entry %d", f.after.Seq+1)
	}
	if m.Window > 0 {
		f.window = int(m.Window)
	}
	b := &f.batch
	b.From, b.CommitSeq, b.Address, b.Entries = m.From, m.CommitSeq, f.conn.addr, b.Entries[:0]
	hash, known, seq := f.after.Hash, f.after.Hash != 0 || f.after.Seq == 0, f.after.Seq
	for rest := m.Entries; len(rest) > 0; {
		var e LogEntry
		var err error
		if e.Bytes, rest, err = order.NextEntry(rest, &e.Entry); err != nil {
			return fault(seq+1, "%v", err)
		}
		switch {
		case e.Seq <= seq || e.Seq > m.Through || f.o.whole() && e.Seq != seq+1:
			return fault(e.Seq, "it follows entry %d in a part that ends with %d", seq, m.Through)
		case f.o.whole() && known && e.PrevHash != hash:
			return fault(e.Seq, "prevHash is %016x, allowed: the hash of the entry before, %016x", e.PrevHash, hash)
		}
		hash, known, seq = order.Hash(e.Bytes), true, e.Seq
		b.Entries = append(b.Entries, e)
	}
	switch {
	case f.o.whole() && seq != m.Through:
		return fault(seq+1, "it is missing in a part that ends with %d", m.Through)
	case known && seq == m.Through && hash != m.ThroughHash && (len(b.Entries) > 0 || m.Through == f.after.Seq):
		return fault(seq, "its hash is %016x, the replica says %016x", hash, m.ThroughHash)
	}
	f.after = Position{Seq: m.Through, Hash: m.ThroughHash, Lineage: m.Lineage}
	b.Through = f.after
	return b, nil
}

// ended returns what the end of a stream means.
func (f *Follower) ended(m *wire.FollowEnd) error {
	text := printable(m.Text)
	switch m.Reason {
	case wire.EndSnapshotRequired:
		return &SnapshotRequiredError{Partition: f.o.Partition, Wanted: f.after.Seq + 1, After: Position{Seq: m.Seq - 1, Hash: m.Hash}, Text: text}
	case wire.EndDiverged:
		return &DivergedError{Partition: f.o.Partition, Held: f.after, Hash: m.Hash, Text: text}
	case wire.EndReplaced:
		return fmt.Errorf("client: follow %s: %w: %s", f.o.Partition, ErrReplaced, text)
	case wire.EndNotPermitted:
		return &RejectError{Partition: f.o.Partition, Code: wire.CodeNotPermitted, Text: text}
	}
	return fmt.Errorf("%s: %s: %s", f.conn.addr, m.Reason, text)
}
