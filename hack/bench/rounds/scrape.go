package rounds

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// samples of one scrape, by name and labels as they are exported.
type samples map[string]float64

// scraper asks the nodes of a grid.
type scraper struct {
	client *http.Client
	urls   []string
}

// maxAnswer bounds what is read from a node, in bytes.
const maxAnswer = 16 << 20

func (s *scraper) get(ctx context.Context, node int, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.urls[node]+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read to its end
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s%s answers %s", s.urls[node], path, resp.Status)
	}
	return string(b), err
}

// scrape reads the metrics of all nodes.
func (s *scraper) scrape(ctx context.Context) (out []samples, err error) {
	for i := range s.urls {
		text, err := s.get(ctx, i, "/metrics")
		if err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
		out = append(out, parseSamples(text))
	}
	return out, nil
}

// parseSamples reads the text format. No label value of a node holds a space.
func parseSamples(text string) samples {
	out := samples{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name == "#" {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			out[name] = v
		}
	}
	return out
}
