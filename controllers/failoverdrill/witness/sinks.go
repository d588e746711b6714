package witness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/internal/scrape"
)

// sinkSight is the state of the files of a grid node's sink.
type sinkSight struct {
	Pod     string  `json:"p"`
	Errors  float64 `json:"e"`
	Seconds float64 `json:"s"` // of all writes, sync included
	Writes  float64 `json:"w"`
	Age     float64 `json:"a"` // seconds, of the oldest that is not written
}

func (o *Observer) seeSinks(ctx context.Context, f *inject.Fault, before *sight) (*sight, error) {
	s := &sight{At: time.Now()}
	targets, err := o.targets(ctx, f.Pods)
	if err != nil && before == nil {
		return nil, err
	}
	for pod, r := range askAll(ctx, s, targets, o.scrape) {
		s.Sinks = append(s.Sinks, lookAtSink(pod, r))
	}
	return s, nil
}

func lookAtSink(pod string, r *scrape.Reading) sinkSight {
	seconds, writes := r.Mean("sink_write_seconds")
	return sinkSight{Pod: pod, Errors: r.Sum("sink_errors_total"), Seconds: seconds, Writes: writes, Age: r.Biggest("sink_age_seconds")}
}

// judgeSinks: writes fail, or take longer by half of the requested delay each. Only a pod that writes can show it, so
// one of the pods hit is enough.
func judgeSinks(f *inject.Fault, before, now *sight) Result {
	r := Result{}
	var messages []string
	for _, was := range before.Sinks {
		at := slices.IndexFunc(now.Sinks, func(s sinkSight) bool { return s.Pod == was.Pod })
		if at < 0 {
			messages = append(messages, was.Pod+" does not answer: "+now.Silent[was.Pod])
			continue
		}
		seen, what := judgeSink(f, was, now.Sinks[at])
		r.Seen = r.Seen || seen
		messages = append(messages, what)
	}
	r.Message = strings.Join(messages, "; ")
	return r
}

func judgeSink(f *inject.Fault, was, is sinkSight) (bool, string) {
	if f.Spec.Type == api.FaultIOError {
		return is.Errors > was.Errors, fmt.Sprintf("%.0f writes of %s failed since before the fault (seen from 1)", is.Errors-was.Errors, was.Pod)
	}
	asked, percent := 0.0, 100.0
	if p := f.Spec.IO; p != nil && p.Delay != nil {
		asked = p.Delay.Seconds()
		if v, err := strconv.ParseFloat(p.Percent.Number(), 64); err == nil && p.Percent != "" {
			percent = v
		}
	}
	meant := asked * percent / 100 / 2
	mean := func(seconds, writes float64) float64 { return seconds / max(writes, 1) }
	earlier, later := mean(was.Seconds, was.Writes), mean(is.Seconds-was.Seconds, is.Writes-was.Writes)
	what := fmt.Sprintf("%.0f writes of %s since before the fault took %.1f ms each, earlier ones %.1f ms; the oldest that is not written is %.1f s old (seen when a write takes %.1f ms longer, or one is under way for %.1f ms)",
		is.Writes-was.Writes, was.Pod, 1e3*later, 1e3*earlier, is.Age, 1e3*meant, 1e3*asked)
	slower := is.Writes > was.Writes && later-earlier >= meant
	hangs := is.Writes == was.Writes && is.Age-was.Age >= asked
	return asked > 0 && (slower || hangs), what
}
