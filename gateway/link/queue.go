package link

import (
	"context"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// queue holds the entries of a session from the source until the standby has committed them: first those that wait to be
// sent, of which it has the bytes, then those on their way, of which it has the size and the time.
type queue struct {
	limit int // bytes that wait
	begun time.Time

	mu      sync.Mutex
	bytes   fifo[byte] // of the entries that wait
	waiting fifo[entry]

	road      fifo[entry] // sent and not committed
	roadBytes int

	window  int // bytes and entries that may be on their way
	entries int

	newest   int64 // time of the last entry, by the source's clock
	newestAt time.Time
	news     chan struct{} // something was put or committed
	room     chan struct{} // something was taken
}

// fifo is a slice that is taken from at the front.
type fifo[T any] struct {
	all  []T
	head int
}

func (f *fifo[T]) items() []T { return f.all[f.head:] }
func (f *fifo[T]) len() int   { return len(f.all) - f.head }

func (f *fifo[T]) put(v ...T) {
	if f.head > len(f.all)/2 {
		f.all, f.head = append(f.all[:0], f.all[f.head:]...), 0
	}
	f.all = append(f.all, v...)
}

func (f *fifo[T]) take(n int) []T {
	f.head += n
	return f.all[f.head-n : f.head]
}

type entry struct {
	seq  uint64
	size int   // padded
	at   int64 // when the source made it, by its clock
	came time.Duration
}

func newQueue(limit int, s client.LinkState) *queue {
	return &queue{limit: limit, begun: time.Now(), window: max(s.Window, 1), entries: max(s.Entries, 1), news: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

var zeros [8]byte

// put adds an entry. It waits while the queue is full.
func (q *queue) put(ctx context.Context, e *client.LogEntry) error {
	size := order.Padded(len(e.Bytes))
	for {
		q.mu.Lock()
		if q.waiting.len() == 0 || q.bytes.len()+size <= q.limit {
			break
		}
		q.mu.Unlock()
		select {
		case <-q.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer q.mu.Unlock()
	q.bytes.put(e.Bytes...)
	q.bytes.put(zeros[:size-len(e.Bytes)]...)
	q.newest, q.newestAt = order.Received(e.Bytes), time.Now()
	q.waiting.put(entry{e.Seq, size, q.newest, q.newestAt.Sub(q.begun)})
	signal(q.news)
	return nil
}

// take moves entries to those on their way, and appends their bytes to dst: a frame's, within the standby's window.
func (q *queue) take(ctx context.Context, dst []byte, batch int, delay time.Duration) ([]byte, error) {
	for {
		dst, wait, ok := q.tryTake(dst, batch, delay)
		if ok {
			return dst, nil
		}
		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case <-q.news:
		case <-due:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryTake returns how long to wait for more entries, 0: until there are some, or room.
func (q *queue) tryTake(dst []byte, batch int, delay time.Duration) ([]byte, time.Duration, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.waiting.items()
	if len(waiting) == 0 {
		return dst, 0, false
	}
	if wait := delay + waiting[0].came - time.Since(q.begun); wait > 0 && len(waiting) < batch && q.bytes.len() < q.limit/2 {
		return dst, wait, false
	}
	n, size := 0, 0
	for n < min(len(waiting), batch) {
		next := size + waiting[n].size
		if n > 0 && next > wire.MaxLinkEntries || q.road.len()+n >= q.entries || q.roadBytes+next > q.window && q.road.len()+n > 0 {
			break
		}
		size = next
		n++
	}
	if n == 0 {
		return dst, 0, false // the window is full
	}
	dst = append(dst, q.bytes.take(size)...)
	q.road.put(q.waiting.take(n)...)
	q.roadBytes += size
	signal(q.room)
	return dst, 0, true
}

// committed forgets what the standby has committed.
func (q *queue) committed(s client.LinkState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.road.len() > 0 && q.road.items()[0].seq <= s.Committed.Seq {
		q.roadBytes -= q.road.take(1)[0].size
	}
	q.window, q.entries = max(s.Window, 1), max(s.Entries, 1)
	signal(q.news)
}

// outstanding reports whether something was sent that is not committed.
func (q *queue) outstanding() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.road.len() > 0
}

// lag is what the queue has: its bytes, and the age of the oldest entry by the source's clock, as far as that is known.
func (q *queue) lag(now time.Time) (bytes int, age time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := q.newest
	switch {
	case q.road.len() > 0:
		oldest = q.road.items()[0].at
	case q.waiting.len() > 0:
		oldest = q.waiting.items()[0].at
	default:
		return 0, 0
	}
	return q.roadBytes + q.bytes.len(), max(0, time.Duration(q.newest-oldest)) + now.Sub(q.newestAt)
}
