package service

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/client"
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ordergrid_gateway_"+name, help, labels, nil)
}

var (
	descSessions    = describe("fix_sessions", "FIX sessions that are logged on.")
	descMaxSessions = describe("fix_sessions_max", "FIX sessions that may be logged on at the same time.")
	descConfigured  = describe("fix_sessions_configured", "FIX sessions in the file of sessions.")
	descConns       = describe("fix_connections", "Connections at the FIX port, by state: session (logged on, or logging out), unknown (without a logon yet).", "state")
	descLogons      = describe("fix_logons_total", "Logons that were accepted.")
	descRefused     = describe("fix_logons_refused_total", "Connections that ended without a logon, by reason. Closed is not refused: the other side left before a Logon, as health checks do.", "reason")
	descTurnedAway  = describe("fix_connections_refused_total", "Connections that were closed before anything was read of them: too many connections, no file descriptor, or a TLS handshake that failed.")
	descWaited      = describe("fix_logons_waited_total", "Times a logon waited for its turn, because more came than --logon-rate.")
	descSlow        = describe("fix_slow_total", "Connections that ended because they did not read what was sent.")
	descMessages    = describe("fix_messages_total", "FIX messages by direction and MsgType (35), sessions together: in (those that could be read), out (resent ones included).", "direction", "type")
	descInFlight    = describe("fix_orders_in_flight", "Messages given to the grid that it has not answered: the queue before it.")
	descUnreachable = describe("grid_partitions_unreachable", "Partitions of the grid whose primary does not answer this gateway.")
	descFiles       = describe("fix_sessions_file_failing", "1 while the file of the sessions, or of a password, is wrong: what was read before is served.")

	descriptions = []*prometheus.Desc{descSessions, descMaxSessions, descConfigured, descConns, descLogons, descRefused, descTurnedAway, descWaited, descSlow, descMessages, descInFlight, descUnreachable, descFiles}
)

// fates are the outcomes of messages for the grid; the index is a client.Fate.
var fates = [...]string{client.FateAccepted.String(), client.FateRefused.String(), client.FateUnknown.String()}

// metrics are what the loop observes itself.
type metrics struct {
	seconds *prometheus.HistogramVec
	byFate  [len(fates)]prometheus.Observer
}

func newMetrics() *metrics {
	m := &metrics{seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "ordergrid_gateway_fix_order_seconds",
		Help:    "Time from reading a message for the grid to writing what came of it, by fate: accepted, refused, unknown (the session ended, since the grid gave no answers).",
		Buckets: prometheus.ExponentialBuckets(25e-6, 2, 18),
	}, []string{"fate"})}
	for i, fate := range fates {
		m.byFate[i] = m.seconds.WithLabelValues(fate)
	}
	return m
}

func (m *metrics) answered(_ byte, fate client.Fate, took int64) {
	m.byFate[fate].Observe(float64(took) / float64(time.Second))
}

// Describe implements prometheus.Collector.
func (s *Service) Describe(out chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		out <- d
	}
	s.metrics.seconds.Describe(out)
}

// Collect implements prometheus.Collector. A loop that does not answer fails the scrape.
func (s *Service) Collect(out chan<- prometheus.Metric) {
	a, err := s.ask()
	if err != nil {
		out <- prometheus.NewInvalidMetric(descSessions, err)
		return
	}
	put := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}
	put(descSessions, prometheus.GaugeValue, float64(a.stats.Sessions))
	put(descMaxSessions, prometheus.GaugeValue, float64(s.cfg.MaxSessions))
	put(descConfigured, prometheus.GaugeValue, float64(a.sessions))
	put(descConns, prometheus.GaugeValue, float64(a.stats.Conns-a.stats.Unknown), "session")
	put(descConns, prometheus.GaugeValue, float64(a.stats.Unknown), "unknown")
	put(descLogons, prometheus.CounterValue, float64(a.stats.Logons))
	for _, why := range reasons {
		put(descRefused, prometheus.CounterValue, float64(a.total[why]), string(why))
	}
	put(descTurnedAway, prometheus.CounterValue, float64(a.stats.TurnedAway))
	put(descWaited, prometheus.CounterValue, float64(a.stats.Waited))
	put(descSlow, prometheus.CounterValue, float64(a.slow))
	a.counts.Each(func(msgType string, in, o uint64) {
		put(descMessages, prometheus.CounterValue, float64(in), "in", msgType)
		put(descMessages, prometheus.CounterValue, float64(o), "out", msgType)
	})
	put(descInFlight, prometheus.GaugeValue, float64(a.inFlight))
	put(descUnreachable, prometheus.GaugeValue, float64(len(s.grid.Missing())))
	failing := 0.0
	if s.files.String() != "" {
		failing = 1
	}
	put(descFiles, prometheus.GaugeValue, failing)
	s.metrics.seconds.Collect(out)
}
