package robustness

import (
	"context"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

func calm(ctx context.Context, e *Env, n int) error {
	ready, err := e.calmDown(ctx)
	if err != nil {
		return err
	}
	rep := e.begin(n, ready, "nothing", "", e.all())
	rep.To = rep.From
	if err := clock.Wait(ctx, e.Calm); err != nil {
		return err
	}
	rep.Served, rep.Redundant = clock.Now(), clock.Now()
	return nil
}

func killPrimary(ctx context.Context, e *Env, n int) error { return e.kill(ctx, n, e.primary) }

func killBackup(ctx context.Context, e *Env, n int) error { return e.kill(ctx, n, e.backup) }

// killBothInTurn kills the primary; the next repetition begins once all
// copies are in sync, and kills its successor, so that no process and none of
// its memory lives through two repetitions.
func killBothInTurn(ctx context.Context, e *Env, n int) error {
	return e.kill(ctx, n, func(ctx context.Context) (victim, error) {
		v, err := e.primary(ctx)
		if last := len(e.h.Reps) - 1; err == nil && last >= 0 && e.h.Reps[last].Pod == v.node.Pod {
			v, err = e.other(ctx, v)
		}
		return v, err
	})
}

// other is a node that is not v's, whatever it is.
func (e *Env) other(ctx context.Context, v victim) (victim, error) {
	for _, r := range v.rows {
		for _, m := range r.Members {
			if !m.InSync || podOf(m) == v.node.Pod {
				continue
			}
			node, err := e.nodeAt(ctx, m.Address)
			out := victim{node: node, rows: v.rows, partitions: ledBy(v.rows, m.Address), role: "primary"}
			if len(out.partitions) == 0 {
				out.partitions, out.role = backedBy(v.rows, m.Address), "backup"
			}
			return out, err
		}
	}
	return victim{}, fmt.Errorf("no process but that of %s is in sync", v.node.Pod)
}

func (e *Env) kill(ctx context.Context, n int, pick func(context.Context) (victim, error)) error {
	return e.play(ctx, n, trouble{
		pick:   pick,
		what:   func(v victim) string { return "kill -9 " + v.String() },
		inject: func(ctx context.Context, v victim) error { return e.target.Kill(ctx, v.node) },
	})
}

// plannedStop ends a process in good order.
func plannedStop(ctx context.Context, e *Env, n int) error {
	return e.play(ctx, n, trouble{
		pick:     e.primary,
		what:     func(v victim) string { return "planned stop of " + v.String() },
		concerns: e.everything,
		inject:   func(ctx context.Context, v victim) error { return e.target.Stop(ctx, v.node) },
	})
}

func drain(ctx context.Context, e *Env, n int) error {
	return e.play(ctx, n, trouble{
		pick:     e.primary,
		what:     func(v victim) string { return "drain " + v.node.Machine + " of " + v.String() },
		concerns: e.everything,
		inject:   func(ctx context.Context, v victim) error { return e.target.Drain(ctx, v.node) },
		mend:     func(ctx context.Context, _ *history.Rep, v victim) error { return e.target.Undrain(ctx, v.node) },
	})
}

// handOver asks for another primary of one partition.
func handOver(ctx context.Context, e *Env, n int) error {
	ready, err := e.calmDown(ctx)
	if err != nil {
		return err
	}
	v, err := e.backup(ctx)
	if err != nil {
		return err
	}
	id := v.partitions[0]
	parts, err := e.target.Partitions(ctx)
	if err != nil {
		return err
	}
	rep := e.begin(n, ready, "hand-over of "+id.String()+" to "+v.node.Pod, v.node.Pod, v.partitions[:1])
	err = e.inject(rep, func() error {
		for _, p := range parts {
			if p.ID == id {
				return e.target.Prefer(ctx, p, v.node.Pod)
			}
		}
		return fmt.Errorf("%s has no record", id)
	})
	if err != nil {
		return err
	}
	err = until(ctx, e.Patience, "hand-over of "+id.String()+" to "+v.node.Pod, func() (bool, string) {
		rows, err := e.table(ctx)
		if err != nil {
			return false, err.Error()
		}
		for _, r := range rows {
			if r.ID == id {
				return podOf(r.Primary) == v.node.Pod, "its primary is " + r.Primary.ID
			}
		}
		return false, "the partition is not known"
	})
	if err != nil {
		return err
	}
	rep.To = clock.Now()
	if err := e.serviceBack(ctx, rep); err != nil {
		return err
	}
	if err := e.redundancyBack(ctx, rep, nil); err != nil {
		return err
	}
	return clock.Wait(ctx, 100*time.Millisecond)
}
