package host

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// NodeSample is the metrics of a grid node at one moment.
type NodeSample struct {
	URL string
	At  time.Time
	// CPU is the node's CPU time; Collections its garbage collections. Negative if unknown.
	CPU, Collections float64
}

// maxMetrics bounds what is read from a node, in bytes.
const maxMetrics = 4 << 20

// Scrape reads a node's metrics. url is its base, such as http://10.0.0.1:9400.
func Scrape(ctx context.Context, url string) (NodeSample, error) {
	s := NodeSample{URL: url, CPU: -1, Collections: -1}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return s, fmt.Errorf("metrics of %s: %w", url, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, fmt.Errorf("metrics: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("metrics of %s: %s", url, resp.Status)
	}
	s.At = time.Now()
	s.read(io.LimitReader(resp.Body, maxMetrics))
	return s, nil
}

// read extracts the two samples from the text exposition format.
func (s *NodeSample) read(r io.Reader) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), 1<<20)
	for sc.Scan() {
		name, value, ok := strings.Cut(sc.Text(), " ")
		if !ok {
			continue
		}
		var into *float64
		switch name {
		case "process_cpu_seconds_total":
			into = &s.CPU
		case "go_gc_duration_seconds_count":
			into = &s.Collections
		default:
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && v >= 0 {
			*into = v
		}
	}
}
