package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// partition is the link of one partition.
type partition struct {
	r     *Runner
	id    wire.PartitionID
	log   *slog.Logger
	state state
}

const (
	firstPause     = 20 * time.Millisecond
	lastPause      = 2 * time.Second
	permanentPause = 10 * time.Second
	// stallLimit is how long a standby may commit nothing of what it was sent before the link is opened again.
	stallLimit = 5 * time.Second
	// openLimit bounds the questions to both grids at the beginning of a session.
	openLimit = 20 * time.Second
)

// PermanentError is an error that no retry mends; it is retried all the same, since what it needs is elsewhere.
type PermanentError struct {
	What   string
	Remedy string
	Err    error
}

func (e *PermanentError) Error() string {
	text := e.What
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Remedy
}

func (e *PermanentError) Unwrap() error { return e.Err }

// run opens one session after the other.
func (p *partition) run(ctx context.Context) {
	for ctx.Err() == nil {
		begun := time.Now()
		err := p.session(ctx)
		if ctx.Err() != nil {
			return
		}
		var permanent *PermanentError
		pause := firstPause
		failures := p.state.failed(err, errors.As(err, &permanent), time.Since(begun) > stallLimit)
		switch {
		case permanent != nil:
			pause = permanentPause
			p.log.Error("the link waits for an administrator", "error", err, "retryAfter", pause)
		default:
			longest := min(firstPause<<min(failures, 16), lastPause)
			pause += time.Duration(rand.Int64N(int64(longest-firstPause) + 1))
			p.log.Warn("the link begins again at what the standby holds", "error", err, "failures", failures, "retryAfter", pause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// session asks the standby where its log ends, and carries what follows, until something fails.
func (p *partition) session(ctx context.Context) error {
	cfg := &p.r.cfg
	opening, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	source, err := cfg.Source.Site(opening, p.id)
	if err != nil {
		return p.explain(fmt.Errorf("the source: %w", err), client.Position{}, 0)
	}
	l, err := cfg.Target.OpenLink(opening, client.LinkOptions{Partition: p.id, Term: source.Term, Source: cfg.SourceName})
	if err != nil {
		return p.explain(fmt.Errorf("the target, of which the source is of term %d: %w", source.Term, err), client.Position{}, source.Term)
	}
	defer l.Close() //nolint:errcheck // it never fails
	held := l.State()
	f, err := cfg.Source.Follow(ctx, client.FollowOptions{Partition: p.id, Name: cfg.Reader, After: held.Stored, Window: min(cfg.Buffer, 4<<20)})
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it never fails
	p.log.Info("the link is open", "standby", l.Address(), "stored", held.Stored.Seq, "committed", held.Committed.Seq, "term", source.Term)
	return p.explain(p.carry(ctx, l, f, held), held.Stored, source.Term)
}

// carry runs the three parts of a session: what follows the source, what sends, and what hears the standby.
func (p *partition) carry(ctx context.Context, l *client.Link, f *client.Follower, held client.LinkState) error {
	q := newQueue(p.r.cfg.Buffer, held)
	p.state.opened(q, held, l.Address())
	defer p.state.closed()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ends := make(chan struct{}, 2)
	part := func(do func() error) {
		cancel(do())
		ends <- struct{}{}
	}
	go part(func() error { return p.read(ctx, f, q) })
	go part(func() error { return p.hear(ctx, l, f, q, held) })
	cancel(p.send(ctx, l, q))
	_ = l.Close() // wakes what hears
	<-ends
	<-ends
	return context.Cause(ctx)
}

// read puts the source's log into the queue. It waits while that is full, and the source while its window is.
func (p *partition) read(ctx context.Context, f *client.Follower, q *queue) error {
	for {
		b, err := f.Next(ctx)
		if err != nil {
			return fmt.Errorf("the source: %w", err)
		}
		p.state.heard(b.CommitSeq)
		for i := range b.Entries {
			if err := q.put(ctx, &b.Entries[i]); err != nil {
				return err
			}
		}
	}
}

// send sends what is in the queue, as far as the standby's window and the bandwidth allow.
func (p *partition) send(ctx context.Context, l *client.Link, q *queue) error {
	var buf []byte
	for {
		var err error
		if buf, err = q.take(ctx, buf[:0], p.r.cfg.Batch, p.r.cfg.Delay); err != nil {
			return err
		}
		if err := p.r.pace.wait(ctx, len(buf)); err != nil {
			return err
		}
		if err := l.Send(ctx, buf); err != nil {
			return fmt.Errorf("the target: %w", err)
		}
		p.state.sent(len(buf))
	}
}

// hear takes in what the standby has committed, and tells the source, which may free that.
func (p *partition) hear(ctx context.Context, l *client.Link, f *client.Follower, q *queue, s client.LinkState) error {
	told := uint64(0)
	for moved := time.Now(); ; {
		if s.Committed.Seq > told {
			told = s.Committed.Seq
			if err := f.Advance(s.Committed.Seq, s.Committed.Hash); err != nil {
				return fmt.Errorf("the source: %w", err)
			}
		}
		q.committed(s)
		p.state.committed(s)
		waiting, cancel := context.WithTimeout(ctx, stallLimit/5)
		next, err := l.Next(waiting)
		late := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil && next.Stored.Seq == s.Stored.Seq && next.Committed.Seq == s.Committed.Seq && q.outstanding():
			return errors.New("the target: it dropped entries; they are sent again")
		case err == nil:
			if next.Committed.Seq > s.Committed.Seq || next.Stored.Seq > s.Stored.Seq {
				moved = time.Now()
			}
			s = next
		case !late:
			return fmt.Errorf("the target: %w", err)
		case !q.outstanding():
			moved = time.Now()
		case time.Since(moved) > stallLimit:
			return fmt.Errorf("the target: it has committed nothing for %s though entries were sent", stallLimit)
		}
	}
}

// explain makes permanent errors of those that an administrator has to mend.
func (p *partition) explain(err error, held client.Position, term uint64) error {
	var gone *client.SnapshotRequiredError
	var diverged *client.DivergedError
	var reject *client.RejectError
	errors.As(err, &reject)
	switch {
	case errors.As(err, &gone):
		return &PermanentError{fmt.Sprintf("the standby holds %s up to entry %d, and the source's log begins with entry %d", p.id, held.Seq, gone.After.Seq+1),
			"load the standby from an archive that reaches that far, or make it anew before the source frees entries", err}
	case errors.As(err, &diverged) || errors.Is(err, client.ErrDiverged):
		return &PermanentError{fmt.Sprintf("%s: entry %d of the standby, hash %016x, is not in the source's log: the standby holds entries of another history", p.id, held.Seq, held.Hash),
			"it may be a site that was replaced: report what it holds alone (grid-link orphans), then make it anew", err}
	case errors.Is(err, client.ErrNotStandby) && reject.Detail > 0 && reject.Detail == term:
		return &PermanentError{fmt.Sprintf("%s: both sites are active in term %d, so neither stops the other", p.id, term),
			"stop the clients of the site that is to give way, and raise the other one: kubectl ordergrid demote it, then promote it with its own token and --take-back; its link then stops this one", err}
	case errors.Is(err, client.ErrNotStandby):
		return &PermanentError{fmt.Sprintf("%s: the target makes its entries itself, in term %d", p.id, reject.Detail),
			"link a target that was made as a standby; if this one was promoted, run the link in the other direction, which also stops a source that is active still", err}
	case errors.Is(err, client.ErrFenced):
		return &PermanentError{fmt.Sprintf("%s: the target knows term %d, the source is of term %d: the source was replaced", p.id, reject.Detail, term),
			"run the link in the other direction; a source that was restored from an archive since, or made anew, begins in term 0 and is to be raised above that (docs/multi-site.md)", err}
	case errors.Is(err, client.ErrNotPermitted), errors.Is(err, client.ErrReaderUnknown):
		return &PermanentError{fmt.Sprintf("reader %q of %s", p.r.cfg.Reader, p.id),
			"allowed: a sink of that name and of type External in both grids, and the permissions Watch, Sink and Link for this client at the source, Link at the target", err}
	}
	return err
}
