package webguard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// StatusPages serves the metrics of a registry, and what ready and status return at the time of the request: the lines that
// name what is not ready, none if all is, and a value for JSON.
func StatusPages(g prometheus.Gatherer, ready func() []string, status func() any) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", Page(promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}),
		func(q *http.Request) string {
			return string(expfmt.NegotiateAccept(q.Header, expfmt.DefaultAcceptedFormats()...))
		}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		missing := ready()
		if len(missing) == 0 {
			fmt.Fprintln(w, "ok")
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		for _, line := range missing {
			fmt.Fprintln(w, line)
		}
	})
	mux.Handle("GET /status", Page(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(status()) // the client may be gone
	}), func(*http.Request) string { return "" }))
	return mux
}

// Serve serves h on a listener of webguard until ctx ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := Server(h, Limits{}, nil)
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(ending)
		_ = server.Close()
	})
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
