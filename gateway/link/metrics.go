package link

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics export the state of every partition as it is when they are gathered.
type metrics struct{ r *Runner }

var linkLabels = []string{"target", "partition"}

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("ordergrid_link_"+name, help, linkLabels, nil)
}

var (
	descOpen      = describe("open", "1 while entries can flow to the standby.")
	descCommitted = describe("committed_sequence", "Last log entry that is known to be committed at the source.")
	descHeld      = describe("held_sequence", "Last log entry that the standby has committed: what the source may free.")
	descLag       = describe("lag_entries", "Entries committed at the source and not at the standby: what a forced promotion would lose.")
	descLagBytes  = describe("lag_bytes", "Bytes of entries that were read and that the standby has not committed. While it stands still the log of the source holds more.")
	descAge       = describe("lag_seconds", "How long ago the oldest entry was made that the standby has not committed, by the source's clock alone; before the log is read: since that is known.")
	descOpens     = describe("opens_total", "How often the link was opened: once, and after each failure of either grid or of the way between them.")
	descFrames    = describe("frames_total", "Frames of entries sent.")
	descBytes     = describe("bytes_total", "Bytes of entries sent, those again that were sent before a failure.")
	descErrors    = describe("errors_total", "Sessions that ended with an error. Each is tried again.")
	descFailing   = describe("failing", "1 from an error until the standby commits again, or holds everything; /status has its text.")
)

var descs = []*prometheus.Desc{descOpen, descCommitted, descHeld, descLag, descLagBytes, descAge, descOpens, descFrames, descBytes, descErrors, descFailing}

func newMetrics(r *Runner) *metrics { return &metrics{r} }

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	now := time.Now()
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	for _, p := range m.r.parts {
		s := p.state.now(now)
		for _, v := range []struct {
			d *prometheus.Desc
			t prometheus.ValueType
			v float64
		}{
			{descOpen, prometheus.GaugeValue, flag(s.Open)},
			{descCommitted, prometheus.GaugeValue, float64(s.CommittedSeq)},
			{descHeld, prometheus.GaugeValue, float64(s.HeldSeq)},
			{descLag, prometheus.GaugeValue, float64(s.LagEntries)},
			{descLagBytes, prometheus.GaugeValue, float64(s.LagBytes)},
			{descAge, prometheus.GaugeValue, s.LagSeconds},
			{descOpens, prometheus.CounterValue, float64(s.Opens)},
			{descFrames, prometheus.CounterValue, float64(s.Frames)},
			{descBytes, prometheus.CounterValue, float64(s.Bytes)},
			{descErrors, prometheus.CounterValue, float64(s.Errors)},
			{descFailing, prometheus.GaugeValue, flag(s.Error != nil)},
		} {
			out <- prometheus.MustNewConstMetric(v.d, v.t, v.v, m.r.cfg.TargetName, p.id.String())
		}
	}
}
