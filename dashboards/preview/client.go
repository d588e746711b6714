package preview

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Client talks to the HTTP API of Prometheus.
type Client struct {
	Context context.Context
	URL     string // such as http://127.0.0.1:9090
}

// Series is one line of an answer: values over time, or one value. Buckets are those of a native histogram.
type Series struct {
	Labels  map[string]string
	Samples []Sample
}

// Sample is a value at a time. Histogram is nil where it is a number.
type Sample struct {
	At        time.Time
	Value     float64
	Histogram []Bucket
}

// Bucket of a histogram: how many (of a rate: a second) were between two values.
type Bucket struct{ Low, High, Count float64 }

const answerLimit = 256 << 20

func (c *Client) get(path string, values url.Values, into any) error {
	ctx, cancel := context.WithTimeout(c.Context, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+path+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return err
	}
	answer := struct {
		Status, Error string
		Data          json.RawMessage
	}{}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("HTTP %s: %.200q", resp.Status, body)
	}
	if answer.Status != "success" {
		return fmt.Errorf("prometheus: %s", answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// LabelValues are the values of a label among the series that match.
func (c *Client) LabelValues(label, match string, w Window) (values []string, err error) {
	err = c.get("/api/v1/label/"+label+"/values", url.Values{"match[]": {match}, "start": {unix(w.From)}, "end": {unix(w.To)}}, &values)
	return values, err
}

// Range asks for values over the window.
func (c *Client) Range(expr string, w Window) ([]Series, error) {
	return c.query("/api/v1/query_range", url.Values{"query": {expr}, "start": {unix(w.From)}, "end": {unix(w.To)}, "step": {strconv.FormatFloat(w.Step.Seconds(), 'f', -1, 64)}})
}

// Instant asks for the values at the end of the window.
func (c *Client) Instant(expr string, w Window) ([]Series, error) {
	return c.query("/api/v1/query", url.Values{"query": {expr}, "time": {unix(w.To)}})
}

func unix(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

func (c *Client) query(path string, values url.Values) ([]Series, error) {
	var data struct {
		ResultType string
		Result     json.RawMessage
	}
	if err := c.get(path, values, &data); err != nil {
		return nil, err
	}
	if data.ResultType != "matrix" && data.ResultType != "vector" {
		return nil, fmt.Errorf("the answer is a %s", data.ResultType)
	}
	var list []struct {
		Metric     map[string]string
		Value      *pair
		Values     []pair
		Histogram  *histogramPair
		Histograms []histogramPair
	}
	if err := json.Unmarshal(data.Result, &list); err != nil {
		return nil, err
	}
	out := make([]Series, 0, len(list))
	for _, l := range list {
		s := Series{Labels: l.Metric}
		if l.Value != nil {
			l.Values = append(l.Values, *l.Value)
		}
		if l.Histogram != nil {
			l.Histograms = append(l.Histograms, *l.Histogram)
		}
		for _, p := range l.Values {
			s.Samples = append(s.Samples, Sample{At: p.at, Value: p.value})
		}
		for _, p := range l.Histograms {
			s.Samples = append(s.Samples, Sample{At: p.at, Value: p.count, Histogram: p.buckets})
		}
		out = append(out, s)
	}
	return out, nil
}

// pair is [seconds, "value"].
type pair struct {
	at    time.Time
	value float64
}

func (p *pair) UnmarshalJSON(b []byte) error {
	var seconds float64
	var text string
	if err := json.Unmarshal(b, &[]any{&seconds, &text}); err != nil {
		return err
	}
	v, err := strconv.ParseFloat(text, 64)
	p.at, p.value = fromUnix(seconds), v
	return err
}

// histogramPair is [seconds, {count, sum, buckets: [[boundaries, "low", "high", "count"], …]}].
type histogramPair struct {
	at      time.Time
	count   float64
	buckets []Bucket
}

func (p *histogramPair) UnmarshalJSON(b []byte) error {
	var seconds float64
	var h struct {
		Count   string
		Buckets [][]any
	}
	if err := json.Unmarshal(b, &[]any{&seconds, &h}); err != nil {
		return err
	}
	p.at, p.buckets = fromUnix(seconds), []Bucket{} // not nil: it is a histogram, even one that counted nothing
	var err error
	if p.count, err = strconv.ParseFloat(h.Count, 64); err != nil {
		return err
	}
	for _, row := range h.Buckets {
		if len(row) != 4 {
			return fmt.Errorf("a bucket has %d fields", len(row))
		}
		var v [3]float64
		for i := range v {
			if v[i], err = strconv.ParseFloat(fmt.Sprint(row[i+1]), 64); err != nil {
				return err
			}
		}
		p.buckets = append(p.buckets, Bucket{v[0], v[1], v[2]})
	}
	return nil
}

func fromUnix(seconds float64) time.Time {
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(math.Round(part*1e3))*1e6)
}
