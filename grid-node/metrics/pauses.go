package metrics

import (
	"runtime/metrics"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/internal/histogram"
)

// The Go collector exports pauses too, but in buckets a factor of ten apart: too coarse to
// tell one millisecond from ten.
var (
	gcPause    = desc("runtime_gc_pause_seconds", "Stop-the-world pauses of the garbage collector, the time it took to stop included; the sum is an estimate.")
	otherPause = desc("runtime_other_pause_seconds", "Stop-the-world pauses for other reasons, such as a change of GOMAXPROCS or a goroutine profile; the sum is an estimate.")
)

var pauseDescs = []*prometheus.Desc{gcPause, otherPause}

// pauses of the runtime since the start of the process.
func pauses(ch chan<- prometheus.Metric) {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/sched/pauses/total/other:seconds"}}
	metrics.Read(s)
	for i, d := range pauseDescs {
		var h histogram.Histogram
		if s[i].Value.Kind() == metrics.KindFloat64Histogram { // this runtime does not have it
			h.AddRuntime(s[i].Value.Float64Histogram())
		}
		ch <- histogram.Metric(d, &h)
	}
}
