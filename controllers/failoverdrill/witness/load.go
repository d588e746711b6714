package witness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/internal/scrape"
)

// loadSight is the resource use of a container, from its control group as reported by the grid node.
type loadSight struct {
	Pod string `json:"p"`
	// Others is how many cores the other processes in the container use, over sampleTime; negative: not known.
	Others float64 `json:"o"`
	// Waiting is the part of the time in which a loop of the grid node was runnable without a core.
	Waiting float64 `json:"w"`
	Memory  float64 `json:"m"` // bytes of others: of the container, without page cache and what the grid node has
	Killed  float64 `json:"k"` // processes killed by the kernel for lack of memory
}

// sampleTime is between the two readings of a rate.
const sampleTime = time.Second

func (o *Observer) seeLoad(ctx context.Context, f *inject.Fault, before *sight) (*sight, error) {
	s := &sight{At: time.Now()}
	targets, err := o.targets(ctx, f.Pods)
	if err != nil && before == nil {
		return nil, err
	}
	for pod, l := range askAll(ctx, s, targets, func(ctx context.Context, p target) (loadSight, error) {
		first, err := o.scrape(ctx, p)
		if err != nil {
			return loadSight{}, err
		}
		select {
		case <-ctx.Done():
			return loadSight{}, ctx.Err()
		case <-time.After(sampleTime):
		}
		second, err := o.scrape(ctx, p)
		if err != nil {
			return loadSight{}, err
		}
		return lookAtLoad(first, second), nil
	}) {
		l.Pod = pod
		s.Loads = append(s.Loads, l)
	}
	return s, nil
}

func (o *Observer) scrape(ctx context.Context, p target) (*scrape.Reading, error) {
	ctx, cancel := soon(ctx)
	defer cancel()
	return scrape.Get(ctx, o.Nodes, p.http())
}

func lookAtLoad(first, second *scrape.Reading) loadSight {
	seconds := max(second.At.Sub(first.At).Seconds(), 1e-3)
	rate := func(of func(*scrape.Reading) float64) float64 { return max(of(second)-of(first), 0) / seconds }
	l := loadSight{
		Others:  -1,
		Waiting: rate(func(r *scrape.Reading) float64 { return r.Sum("loop_run_queue_seconds_total") }),
		Memory:  second.Sum("cgroup_memory_anonymous_bytes") - second.Total("process_resident_memory_bytes"),
		Killed:  second.Sum("cgroup_memory_events_total", "event", "oom_kill"),
	}
	if second.Has("cgroup_cpu_seconds_total") {
		all := rate(func(r *scrape.Reading) float64 { return r.Sum("cgroup_cpu_seconds_total") })
		own := rate(func(r *scrape.Reading) float64 { return r.Total("process_cpu_seconds_total") })
		l.Others = max(all-own, 0)
	}
	return l
}

const (
	// othersMeant is how many additional cores other processes must use, or half of the request if that is less:
	// nothing else runs in a grid node's container, and a full machine gives no more.
	othersMeant = 0.25
	// waitingMeant is the additional part of the time in which a loop must be without a core, where the kernel does not
	// report the container's use.
	waitingMeant = 0.05
)

func judgeCPU(f *inject.Fault, before, now *sight) Result {
	asked := 1.0
	if p := f.Spec.Stress; p != nil && p.CPUWorkers != nil {
		load := 100.0
		if v, err := strconv.ParseFloat(p.CPULoad.Number(), 64); err == nil && p.CPULoad != "" {
			load = v
		}
		asked = float64(*p.CPUWorkers) * load / 100
	}
	meant := min(othersMeant, asked/2)
	return everyLoad(before, now, func(was, is loadSight) (bool, string) {
		if is.Others >= 0 && was.Others >= 0 {
			return is.Others-was.Others >= meant, fmt.Sprintf("beside the grid node, %.2f cores are used in the container of %s, before %.2f (seen from %.2f more)", is.Others, was.Pod, was.Others, meant)
		}
		return is.Waiting-was.Waiting >= waitingMeant, fmt.Sprintf("loops of %s are without a core for %.1f%% of the time, before %.1f%% (seen from %.0f%% more; the node's kernel does not report the container's use)",
			was.Pod, 100*is.Waiting, 100*was.Waiting, 100*waitingMeant)
	})
}

// memoryPart is the part of the requested memory by which that of other processes in the container must grow. The grid
// node's own grows with every order, the page cache with every line of the sink: neither counts.
const memoryPart = 2 // one half

func judgeMemory(f *inject.Fault, before, now *sight) Result {
	asked := 0.0
	if p := f.Spec.Stress; p != nil {
		asked = float64(p.Memory.Value())
	}
	return everyLoad(before, now, func(was, is loadSight) (bool, string) {
		grown := is.Memory - was.Memory
		what := fmt.Sprintf("beside the grid node, %[2]s MiB more are used in the container of %[1]s than before (seen from %[3]s MiB)", was.Pod, mebi(grown), mebi(asked/memoryPart))
		if is.Killed > was.Killed {
			return true, what + fmt.Sprintf("; the kernel killed %.0f processes in it", is.Killed-was.Killed)
		}
		return asked > 0 && grown >= asked/memoryPart, what
	})
}

func mebi(bytes float64) string { return strconv.FormatFloat(bytes/(1<<20), 'f', 0, 64) }

func everyLoad(before, now *sight, judge func(was, is loadSight) (bool, string)) Result {
	r := Result{Seen: len(before.Loads) > 0}
	var messages []string
	for _, was := range before.Loads {
		at := slices.IndexFunc(now.Loads, func(l loadSight) bool { return l.Pod == was.Pod })
		seen, what := false, was.Pod+" does not answer: "+now.Silent[was.Pod]
		if at >= 0 {
			seen, what = judge(was, now.Loads[at])
		}
		r.Seen = r.Seen && seen
		messages = append(messages, what)
	}
	r.Message = strings.Join(messages, "; ")
	return r
}
