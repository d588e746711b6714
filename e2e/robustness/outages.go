package robustness

import (
	"context"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// silentCut drops all packets of a primary's node. The cut lasts until others
// serve, and a second more.
func silentCut(ctx context.Context, e *Env, n int) error {
	return e.play(ctx, n, trouble{
		pick:   e.primary,
		what:   func(v victim) string { return "cut " + v.String() },
		inject: func(ctx context.Context, v victim) error { return e.target.Cut(ctx, v.node) },
		mend: awaits(func(*history.Rep) time.Duration { return time.Second },
			func(ctx context.Context, v victim) error { return e.target.Join(ctx, v.node) }),
		late: true,
	})
}

// sigstop suspends a primary while direct probers keep asking it.
func sigstop(ctx context.Context, e *Env, n int) error {
	return e.play(ctx, n, trouble{
		pick:   e.primary,
		what:   func(v victim) string { return fmt.Sprintf("stop %s for %s", v, e.Stop) },
		inject: func(ctx context.Context, v victim) error { return e.target.Freeze(ctx, v.node) },
		mend: awaits(func(rep *history.Rep) time.Duration { return e.Stop - time.Duration(clock.Now()-rep.To) },
			func(ctx context.Context, v victim) error { return e.target.Thaw(ctx, v.node) }),
		late: true,
	})
}

// apiOutage: only the arbiter is unavailable.
func apiOutage(ctx context.Context, e *Env, n int) error {
	ready, err := e.calmDown(ctx)
	if err != nil {
		return err
	}
	if err := clock.Wait(ctx, min(20*time.Second, e.Away)-e.Calm); err != nil { // as a comparison
		return err
	}
	rep := e.begin(n, ready, fmt.Sprintf("API server away for %s", e.Away), "", e.all())
	if err := e.inject(rep, func() error { return e.target.Away(ctx) }); err != nil {
		return err
	}
	if err := e.serviceBack(ctx, rep); err != nil {
		return err
	}
	if err := clock.Wait(ctx, e.Away); err != nil {
		return err
	}
	// Redundancy was never lost; what it costs this machine to start an API server
	// is no part of the outage.
	if err := e.redundancyBack(ctx, rep, nil); err != nil {
		return err
	}
	rep.Healed = clock.Now()
	return e.target.Back(ctx)
}

// apiOutageThenKill: without an arbiter no backup may take over, and no primary may go
// on alone, so nothing is acknowledged until it is back.
func apiOutageThenKill(ctx context.Context, e *Env, n int) error {
	return e.play(ctx, n, trouble{
		pick: e.primary,
		before: func(ctx context.Context) error {
			if err := e.target.Away(ctx); err != nil {
				return err
			}
			return clock.Wait(ctx, 2*time.Second)
		},
		what:     func(v victim) string { return "API server away, kill -9 " + v.String() },
		concerns: e.everything,
		inject:   func(ctx context.Context, v victim) error { return e.target.Kill(ctx, v.node) },
		mend: func(ctx context.Context, rep *history.Rep, _ victim) error {
			if err := clock.Wait(ctx, e.Stop); err != nil {
				return err
			}
			rep.Healed = clock.Now() // it answers some while before Back returns
			return e.target.Back(ctx)
		},
	})
}

// sameName: the old process of a pod still runs, out of reach, when another is
// started under the pod's name; then it is back on the network.
func sameName(ctx context.Context, e *Env, n int) error {
	return e.play(ctx, n, trouble{
		pick:   e.primary,
		what:   func(v victim) string { return "cut off and replaced: " + v.String() },
		inject: func(ctx context.Context, v victim) error { return e.target.Cut(ctx, v.node) },
		mend:   func(ctx context.Context, _ *history.Rep, v victim) error { return e.target.Replace(ctx, v.node) },
		after: func(ctx context.Context, rep *history.Rep, v victim) error {
			if err := e.watchNodes(ctx); err != nil {
				return err
			}
			if err := e.target.Join(ctx, v.node); err != nil {
				return err
			}
			rep.Healed = clock.Now()
			if err := clock.Wait(ctx, 2*time.Second); err != nil { // the old process meets the new world
				return err
			}
			return e.target.Forget(ctx)
		},
	})
}
