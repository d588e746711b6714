package scenarios

import (
	"context"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
)

// silentCut drops all packets of a primary's node. The cut lasts until others
// serve, and a second more.
func silentCut(ctx context.Context, e *Env, n int) error {
	ready, err := e.calmDown(ctx)
	if err != nil {
		return err
	}
	v, err := e.primary(ctx)
	if err != nil {
		return err
	}
	rep := e.begin(n, ready, "cut "+v.String(), v.node.Pod, v.partitions)
	if err := e.inject(rep, func() error { return e.target.Cut(ctx, v.node) }); err != nil {
		return err
	}
	if err := e.serviceBack(ctx, rep); err != nil {
		return err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	if err := e.target.Join(ctx, v.node); err != nil {
		return err
	}
	rep.Healed = clock.Now()
	return e.redundancyBack(ctx, rep, members(v.rows, v.node.Pod))
}

// sigstop lets a primary stand still while insiders go on asking it.
func sigstop(ctx context.Context, e *Env, n int) error {
	ready, err := e.calmDown(ctx)
	if err != nil {
		return err
	}
	v, err := e.primary(ctx)
	if err != nil {
		return err
	}
	rep := e.begin(n, ready, fmt.Sprintf("stop %s for %s", v, e.Stop), v.node.Pod, v.partitions)
	if err := e.inject(rep, func() error { return e.target.Freeze(ctx, v.node) }); err != nil {
		return err
	}
	if err := e.serviceBack(ctx, rep); err != nil {
		return err
	}
	if err := sleep(ctx, e.Stop-time.Duration(clock.Now()-rep.To)); err != nil {
		return err
	}
	if err := e.target.Thaw(ctx, v.node); err != nil {
		return err
	}
	rep.Healed = clock.Now()
	return e.redundancyBack(ctx, rep, members(v.rows, v.node.Pod))
}

// apiOutage: nothing but the arbiter is away.
func apiOutage(ctx context.Context, e *Env, n int) error {
	ready, err := e.calmDown(ctx)
	if err != nil {
		return err
	}
	if err := sleep(ctx, min(20*time.Second, e.Away)-e.Calm); err != nil { // as a comparison
		return err
	}
	rep := e.begin(n, ready, fmt.Sprintf("API server away for %s", e.Away), "", e.all())
	if err := e.inject(rep, func() error { return e.target.Away(ctx) }); err != nil {
		return err
	}
	if err := e.serviceBack(ctx, rep); err != nil {
		return err
	}
	if err := sleep(ctx, e.Away); err != nil {
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

// apiOutageThenKill: without an arbiter nobody may take over, and nobody may go
// on alone, so nothing is acknowledged until it is back.
func apiOutageThenKill(ctx context.Context, e *Env, n int) error {
	ready, err := e.calmDown(ctx)
	if err != nil {
		return err
	}
	v, err := e.primary(ctx)
	if err != nil {
		return err
	}
	if err := e.target.Away(ctx); err != nil {
		return err
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	rep := e.begin(n, ready, "API server away, kill -9 "+v.String(), v.node.Pod, e.all())
	if err := e.inject(rep, func() error { return e.target.Kill(ctx, v.node) }); err != nil {
		return err
	}
	if err := sleep(ctx, e.Stop); err != nil {
		return err
	}
	rep.Healed = clock.Now()
	if err := e.target.Back(ctx); err != nil {
		return err
	}
	if err := e.serviceBack(ctx, rep); err != nil {
		return err
	}
	return e.redundancyBack(ctx, rep, members(v.rows, v.node.Pod))
}

// sameName: the old process of a pod still runs, out of reach, when another is
// started under the pod's name; then it is back on the network.
func sameName(ctx context.Context, e *Env, n int) error {
	ready, err := e.calmDown(ctx)
	if err != nil {
		return err
	}
	v, err := e.primary(ctx)
	if err != nil {
		return err
	}
	rep := e.begin(n, ready, "cut off and replaced: "+v.String(), v.node.Pod, v.partitions)
	if err := e.inject(rep, func() error { return e.target.Cut(ctx, v.node) }); err != nil {
		return err
	}
	if err := e.target.Replace(ctx, v.node); err != nil {
		return err
	}
	if err := e.serviceBack(ctx, rep); err != nil {
		return err
	}
	if err := e.redundancyBack(ctx, rep, members(v.rows, v.node.Pod)); err != nil {
		return err
	}
	if err := e.watchNodes(ctx); err != nil {
		return err
	}
	if err := e.target.Join(ctx, v.node); err != nil {
		return err
	}
	rep.Healed = clock.Now()
	if err := sleep(ctx, 2*time.Second); err != nil { // the old process meets the new world
		return err
	}
	return e.target.Forget(ctx)
}
