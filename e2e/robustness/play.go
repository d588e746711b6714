package robustness

import (
	"context"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// trouble is one thing that happens to one node. Every field but pick, what and
// inject may be left out.
type trouble struct {
	pick     func(context.Context) (victim, error)
	before   func(context.Context) error // after the calm time, before the fault
	what     func(victim) string
	concerns func(victim) []wire.PartitionID // whose service is judged; default: the victim's
	inject   func(context.Context, victim) error
	// mend ends the fault: at once, or with late only when others serve.
	mend func(context.Context, *history.Rep, victim) error
	late bool
	// after the victim's copies have been replaced.
	after func(context.Context, *history.Rep, victim) error
}

// play is one repetition, from redundancy to redundancy without the victim's
// process: what is gone from all copies has been hit.
func (e *Env) play(ctx context.Context, n int, t trouble) error {
	ready, err := e.calmDown(ctx)
	if err != nil {
		return err
	}
	v, err := t.pick(ctx)
	if err != nil {
		return err
	}
	if t.before != nil {
		if err := t.before(ctx); err != nil {
			return err
		}
	}
	judged := v.partitions
	if t.concerns != nil {
		judged = t.concerns(v)
	}
	rep := e.begin(n, ready, t.what(v), v.node.Pod, judged)
	if err := e.inject(rep, func() error { return t.inject(ctx, v) }); err != nil {
		return err
	}
	if err := t.end(ctx, rep, v, !t.late); err != nil {
		return err
	}
	if err := e.serviceBack(ctx, rep); err != nil {
		return err
	}
	if err := t.end(ctx, rep, v, t.late); err != nil {
		return err
	}
	if err := e.redundancyBack(ctx, rep, members(v.rows, v.node.Pod)); err != nil || t.after == nil {
		return err
	}
	return t.after(ctx, rep, v)
}

// end heals what is broken.
func (t *trouble) end(ctx context.Context, rep *history.Rep, v victim, now bool) error {
	if t.mend == nil || !now {
		return nil
	}
	if err := t.mend(ctx, rep, v); err != nil {
		return err
	}
	if rep.Healed == 0 { // the mend may know better
		rep.Healed = clock.Now()
	}
	return nil
}

// awaits is a mend that waits first.
func awaits(d func(*history.Rep) time.Duration, mend func(context.Context, victim) error) func(context.Context, *history.Rep, victim) error {
	return func(ctx context.Context, rep *history.Rep, v victim) error {
		if err := clock.Wait(ctx, d(rep)); err != nil {
			return err
		}
		return mend(ctx, v)
	}
}
