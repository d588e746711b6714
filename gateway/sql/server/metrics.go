package server

import "github.com/prometheus/client_golang/prometheus"

var (
	descConnections = prometheus.NewDesc("ordergrid_gateway_sql_connections", "SQL connections that are open.", nil, nil)
	descStatements  = prometheus.NewDesc("ordergrid_gateway_sql_statements_total", "SQL statements that ended, by result: answered, failed.", []string{"result"}, nil)
	descRefused     = prometheus.NewDesc("ordergrid_gateway_sql_connections_refused_total", "SQL connections that were refused: too many, no login in time, or one that failed.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Server) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descConnections, descStatements, descRefused} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Server) Collect(out chan<- prometheus.Metric) {
	n := s.Stats()
	out <- prometheus.MustNewConstMetric(descConnections, prometheus.GaugeValue, float64(n.Connections))
	out <- prometheus.MustNewConstMetric(descStatements, prometheus.CounterValue, float64(n.Statements), "answered")
	out <- prometheus.MustNewConstMetric(descStatements, prometheus.CounterValue, float64(n.Failed), "failed")
	out <- prometheus.MustNewConstMetric(descRefused, prometheus.CounterValue, float64(n.Refused))
}

// NotReady names what keeps clients from being served: nothing, once it listens.
func (s *Server) NotReady() []string { return nil }

// Status is the server's part of /status.
func (s *Server) Status() any { return s.Stats() }
