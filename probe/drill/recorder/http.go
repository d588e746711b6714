package recorder

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"github.com/ordergrid/ordergrid/internal/webguard"
	"github.com/ordergrid/ordergrid/probe/drill/api"
)

// Server is an HTTP server with bounds for a peer that is slow or hostile.
func (r *Recorder) Server() *http.Server {
	return webguard.Server(r.Handler(), webguard.Limits{}, nil)
}

// Handler serves the API of package api, and /metrics.
func (r *Recorder) Handler() http.Handler {
	mux := http.NewServeMux()
	metrics := promhttp.HandlerFor(r.Registry(), promhttp.HandlerOpts{DisableCompression: true, ErrorHandling: promhttp.HTTPErrorOnError})
	mux.Handle("GET /metrics", r.forReaders(webguard.Page(metrics, func(r *http.Request) string { return string(expfmt.Negotiate(r.Header)) })))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	for pattern, answer := range map[string]func(*http.Request) (any, error){
		"GET " + api.PathState:                      func(*http.Request) (any, error) { return r.State(), nil },
		"GET " + api.PathSteps + "{index}":          r.getStep,
		"PUT " + api.PathSteps + "{index}":          r.putStep,
		"POST " + api.PathSteps + "{index}/{event}": r.postEvent,
		"POST " + api.PathFinish:                    r.postFinish,
		"GET " + api.PathDigests:                    r.getDigests,
	} {
		mux.HandleFunc(pattern, r.guarded(func(w http.ResponseWriter, req *http.Request) error {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(10 * time.Second))
			v, err := answer(req)
			if err != nil {
				return err
			}
			w.Header().Set("Content-Type", "application/json")
			if strings.HasSuffix(req.URL.Path, api.PathFinish) {
				w.WriteHeader(http.StatusAccepted)
			}
			return json.NewEncoder(w).Encode(v)
		}))
	}
	for path, part := range map[string]func(*output) ([]byte, string){
		api.PathCertificate: func(o *output) ([]byte, string) { return o.json, "application/json" },
		api.PathText:        func(o *output) ([]byte, string) { return o.text, "text/plain; charset=utf-8" },
		api.PathPage:        func(o *output) ([]byte, string) { return o.page, "text/html; charset=utf-8" },
	} {
		mux.HandleFunc("GET "+path, r.guarded(func(w http.ResponseWriter, _ *http.Request) error {
			out, err := r.output()
			if err != nil {
				return err
			}
			b, kind := part(out)
			w.Header().Set("Content-Type", kind)
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(30 * time.Second))
			_, _ = w.Write(b) // the client may be gone
			return nil
		}))
	}
	mux.HandleFunc("GET "+api.PathHistory, r.guarded(r.getHistory))
	return mux
}

// hasToken reports whether a request has the drill's token.
func (r *Recorder) hasToken(req *http.Request) bool {
	want, got := sha256.Sum256([]byte("Bearer "+r.cfg.Token)), sha256.Sum256([]byte(req.Header.Get("Authorization")))
	return r.cfg.Token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// forReaders requires the certificate of Prometheus, whose disclosure to a fake recorder is
// harmless, or the token.
func (r *Recorder) forReaders(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		// The chain was verified in the handshake.
		certified := req.TLS != nil && len(req.TLS.VerifiedChains) > 0 && req.TLS.VerifiedChains[0][0].Subject.CommonName == api.MetricsReader
		if !certified && !r.hasToken(req) {
			http.Error(w, "the metrics of a drill are for the certificate "+api.MetricsReader+" of the operator's authority, or for the token of the drill", http.StatusUnauthorized)
			return
		}
		page.ServeHTTP(w, req)
	})
}

// guarded requires the token, bounds the body, and maps errors to statuses.
func (r *Recorder) guarded(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if !r.hasToken(req) {
			http.Error(w, "the token of the drill is missing or wrong: send Authorization: Bearer TOKEN", http.StatusUnauthorized)
			return
		}
		req.Body = http.MaxBytesReader(w, req.Body, api.MaxBody)
		if err := serve(w, req); err != nil {
			http.Error(w, err.Error(), statusOf(err))
		}
	}
}

// errNotYet: there is no certificate.
var errNotYet = errors.New("there is no certificate yet")

func statusOf(err error) int {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errUnknownStep), errors.Is(err, errNotYet):
		return http.StatusNotFound
	case errors.Is(err, errConflict):
		return http.StatusConflict
	}
	return http.StatusBadRequest
}

func body[T any](req *http.Request) (v T, err error) {
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return v, fmt.Errorf("body: %w", err)
	}
	if len(b) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("body: %w", err)
	}
	return v, nil
}

func index(req *http.Request) (int, error) {
	n, err := strconv.Atoi(req.PathValue("index"))
	if err != nil || n < 0 || n >= maxSteps {
		return 0, fmt.Errorf("index %.20q: must be 0 to %d", req.PathValue("index"), maxSteps-1)
	}
	return n, nil
}

func (r *Recorder) getStep(req *http.Request) (any, error) {
	n, err := index(req)
	if err != nil {
		return nil, err
	}
	return r.Step(n)
}

func (r *Recorder) putStep(req *http.Request) (any, error) {
	n, err := index(req)
	if err != nil {
		return nil, err
	}
	s, err := body[api.Step](req)
	if err != nil {
		return nil, err
	}
	return r.Begin(n, s)
}

func (r *Recorder) postEvent(req *http.Request) (any, error) {
	n, err := index(req)
	if err != nil {
		return nil, err
	}
	note, err := body[api.Note](req)
	if err != nil {
		return nil, err
	}
	return r.Tell(n, api.Event(req.PathValue("event")), note)
}

func (r *Recorder) postFinish(req *http.Request) (any, error) {
	f, err := body[api.Finish](req)
	if err != nil {
		return nil, err
	}
	if err := r.Finish(f); err != nil {
		return nil, err
	}
	return r.State(), nil
}

func (r *Recorder) output() (*output, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.phase {
	case api.Done:
		out := r.out
		return &out, nil
	case api.Failed:
		return nil, fmt.Errorf("%w, and there will be none: %s", errNotYet, r.failure)
	}
	return nil, fmt.Errorf("%w: the recorder is %s", errNotYet, r.phase)
}

func (r *Recorder) getDigests(*http.Request) (any, error) {
	out, err := r.output()
	if err != nil {
		return nil, err
	}
	return api.Digests{Certificate: out.jsonSum, History: out.histSum}, nil
}

func (r *Recorder) getHistory(w http.ResponseWriter, req *http.Request) error {
	out, err := r.output()
	if err != nil {
		return err
	}
	f, err := os.Open(out.history)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	w.Header().Set("Content-Type", "application/gzip")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour))
	http.ServeContent(w, req, "", time.Time{}, f)
	return nil
}
