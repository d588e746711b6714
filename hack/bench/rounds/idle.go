package rounds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/probe/host"
)

// Idle is what nodes of pairs with so many partitions each cost when nothing is asked of them: CPU time per second and
// node, one figure a round. All pairs are there at the same time, so that a busy machine is as unkind to each.
func (r *Runner) Idle(ctx context.Context, at system.Place, s system.System, partitions []int) (perNode [][]time.Duration, err error) {
	const copies = 2
	pids := make([][]int, len(partitions))
	for i, n := range partitions {
		run, err := s.Start(ctx, at, system.Topology{Copies: copies, Partitions: n, MemoryMiB: min(1<<10, affordable(copies*len(partitions)))})
		if err != nil {
			return nil, fmt.Errorf("start %s with %d partitions: %w", s.Name(), n, err)
		}
		defer func() { err = errors.Join(err, run.Stop()) }()
		pids[i] = run.PIDs
	}
	perNode = make([][]time.Duration, len(partitions))
	if err := wait(ctx, r.Warmup); err != nil {
		return nil, err
	}
	for range r.Rounds {
		before, err := cpuOf(pids)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := wait(ctx, r.Duration); err != nil {
			return nil, err
		}
		elapsed := time.Since(began)
		after, err := cpuOf(pids)
		if err != nil {
			return nil, err
		}
		for i := range perNode {
			perNode[i] = append(perNode[i], time.Duration(float64(after[i]-before[i])/elapsed.Seconds()/copies))
		}
	}
	return perNode, nil
}

// cpuOf is the CPU time that each group of processes has taken, in user mode and in the kernel.
func cpuOf(pids [][]int) (out []time.Duration, err error) {
	for _, group := range pids {
		s, err := host.Take(group)
		if err != nil {
			return nil, err
		}
		out = append(out, s.Others)
	}
	return out, nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
