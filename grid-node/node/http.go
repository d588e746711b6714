package node

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/pprof"
	"runtime"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/webguard"
)

// pages are the HTTP port: metrics, health, and status. They are made on goroutines, which
// ask the loops.
type pages struct {
	data     *dataLoop
	live     *liveness
	listener *webguard.Listener // nil: none
	fabric   metrics.Fabric
}

// serve answers until the node ends.
func (h *pages) serve() error {
	d := h.data
	var limits webguard.Limits
	if d.cfg.Pprof {
		limits.WriteTimeout = 2 * time.Minute // a profile takes what it is asked for
	}
	ln, err := webguard.Listen(d.ctx, d.cfg.HTTP, limits)
	if err != nil {
		return err
	}
	h.listener = ln
	srv := webguard.Server(h.mux(), limits, d.log)
	d.wg.Go(func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error("HTTP server ended", "reason", err)
		}
	})
	d.wg.Go(func() {
		<-d.ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = srv.Shutdown(ctx)
	})
	return nil
}

func (h *pages) mux() http.Handler {
	d := h.data
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", d.registry.Handler())
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("GET /readyz", h.readyz)
	mux.HandleFunc("GET "+nodestatus.Path, h.serveStatus)
	mux.HandleFunc("GET "+nodestatus.MemoryPath, dataPage(d, d.room.memory))
	mux.HandleFunc("GET "+nodestatus.PausesPath, nodestatus.ServePauses)
	mux.HandleFunc("GET "+nodestatus.PeersPath, h.servePeers)
	mux.HandleFunc("GET "+nodestatus.ClockPath, nodestatus.ServeClock(d.cfg.Pod, wire.FormatBootID(d.boot)))
	mux.HandleFunc("GET "+nodestatus.TakeoversPath, dataPage(d, d.parts.takeovers))
	mux.HandleFunc("GET "+nodestatus.BooksPath, dataPage(d, d.books))
	mux.HandleFunc("GET "+nodestatus.ArbiterPath, func(w http.ResponseWriter, r *http.Request) {
		writePage(w, d.parts.arbiter.ask(r.Context(), &d.identity))
	})
	if d.cfg.Pprof {
		runtime.SetBlockProfileRate(int(blockProfileRate))
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// blockProfileRate samples one blocking event per so much time blocked; the
// path of an order never blocks in Go's scheduler, so it pays nothing.
const blockProfileRate = 10 * time.Microsecond

// dataPage answers with a result of the data loop.
func dataPage[T any](d *dataLoop, say func() T) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var v T
		if err := d.onLoop(func() { v = say() }); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		writePage(w, v)
	}
}

// writePage answers with v as indented JSON.
func writePage(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client is gone: the error is ignored
}

// healthz checks the local loops only: a node must not be restarted because its peers or
// the API server are unavailable.
func (h *pages) healthz(w http.ResponseWriter, _ *http.Request) {
	if err := h.data.onLoop(func() {}); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// readyz is ready when this process is in sync in every partition of its shard: a
// restarted node that still catches up is not, whatever its pod's name.
func (h *pages) readyz(w http.ResponseWriter, _ *http.Request) {
	var r Readiness
	err := h.data.onLoop(func() { r = h.data.parts.readiness() })
	if err != nil {
		r = Readiness{Member: h.data.self, Missing: []string{err.Error()}}
	}
	if !r.Ready {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	writePage(w, r)
}

// serveStatus lists the processes and their views. Unlike /readyz it has no verdict: the
// status is 200 in any state of the node.
func (h *pages) serveStatus(w http.ResponseWriter, _ *http.Request) {
	var s nodestatus.Node
	var plain *nodestatus.PlainClients
	if err := h.data.onLoop(func() { s, plain = h.data.status(), h.data.clients.plain() }); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s.TLS = tlsStatus(h.data.cfg.TLS) // reads files: not on the loop
	if s.TLS != nil {
		s.TLS.Transition, s.TLS.PlainClients = string(h.data.cfg.TLSTransition), plain
	}
	writePage(w, s)
}
