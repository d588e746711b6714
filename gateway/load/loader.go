package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

// Loader sends the rows of a source to a target.
type Loader struct {
	to      Target
	src     Source
	o       Options
	resumed int64
	begun   time.Time

	mu      sync.Mutex
	room    *sync.Cond // of mu: a row was settled, or the load failed
	track   *track
	waiting int             // rows that are not settled
	alone   map[string]bool // keys of those of which only one may be on its way
	err     error           // for good
	trouble string
	stop    context.CancelCauseFunc
}

// New returns a Loader. It reads the state file, which names the source, into, what is loaded into: the grid, or the grid
// and the region, and how the target puts rows.
func New(to Target, into string, src Source, o Options) (*Loader, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	t, err := openTrack(&o, src.ID(), into, to.manner())
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	l := &Loader{to: to, src: src, o: o, track: t, resumed: t.Rows, alone: map[string]bool{}}
	l.room = sync.NewCond(&l.mu)
	return l, nil
}

// row is a row on its way.
type row struct {
	n       int64
	where   string
	key     []byte
	message []byte
	clOrdID string
	alone   string // no other row with this is sent before it is settled; empty: any may be
}

// Run loads until the source ends, ctx ends or a row cannot be settled. The Counts contain the rows of earlier runs.
// After an error the load may be resumed. Without one it has ended: a load of orders keeps its state, so that no order is
// sent by another run, one of values does not.
func (l *Loader) Run(ctx context.Context) (Counts, error) {
	ctx, l.stop = context.WithCancelCause(ctx)
	defer l.stop(nil)
	l.begun = time.Now()
	stopped := context.AfterFunc(ctx, func() { l.fail(context.Cause(ctx)) })
	defer stopped()
	ticks := make(chan struct{})
	var reports sync.WaitGroup
	reports.Go(func() { l.reports(ticks) })
	l.fail(l.submitAll(ctx))
	err := l.settleAll()
	close(ticks)
	reports.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.track.Counts, errors.Join(err, l.track.close(err == nil && !l.to.manner().once))
}

// Resumed is how many rows were settled by earlier runs.
func (l *Loader) Resumed() int64 { return l.resumed }

// settleAll waits for the rows on their way; after an error only for answers that are about to come.
func (l *Loader) settleAll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil && l.waiting > 0 {
		l.room.Wait()
	}
	if l.err == nil {
		return nil
	}
	end := time.Now().Add(time.Second)
	defer l.wakeAfter(time.Until(end)).Stop()
	for l.waiting > 0 && time.Now().Before(end) {
		l.room.Wait()
	}
	return l.err
}

// submitAll reads the source to its end.
func (l *Loader) submitAll(ctx context.Context) error {
	for n := int64(1); ; n++ {
		r, err := l.src.Next()
		switch {
		case errors.Is(err, io.EOF) && n-1 < l.resumed:
			return fmt.Errorf("load: the source has %d rows, and %d were settled before: it is another one", n-1, l.resumed)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("load: row %d: %w", n, err)
		case n <= l.resumed:
			continue
		}
		l.pace(ctx, n-l.resumed)
		if !l.take() {
			return nil
		}
		l.submit(ctx, n, &r)
	}
}

// pace waits until the nth row of this run is due.
func (l *Loader) pace(ctx context.Context, n int64) {
	if l.o.Rate == 0 {
		return
	}
	wait := time.Until(l.begun.Add(time.Duration(float64(n-1) / l.o.Rate * float64(time.Second))))
	if wait < time.Millisecond {
		return
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}

// take waits for room for one more row, and reports whether the load goes on.
func (l *Loader) take() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil && l.waiting >= l.o.InFlight {
		l.room.Wait()
	}
	l.waiting++
	return l.err == nil
}

