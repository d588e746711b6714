package link

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/internal/webguard"
)

// Handler serves /metrics of a registry, and /healthz, /readyz and /status of the Runner.
func (r *Runner) Handler(g prometheus.Gatherer) http.Handler {
	return webguard.StatusPages(g, r.notReady, func() any { return r.Status() })
}

// notReady names what is not ready. A link that fails is not restarted for it: a new process would begin where this
// one is.
func (r *Runner) notReady() (lines []string) {
	for _, p := range r.Status().Partitions {
		switch {
		case p.Error != nil:
			lines = append(lines, fmt.Sprintf("%s: since %s: %s", p.Partition, p.Error.Since.UTC().Format(time.RFC3339), p.Error.Text))
		case !p.Open:
			lines = append(lines, fmt.Sprintf("%s: not open yet", p.Partition))
		}
	}
	return lines
}
