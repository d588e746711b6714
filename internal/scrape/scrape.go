// Package scrape reads the metrics of a grid node, for programs other than Prometheus.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/ordergrid/ordergrid/internal/histogram"
)

// maxScrape bounds the size of a node's answer, in bytes.
const maxScrape = 16 << 20

// Reading is the metrics of one node at one moment.
type Reading struct {
	// At is the time of the request.
	At       time.Time
	families map[string]*dto.MetricFamily
}

// Get reads a node's metrics as protobuf, the form that has native histograms.
func Get(ctx context.Context, c *http.Client, address string) (*Reading, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
	at := time.Now()
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("http://%s/metrics: %s", address, res.Status)
	}
	r := &Reading{At: at, families: map[string]*dto.MetricFamily{}}
	dec := expfmt.NewDecoder(io.LimitReader(res.Body, maxScrape), expfmt.ResponseFormat(res.Header))
	for {
		var f dto.MetricFamily
		if err := dec.Decode(&f); errors.Is(err, io.EOF) {
			return r, nil
		} else if err != nil {
			return nil, fmt.Errorf("http://%s/metrics: %w", address, err)
		}
		r.families[f.GetName()] = &f
	}
}

// Sum sums the values of a node's metric with these labels, given as name and value in turn. The
// name is without its ordergrid_node_.
func (r *Reading) Sum(name string, labels ...string) (v float64) {
	return r.Total("ordergrid_node_"+name, labels...)
}

// Total is Sum of a metric by its full name.
func (r *Reading) Total(name string, labels ...string) (v float64) {
	for _, m := range r.families[name].GetMetric() {
		if has(m, labels) {
			v += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return v
}

// Native is the native histogram of that full name with these labels; empty if it does not exist.
func (r *Reading) Native(name string, labels ...string) (*histogram.Native, error) {
	for _, m := range r.families[name].GetMetric() {
		if has(m, labels) {
			return histogram.FromScrape(m.GetHistogram())
		}
	}
	return &histogram.Native{}, nil
}

// Biggest is the highest value of a gauge.
func (r *Reading) Biggest(name string) (v float64) {
	for _, m := range r.families["ordergrid_node_"+name].GetMetric() {
		v = max(v, m.GetGauge().GetValue())
	}
	return v
}

// BiggestBy is the highest value of a gauge for each value of a label, nil if there is none.
func (r *Reading) BiggestBy(name, label string) map[string]float64 {
	var by map[string]float64
	for _, m := range r.families["ordergrid_node_"+name].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() != label {
				continue
			}
			if by == nil {
				by = map[string]float64{}
			}
			by[l.GetValue()] = max(by[l.GetValue()], m.GetGauge().GetValue())
		}
	}
	return by
}

func has(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

// Has reports whether the node has that metric.
func (r *Reading) Has(name string) bool {
	return len(r.families["ordergrid_node_"+name].GetMetric()) > 0
}

// Mean gives the sum and the number of the observations of a histogram.
func (r *Reading) Mean(name string) (sum, count float64) {
	for _, m := range r.families["ordergrid_node_"+name].GetMetric() {
		sum += m.GetHistogram().GetSampleSum()
		count += float64(m.GetHistogram().GetSampleCount()) + m.GetHistogram().GetSampleCountFloat()
	}
	return sum, count
}

// Latency is the histogram of orders, as primary.
func (r *Reading) Latency() (*histogram.Native, error) {
	m := r.families["ordergrid_node_order_latency_seconds"].GetMetric()
	if len(m) == 0 {
		return &histogram.Native{}, nil
	}
	return histogram.FromScrape(m[0].GetHistogram())
}