// submit sends a row, or refuses it.
func (l *Loader) submit(ctx context.Context, n int64, from *Row) {
	r := &row{n: n, where: from.Where, key: bytes.Clone(from.Key), message: bytes.Clone(from.Message)}
	if from.Err != nil {
		l.settle(r, Refused, &Refusal{By: "source", Reason: from.Err.Error()})
		return
	}
	if why := l.to.check(r); why != nil {
		l.settle(r, Refused, why)
		return
	}
	if !l.enter(r) {
		return
	}
	for {
		err := l.to.begin(r, func(_ client.Receipt, err error) { l.answered(ctx, r, err) })
		if !errors.Is(err, client.ErrWindowFull) {
			if err != nil {
				l.answered(ctx, r, err)
			}
			return
		}
		if !l.wait() {
			return
		}
	}
}

// enter waits until no row is on its way that this one must not overtake, and reports whether the load goes on.
func (l *Loader) enter(r *row) bool {
	if r.alone == "" {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil && l.alone[r.alone] {
		l.room.Wait()
	}
	l.alone[r.alone] = true
	return l.err == nil
}

// wait waits until a row is settled, at most for a moment: rows that are tried again may have the whole window.
func (l *Loader) wait() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.wakeAfter(10 * time.Millisecond).Stop()
	if l.err == nil {
		l.room.Wait()
	}
	return l.err == nil
}

// wakeAfter wakes who waits for room. It is called with mu held and wakes with mu held, so that the wake-up cannot come
// before the wait.
func (l *Loader) wakeAfter(d time.Duration) *time.Timer {
	return time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.room.Broadcast()
	})
}

// answered must not block: it runs on the client's goroutine.
func (l *Loader) answered(ctx context.Context, r *row, err error) {
	switch {
	case err == nil:
		l.settle(r, Accepted, nil)
	case l.to.final(err):
		l.refused(r, err)
	case l.ends(r, err):
	default:
		go l.resolve(ctx, r, err)
	}
}

// settle ends a row.
func (l *Loader) settle(r *row, o Outcome, why *Refusal) {
	if why != nil {
		why.Where, why.ClOrdID, why.Key, why.Message = r.where, r.clOrdID, string(r.key), readable(r.message)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
	if r.alone != "" {
		delete(l.alone, r.alone)
	}
	if err := l.track.settle(r.n, settled{o, why}); err != nil && l.err == nil {
		l.err = fmt.Errorf("load: report of refused rows: %w", err)
	}
	l.room.Broadcast()
}

func (l *Loader) refused(r *row, err error) {
	why := &Refusal{By: "grid", Reason: err.Error()}
	var reject *client.RejectError
	if errors.As(err, &reject) {
		why.Code, why.Tag = reject.Code.String(), reject.Tag
	}
	l.settle(r, Refused, why)
}

// ends ends the load, and reports so, if the error is one that every row would get.
func (l *Loader) ends(r *row, err error) bool {
	why := l.to.ends(err)
	if why == nil {
		return false
	}
	l.mu.Lock()
	l.waiting-- // it is not settled, and no answer is about to come
	l.mu.Unlock()
	l.fail(fmt.Errorf("load: %s: %w", r.where, why))
	return true
}

// fail ends the load.
func (l *Loader) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && err != nil {
		l.err = err
		l.stop(err)
	}
	l.room.Broadcast()
}

// reports saves the state and notifies, until ticks is closed.
func (l *Loader) reports(ticks <-chan struct{}) {
	t := time.NewTicker(l.o.Every)
	defer t.Stop()
	last, at := l.resumed, l.begun
	for {
		select {
		case <-ticks:
			return
		case now := <-t.C:
			l.mu.Lock()
			if err := l.track.save(); err != nil && l.err == nil {
				l.err = fmt.Errorf("load: state: %w", err)
				l.room.Broadcast()
			}
			p := Progress{Counts: l.track.Counts, Resumed: l.resumed, Elapsed: now.Sub(l.begun), Trouble: l.trouble}
			l.trouble = ""
			l.mu.Unlock()
			p.Rate = float64(p.Rows-last) / now.Sub(at).Seconds()
			last, at = p.Rows, now
			if read, total := l.src.Progress(); total > 0 {
				p.Fraction = float64(read) / float64(total)
			}
			if l.o.Notify != nil {
				l.o.Notify(p)
			}
		}
	}
}
