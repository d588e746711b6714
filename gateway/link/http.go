package link

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"github.com/ordergrid/ordergrid/internal/webguard"
)

// Handler serves /metrics of a registry, and /healthz, /readyz and /status of the Runner.
func (r *Runner) Handler(g prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", webguard.Page(promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}),
		func(q *http.Request) string {
			return string(expfmt.NegotiateAccept(q.Header, expfmt.DefaultAcceptedFormats()...))
		}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", r.serveReady)
	mux.Handle("GET /status", webguard.Page(http.HandlerFunc(r.serveStatus), func(*http.Request) string { return "" }))
	return mux
}

// serveReady names what is not ready. A link that fails is not restarted for it: a new process would begin where this
// one is.
func (r *Runner) serveReady(w http.ResponseWriter, _ *http.Request) {
	s := r.Status()
	if s.Ready {
		fmt.Fprintln(w, "ok")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	for _, p := range s.Partitions {
		switch {
		case p.Error != nil:
			fmt.Fprintf(w, "%s: since %s: %s\n", p.Partition, p.Error.Since.UTC().Format(time.RFC3339), p.Error.Text)
		case !p.Open:
			fmt.Fprintf(w, "%s: not open yet\n", p.Partition)
		}
	}
}

func (r *Runner) serveStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(r.Status()) // the client may be gone
}
