package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// partition writes the log of one partition.
type partition struct {
	r     *Runner
	id    wire.PartitionID
	log   *slog.Logger
	state state
}

// run writes until ctx ends: an error ends the writer and the follower, and after a pause others are opened.
// Writes use the context writing, which lasts longer.
func (p *partition) run(ctx, writing context.Context) {
	for ctx.Err() == nil {
		step, err := p.session(ctx, writing)
		if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return
		}
		kind := kindOf(err, step)
		failures := p.state.failed(kind, err)
		p.r.metrics.errors.WithLabelValues(kind, p.r.cfg.Sink, p.id.String()).Inc()
		pause := p.r.pauses.after(kind, failures, draw)
		if kind == kindPermanent {
			p.log.Error("the sink waits for an administrator", "error", err, "retryAfter", pause)
		} else {
			p.log.Warn("the sink begins again at what the target holds", "error", err, "kind", kind, "failures", failures, "retryAfter", pause)
		}
		if !wait(ctx, pause) {
			return
		}
	}
}

// session opens a writer and writes until something fails. step is the kind of what was under way.
func (p *partition) session(ctx, writing context.Context) (step string, err error) {
	opening, cancel := context.WithTimeout(ctx, p.r.cfg.WriteTimeout)
	w, err := p.r.cfg.Target.Open(opening, p.id)
	cancel()
	if err != nil {
		return kindOpen, err
	}
	defer w.Close() //nolint:errcheck // what it wrote is durable or is written again
	after := w.Position()
	p.state.opened(after)
	p.log.Info("the target is open", "position", after.Seq, "lineage", after.Lineage)
	for {
		step, err = p.follow(ctx, writing, w, after)
		var gone *client.SnapshotRequiredError
		if !errors.As(err, &gone) {
			return step, p.explain(err, w.Position())
		}
		if w.Position() != (client.Position{}) || gone.After.Seq <= after.Seq {
			return step, p.explain(err, w.Position())
		}
		p.log.Warn("entries were freed before this sink was there; the target begins behind them", "firstEntry", gone.After.Seq+1, "skipped", gone.After.Seq-after.Seq)
		p.state.skipped(gone.After.Seq)
		after = gone.After
	}
}

// explain makes permanent errors of those after which the target and the grid do not fit together.
func (p *partition) explain(err error, held client.Position) error {
	var gone *client.SnapshotRequiredError
	hash, diverged := otherHash(err)
	switch {
	case errors.As(err, &gone):
		return &PermanentError{
			What:   fmt.Sprintf("the target holds %s up to entry %d, and the log begins behind entry %d: the target lost entries that it held", p.id, held.Seq, gone.After.Seq),
			Remedy: "restore the target to entry " + fmt.Sprint(gone.After.Seq) + " or later, or empty it to begin with what the grid still holds",
			Err:    err,
		}
	case diverged:
		return &PermanentError{
			What: fmt.Sprintf("the target holds entry %d of %s with hash %016x of lineage %d, and the grid's log has hash %016x there",
				held.Seq, p.id, held.Hash, held.Lineage, hash),
			Remedy: "it is another history: the target is another grid's, or a loss of data was accepted; compare both, then empty the target or give the sink another one",
			Err:    err,
		}
	case errors.Is(err, client.ErrNotPermitted), errors.Is(err, client.ErrReaderUnknown):
		return &PermanentError{
			What:   fmt.Sprintf("sink %q of %s", p.r.cfg.Sink, p.id),
			Remedy: "allowed: a sink of type External in spec.sinks, and permission Sink for this client in spec.security.authorization",
			Err:    err,
		}
	}
	if reject := (*client.RejectError)(nil); p.r.cfg.Executions && errors.As(err, &reject) && reject.Code == wire.CodeUnsupported {
		return &PermanentError{
			What:   fmt.Sprintf("sink %q of %s asks for executions", p.r.cfg.Sink, p.id),
			Remedy: "allowed: a grid that matches, spec.execution.mode Match; write orders only",
			Err:    err,
		}
	}
	return err
}

// otherHash returns the hash that the grid's log has where the target holds another history, and whether err says so: it
// is the answer to Follow or to Advance, whichever comes first.
func otherHash(err error) (hash uint64, diverged bool) {
	var follow *client.DivergedError
	var advance *client.RejectError
	switch {
	case errors.As(err, &follow):
		return follow.Hash, true
	case errors.As(err, &advance) && advance.Code == wire.CodeDiverged:
		return advance.Detail, true
	}
	return 0, false
}

// follow writes what comes behind a position until something fails. The buffers are not used after that: the writer may
// still read them.
func (p *partition) follow(ctx, writing context.Context, w Writer, after client.Position) (step string, err error) {
	f, err := p.r.cfg.Client.Follow(ctx, client.FollowOptions{Partition: p.id, Name: p.r.cfg.Sink, After: after, Executions: p.r.cfg.Executions})
	if err != nil {
		return kindFollow, err
	}
	defer f.Close() //nolint:errcheck // it never fails
	if held := w.Position(); held.Hash != 0 {
		if err := f.Advance(held.Seq, held.Hash); err != nil { // what was written and not told
			return kindFollow, err
		}
	}
	x := newPipe(p.id, p.r.limits)
	p.state.attach(x)
	defer p.state.attach(nil)
	reading, cancel := context.WithCancel(ctx)
	read := make(chan struct{})
	defer func() { cancel(); <-read }()
	go func() {
		defer close(read)
		x.end(p.read(reading, f, x))
	}()
	var done *buffer
	for {
		next, err := x.take(writing, done)
		if err != nil {
			p.flush(ctx, f)
			return kindFollow, err
		}
		if err := p.write(writing, w, next); err != nil {
			return kindWrite, err
		}
		if passer, ok := w.(Passer); next.oldest != 0 && !(ok && passer.Passed()) {
			if err := f.Advance(next.batch.Through.Seq, next.batch.Through.Hash); err != nil {
				return kindFollow, err
			}
		}
		done = next
	}
}

// read puts the log into the pipe.
func (p *partition) read(ctx context.Context, f *client.Follower, x *pipe) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, p.r.patience)
		b, err := f.Next(waiting)
		late := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err != nil && !late:
			return err
		case err != nil: // it goes on by itself, once it can
			if p.state.stuck(err) {
				p.r.metrics.errors.WithLabelValues(kindFollow, p.r.cfg.Sink, p.id.String()).Inc()
				p.log.Warn("no replica sends its log", "error", err)
			}
			continue
		}
		p.state.follows()
		p.state.heard(b.CommitSeq)
		if err := x.put(ctx, b); err != nil {
			return err
		}
	}
}

// flush tells the grid what was written last, when the Runner is stopped.
func (p *partition) flush(ctx context.Context, f *client.Follower) {
	if ctx.Err() == nil {
		return
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if err := f.Flush(ending); err != nil {
		p.log.Warn("the grid was not told what the target holds; it is told after the next start", "error", err)
	}
}

func (p *partition) write(ctx context.Context, w Writer, b *buffer) error {
	ctx, cancel := context.WithTimeout(ctx, p.r.cfg.WriteTimeout)
	defer cancel()
	p.state.writing(b)
	begun := time.Now()
	err := w.Write(ctx, &b.batch)
	p.r.metrics.seconds.WithLabelValues(p.r.cfg.Sink, p.id.String()).Observe(time.Since(begun).Seconds())
	if err == nil {
		p.state.wrote(b)
	}
	return err
}
