// Package sink carries the committed log of a partition to downstream systems. The queue
// is the log itself: nothing is copied, its bound is the order store's, and the position
// of the sink (the cursor) is an entry of the log.
//
// A Queue is a reader of the log's feed. It runs on its own goroutine, reads the store
// without a lock and never delays the data path. Only the primary's node writes, entries
// of its own term and earlier ones, never of a later term; a node that becomes primary
// continues where its own sink ends.
package sink

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Start is the state after the freed part of a log; the zero Start is a log held from its
// first entry.
type Start struct {
	Seq      uint64 // last entry that is freed
	Hash     uint64 // of it
	Lineage  uint64
	Sessions map[uint32]SessionID // by slot
}

// Position is the end of a sink. The zero Position is an empty sink.
type Position struct {
	Seq       uint64
	Hash      uint64 // of entry Seq
	FirstSeq  uint64 // first entry it holds
	FirstHash uint64 // of entry FirstSeq: distinguishes histories
	Epoch     uint64
	Lineage   uint64
}

// Sink takes committed entries in order, each once. It is used by one goroutine.
type Sink interface {
	// Open returns the position of the sink. It is called again after an error.
	Open() (Position, error)
	// Write makes the entries durable before it returns.
	Write(b *Batch) error
	// SetAside moves away the content of the sink, without losing it: it belongs to
	// another history than the log. The sink is empty then.
	SetAside() error
	Close() error
}

// Options of a Queue.
type Options struct {
	Name    string       // of the partition, for messages
	Log     *feed.Reader // of the queue alone
	Sink    Sink
	Metrics *metrics.SinkMetrics
	Logger  *slog.Logger
	// Advance is called with the sequence number up to which the sink holds everything, on
	// the queue's goroutine. It must not block.
	Advance func(seq uint64)
	// Start returns where the log begins, and has Log hold it there: from then on nothing
	// is freed that the queue has not released. Nil for a log that is never freed.
	Start func() (Start, error)
}

const (
	batchBytes = 1 << 20
	// A small batch is followed by a pause, in which the next one grows: each entry that a
	// queue waits for costs the data path a wake-up, and each batch the sink a sync.
	linger     = 2 * time.Millisecond
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second

	// A position is an entry of the log itself, and a line of the file. Reported after
	// each batch, that is one per order at a moderate rate, far more often than needed.
	// Memory to be freed waits for it, so bytes count too.
	reportEvery = time.Second
	reportBytes = batchBytes
)

// Queue moves one partition's entries.
type Queue struct {
	o       Options
	term    atomic.Uint64 // the epoch in which this node is the primary, 0 while it is not
	epoch   atomic.Uint64
	lineage atomic.Uint64
	cursor  atomic.Uint64
	durable atomic.Uint64
	failure atomic.Pointer[error] // of the last attempt, nil if there was none

	open     bool
	pos      Position
	batch    Batch
	reported uint64 // last cursor reported
	report   uint64 // cursor to report
	reportAt time.Time
	written  int // bytes since the last report
}

// New returns a queue that is not active.
func New(o Options) *Queue { return &Queue{o: o, batch: newBatch()} }

// SetActive sets whether this node is the partition's primary, the configuration, and the
// replicated cursor: the position of earlier primaries' sinks. An empty sink begins after
// it; another continues where it ends, so that it stays dense. It is called by one
// goroutine at a time.
func (q *Queue) SetActive(active bool, epoch, lineage, cursor uint64) {
	if active && q.term.Load() == epoch && q.lineage.Load() == lineage {
		q.cursor.Store(cursor)
		return
	}
	q.term.Store(0) // see writer
	q.epoch.Store(epoch)
	q.lineage.Store(lineage)
	q.cursor.Store(cursor)
	if active {
		q.term.Store(epoch)
	}
	q.o.Log.Nudge()
}

// writer returns the term for which the queue may write, if there is one.
func (q *Queue) writer() (w Writer, active bool) {
	w.Epoch = q.term.Load()
	w.Lineage = q.lineage.Load()
	return w, w.Epoch != 0 && q.term.Load() == w.Epoch
}

// Durable returns the sequence number up to which this node's sink holds everything. Safe
// for any goroutine.
func (q *Queue) Durable() uint64 { return q.durable.Load() }

