package metrics

import (
	"runtime/metrics"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/internal/histogram"
)

// The Go collector exports pauses too, in buckets a factor of ten apart: too
// coarse to tell a pause of one millisecond from one of ten.
var (
	gcPause    = desc("runtime_gc_pause_seconds", "How long the world stood still for the garbage collector, the time it took to stop included; the sum is an estimate.")
	otherPause = desc("runtime_other_pause_seconds", "How long the world stood still for anything else, such as a change of GOMAXPROCS or a goroutine profile; the sum is an estimate.")
)

var pauseDescs = []*prometheus.Desc{gcPause, otherPause}

// pauses of the runtime since the start of the process.
func pauses(ch chan<- prometheus.Metric) {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/sched/pauses/total/other:seconds"}}
	metrics.Read(s)
	for i, d := range pauseDescs {
		var h histogram.Histogram
		if s[i].Value.Kind() == metrics.KindFloat64Histogram { // else this runtime has it no more
			h.AddRuntime(s[i].Value.Float64Histogram())
		}
		ch <- histogram.Metric(d, &h)
	}
}
