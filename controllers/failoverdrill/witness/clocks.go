package witness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// clockSight is the offset of a process's clocks, in nanoseconds.
type clockSight struct {
	Pod string `json:"p"`
	// Shift of the wall clock against the kernel's, by system call; against the operator's where that is not known, and
	// then Error is its uncertainty.
	Shift int64 `json:"s"`
	Error int64 `json:"e,omitempty"`
	// Monotonic is the shift of the monotonic clock.
	Monotonic int64 `json:"m"`
}

func (o *Observer) seeClocks(ctx context.Context, f *inject.Fault, before *sight) (*sight, error) {
	s := &sight{At: time.Now()}
	targets, err := o.targets(ctx, f.Pods)
	if err != nil && before == nil {
		return nil, err
	}
	for pod, r := range askAll(ctx, s, targets, func(ctx context.Context, p target) (*nodestatus.Reading, error) {
		ctx, cancel := soon(ctx)
		defer cancel()
		return nodestatus.GetClock(ctx, o.Nodes, p.http())
	}) {
		c := clockSight{Pod: pod}
		shift, known := r.Shift()
		if !known {
			offset, uncertainty := r.Offset()
			shift, c.Error = offset, int64(uncertainty)
		}
		monotonic, _ := r.MonotonicShift()
		c.Shift, c.Monotonic = int64(shift), int64(monotonic)
		s.Clocks = append(s.Clocks, c)
	}
	return s, nil
}

// clockError is the tolerance of a shift: the two readings of one answer are some microseconds apart, and a delayed
// process adds to it.
func clockError(asked time.Duration) time.Duration {
	return 5*time.Millisecond + min(asked.Abs()/10, 100*time.Millisecond)
}

// judgeClocks: the selected clocks moved by the requested offset, in every process.
func judgeClocks(f *inject.Fault, before, now *sight) Result {
	p := f.Spec.Clock
	if p == nil || len(before.Clocks) == 0 {
		return Result{Message: "no clock was read before the fault"}
	}
	names := p.Clocks
	if len(names) == 0 {
		names = []api.DrillClock{api.ClockRealtime}
	}
	r := Result{Seen: true}
	var messages []string
	for _, was := range before.Clocks {
		at := slices.IndexFunc(now.Clocks, func(c clockSight) bool { return c.Pod == was.Pod })
		if at < 0 {
			r.Seen = false
			messages = append(messages, was.Pod+" does not answer: "+now.Silent[was.Pod])
			continue
		}
		for _, name := range names {
			seen, what := judgeClock(p.Offset.Duration, name, was, now.Clocks[at])
			r.Seen = r.Seen && seen
			messages = append(messages, what)
		}
	}
	r.Message = strings.Join(messages, "; ")
	return r
}

func judgeClock(asked time.Duration, name api.DrillClock, was, is clockSight) (bool, string) {
	moved, tolerance := time.Duration(is.Shift-was.Shift), clockError(asked)+time.Duration(is.Error+was.Error)
	if name == api.ClockMonotonic {
		moved, tolerance = time.Duration(is.Monotonic-was.Monotonic), clockError(asked)
	}
	return (moved - asked).Abs() <= tolerance, fmt.Sprintf("the clock %s of %s moved by %s, requested %s (seen when within %s of it)",
		name, was.Pod, moved.Round(time.Microsecond), asked, tolerance)
}
