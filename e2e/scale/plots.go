package scale

import (
	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/internal/plot"
)

// Plots of the runs, by file name.
func Plots(results []*Result) map[string]*plot.Lines {
	curve := func(name string, value func(*Result) float64) plot.Curve {
		c := plot.Curve{Name: name}
		for _, r := range results {
			v := value(r)
			c.Points = append(c.Points, plot.XY{X: float64(r.Grids), Y: v, Lower: v, Upper: v})
		}
		return c
	}
	chart := func(title, unit string, log bool, curves ...plot.Curve) *plot.Lines {
		return &plot.Lines{Title: title, Unit: unit, Grows: "OrderGrids of 3 shards of 2 pods", Log: log, Curves: curves, Number: func(v float64) string {
			if v == float64(int64(v)) {
				return numtext.Thousands(v)
			}
			return numtext.Short(v)
		}}
	}
	const mebi = 1 << 20
	return map[string]*plot.Lines{
		"time.svg": chart("Until everything is steady", "seconds", true,
			curve("creation", func(r *Result) float64 { return r.Steady }),
			curve("restart", func(r *Result) float64 { return r.Restarted })),
		"reconcile.svg": chart("One reconcile", "milliseconds", true,
			curve("created, p99", func(r *Result) float64 { return r.Create.P99 }),
			curve("created, p50", func(r *Result) float64 { return r.Create.P50 }),
			curve("restarted, p99", func(r *Result) float64 { return r.Restart.P99 }),
			curve("restarted, p50", func(r *Result) float64 { return r.Restart.P50 })),
		"requests.svg": chart("Requests of the operator per grid, until steady", "requests", false,
			curve("all", func(r *Result) float64 { return float64(r.Create.Total("")) / float64(r.Grids) }),
			curve("get", func(r *Result) float64 { return float64(r.Create.Total("get ")) / float64(r.Grids) }),
			curve("patch", func(r *Result) float64 { return float64(r.Create.Total("patch ")) / float64(r.Grids) })),
		"memory.svg": chart("Memory, resident", "MiB", true,
			curve("API server", func(r *Result) float64 { return float64(r.Processes["kube-apiserver"].RSS) / mebi }),
			curve("etcd", func(r *Result) float64 { return float64(r.Processes["etcd"].RSS) / mebi }),
			curve("operator", func(r *Result) float64 { return float64(r.Processes["operator"].RSS) / mebi })),
		"cpu.svg": chart("CPU time until steady", "seconds", true,
			curve("API server", func(r *Result) float64 { return r.Create.CPU["kube-apiserver"] }),
			curve("etcd", func(r *Result) float64 { return r.Create.CPU["etcd"] }),
			curve("operator", func(r *Result) float64 { return r.Create.CPU["operator"] })),
	}
}
