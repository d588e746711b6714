package recorder

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/probe/drill/api"
)

const prefix = "ordergrid_drill_recorder_"

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

var (
	ordersDesc    = desc("orders_total", "Orders of a drill by outcome: acknowledged, rejected, unknown (no answer in time).", "outcome")
	createdDesc   = desc("created_orders_total", "Orders that a drill created.")
	oneCopyDesc   = desc("one_copy_orders_total", "Orders acknowledged with a receipt that names one copy only.")
	roomDesc      = desc("ledger_orders", "Orders the ledger of a drill has room for; the traffic ends with the last one.")
	redundantDesc = desc("redundant", "1 while every partition has a primary and all its copies in sync, as reported by the grid; else 0.")
	gapDesc       = desc("worst_gap_seconds", "Longest time that a session was without an acknowledgement in the last ten seconds.")
	stepsDesc     = desc("steps_total", "Faults begun.")
	phaseDesc     = desc("phase", "1 for the phase a recorder is in: Preparing, Running, Finishing, Done, Failed.", "phase")

	allDescs = []*prometheus.Desc{ordersDesc, createdDesc, oneCopyDesc, roomDesc, redundantDesc, gapDesc, stepsDesc, phaseDesc}
)

// Registry has the recorder's metrics.
func (r *Recorder) Registry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collector{r})
	return reg
}

type collector struct{ r *Recorder }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range allDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	s := c.r.State()
	c.r.mu.Lock()
	steps := len(c.r.steps)
	c.r.mu.Unlock()
	value := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	value(ordersDesc, prometheus.CounterValue, float64(s.Counts.Acknowledged), "acknowledged")
	value(ordersDesc, prometheus.CounterValue, float64(s.Counts.Rejected), "rejected")
	value(ordersDesc, prometheus.CounterValue, float64(s.Counts.Unknown), "unknown")
	value(createdDesc, prometheus.CounterValue, float64(s.Counts.Created))
	value(oneCopyDesc, prometheus.CounterValue, float64(s.Counts.OneCopy))
	value(roomDesc, prometheus.GaugeValue, float64(s.MaxOrders))
	value(redundantDesc, prometheus.GaugeValue, oneIf(s.Redundant))
	value(gapDesc, prometheus.GaugeValue, s.WorstGap.Seconds())
	value(stepsDesc, prometheus.CounterValue, float64(steps))
	for _, p := range []api.Phase{api.Preparing, api.Running, api.Finishing, api.Done, api.Failed} {
		value(phaseDesc, prometheus.GaugeValue, oneIf(s.Phase == p), string(p))
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