// Err returns why writing fails at present, nil if it does not. Safe for any goroutine.
func (q *Queue) Err() error {
	if err := q.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Run works until ctx ends and closes the sink.
func (q *Queue) Run(ctx context.Context) {
	defer func() { _ = q.o.Sink.Close() }()
	defer q.letGo()
	backoff := minBackoff
	for ctx.Err() == nil {
		next, err := q.work()
		switch {
		case err != nil:
			q.open = false
			q.failure.Store(&err)
			q.o.Metrics.Errors.Inc()
			q.o.Logger.Error("sink failed, retrying", "partition", q.o.Name, "reason", err, "in", backoff.String())
			sleep(ctx, backoff)
			backoff = min(2*backoff, maxBackoff)
		case next == 0:
			q.failure.Store(nil)
			if backoff = minBackoff; q.batch.size < batchBytes {
				sleep(ctx, linger)
			}
		default:
			q.failure.Store(nil)
			q.o.Log.Await(ctx, next, q.due())
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// work writes the next batch. It returns the entry to wait for, 0 if there may be more to
// do at once.
func (q *Queue) work() (next uint64, err error) {
	writer, active := q.writer()
	if !active {
		q.letGo()
		return feed.Never, nil
	}
	if !q.open {
		if next, err := q.resume(); err != nil || next != 0 {
			return next, err
		}
	}
	committed := q.o.Log.Committed()
	b := &q.batch
	b.reset()
	b.Writer = writer
	for seq := q.pos.Seq + 1; seq <= committed && b.size < batchBytes; seq++ {
		entry := q.o.Log.Read(seq)
		if entry != nil && !b.mayWrite(entry) {
			break // until this node is the primary of its term
		}
		if err := b.add(entry); err != nil {
			return 0, fmt.Errorf("entry %d: %w", seq, err)
		}
	}
	if len(b.Entries) == 0 {
		q.tell()
		return committed + 1, nil
	}
	start := time.Now()
	if err := q.o.Sink.Write(b); err != nil {
		return 0, err
	}
	q.o.Metrics.Write.Observe(time.Since(start).Seconds())
	q.o.Metrics.Batch.Observe(float64(len(b.Entries)))
	q.o.Metrics.Age.Observe(max(0, time.Since(time.Unix(0, order.Received(b.Entries[0]))).Seconds()))
	q.o.Metrics.Entries.Add(float64(len(b.Entries)))
	q.advance(b)
	return 0, nil
}

// letGo is for a queue that stops reading: others write the sink now. Entries it lacks may
// be freed before it is active again.
func (q *Queue) letGo() {
	if q.open || q.o.Log.Held() != 0 {
		q.open = false
		q.o.Log.Hold(0)
	}
}

func (q *Queue) advance(b *Batch) {
	last := b.Entries[len(b.Entries)-1]
	q.pos.Seq, q.pos.Hash = order.Seq(last), order.Hash(last)
	q.durable.Store(q.pos.Seq)
	q.o.Log.Hold(q.pos.Seq + 1)
	// A cursor entry is an entry too: reporting that one was written would make another,
	// endlessly.
	if b.news {
		q.report = q.pos.Seq
	}
	q.written += b.size
	q.tell()
}

// due returns when the cursor must be reported although nothing more is written, 0 if
// never.
func (q *Queue) due() time.Duration {
	if q.report <= q.reported {
		return 0
	}
	return max(reportEvery-time.Since(q.reportAt), time.Millisecond)
}

// tell reports the cursor when it is due.
func (q *Queue) tell() {
	if q.report <= q.reported || q.written < reportBytes && time.Since(q.reportAt) < reportEvery {
		return
	}
	q.reported, q.reportAt, q.written = q.report, time.Now(), 0
	q.o.Advance(q.report)
}

// resume opens the sink and finds the position in the log where it ends. It returns the
// entry to wait for while the log has not reached it, else 0.
func (q *Queue) resume() (next uint64, err error) {
	if q.pos, err = q.o.Sink.Open(); err != nil {
		return 0, err
	}
	var start Start
	if q.o.Start != nil {
		if start, err = q.o.Start(); err != nil {
			return 0, err
		}
	}
	committed := q.o.Log.Committed()
	if q.pos.Seq > 0 {
		if why := q.foreign(committed, &start); why != "" {
			q.o.Logger.Warn("the content of the sink cannot be continued, it is set aside", "partition", q.o.Name, "reason", why, "seq", q.pos.Seq)
			if err := q.o.Sink.SetAside(); err != nil {
				return 0, err
			}
			q.pos = Position{}
		}
	}
	if q.pos.Seq == 0 {
		q.pos.Seq = max(q.cursor.Load(), start.Seq)
	}
	switch {
	case q.pos.FirstSeq > committed: // its hash decides whether it is this history
		return q.pos.FirstSeq, nil
	case q.pos.Seq > committed:
		return q.pos.Seq, nil
	}
	if err := q.batch.rebuild(q.o.Log, q.pos, &start); err != nil {
		return 0, err
	}
	q.open = true
	q.durable.Store(q.pos.Seq)
	q.o.Log.Hold(q.pos.Seq + 1)
	q.report = q.pos.Seq
	return 0, nil
}

// foreign returns why the content of the sink is not a prefix of the log that can be
// continued, "" if it may be.
func (q *Queue) foreign(committed uint64, start *Start) string {
	if q.pos.Epoch > q.epoch.Load() {
		return fmt.Sprintf("it ends in epoch %d, the partition is in epoch %d", q.pos.Epoch, q.epoch.Load())
	}
	for _, at := range []struct{ seq, hash uint64 }{{q.pos.FirstSeq, q.pos.FirstHash}, {q.pos.Seq, q.pos.Hash}} {
		h := start.Hash
		switch {
		case at.seq > committed, at.seq < start.Seq:
			continue
		case at.seq > start.Seq:
			h = order.Hash(q.o.Log.Read(at.seq))
		}
		if h != at.hash {
			return fmt.Sprintf("its entry %d has hash %016x, the log's %016x", at.seq, at.hash, h)
		}
	}
	if q.pos.Seq < start.Seq {
		return fmt.Sprintf("it ends at %d; entries up to %d are freed, the sinks of other pods hold them", q.pos.Seq, start.Seq)
	}
	if q.pos.Seq > committed && q.lineage.Load() > q.pos.Lineage {
		return fmt.Sprintf("it holds entries up to %d of lineage %d, lineage %d has %d", q.pos.Seq, q.pos.Lineage, q.lineage.Load(), committed)
	}
	return ""
}
