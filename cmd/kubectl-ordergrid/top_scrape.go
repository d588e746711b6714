package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/ordergrid/ordergrid/internal/histogram"
)

// maxScrape bounds what is read of a node's answer, in bytes.
const maxScrape = 16 << 20

// reading is what one node said at one moment.
type reading struct {
	at       time.Time
	families map[string]*dto.MetricFamily
}

// scrape reads a node's metrics as protobuf, the form that has native histograms.
func scrape(ctx context.Context, c *http.Client, address string) (*reading, error) {
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
	r := &reading{at: at, families: map[string]*dto.MetricFamily{}}
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

// sum adds the values of a node's metric up whose labels have these values.
func (r *reading) sum(name string, labels ...string) (v float64) {
	for _, m := range r.families["ordergrid_node_"+name].GetMetric() {
		if has(m, labels) {
			v += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return v
}

// biggest is the highest value of a gauge.
func (r *reading) biggest(name string) (v float64) {
	for _, m := range r.families["ordergrid_node_"+name].GetMetric() {
		v = max(v, m.GetGauge().GetValue())
	}
	return v
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

// latency is the histogram of orders, as primary.
func (r *reading) latency() (*histogram.Native, error) {
	m := r.families["ordergrid_node_order_latency_seconds"].GetMetric()
	if len(m) == 0 {
		return &histogram.Native{}, nil
	}
	return histogram.FromScrape(m[0].GetHistogram())
}

// shard of the partitions that the node has, such as s0; "" if it has none yet.
func (r *reading) shard() string {
	for _, m := range r.families["ordergrid_node_partition_epoch"].GetMetric() {
		for _, l := range m.GetLabel() {
			if shard, _, ok := strings.Cut(l.GetValue(), "p"); ok && l.GetName() == "partition" {
				return shard
			}
		}
	}
	return ""
}
