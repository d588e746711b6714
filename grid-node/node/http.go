package node

import (
	"context"
	"errors"
	"net/http"
	"net/http/pprof"
	"runtime"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/webguard"
)

// serveHTTP answers metrics and health until the node ends.
func (n *Node) serveHTTP() error {
	var limits webguard.Limits
	if n.cfg.Pprof {
		limits.WriteTimeout = 2 * time.Minute // a profile takes what it is asked for
	}
	ln, err := webguard.Listen(n.ctx, n.cfg.HTTP, limits)
	if err != nil {
		return err
	}
	n.web = ln
	srv := webguard.Server(n.mux(), limits, n.log)
	n.wg.Go(func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			n.log.Error("HTTP server ended", "reason", err)
		}
	})
	n.wg.Go(func() {
		<-n.ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = srv.Shutdown(ctx)
	})
	return nil
}

func (n *Node) mux() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", n.registry.Handler())
	mux.HandleFunc("GET /healthz", n.healthz)
	mux.HandleFunc("GET /readyz", n.readyz)
	mux.HandleFunc("GET "+nodestatus.Path, n.serveStatus)
	mux.HandleFunc("GET "+nodestatus.MemoryPath, n.serveMemory)
	mux.HandleFunc("GET "+nodestatus.PausesPath, nodestatus.ServePauses)
	mux.HandleFunc("GET "+nodestatus.PeersPath, n.servePeers)
	mux.HandleFunc("GET "+nodestatus.ClockPath, nodestatus.ServeClock(n.cfg.Pod, wire.FormatBootID(n.boot)))
	mux.HandleFunc("GET "+nodestatus.TakeoversPath, n.serveTakeovers)
	mux.HandleFunc("GET "+nodestatus.ArbiterPath, n.serveArbiter)
	if n.cfg.Pprof {
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

// healthz asks the local loop and nobody else: a node must not be restarted
// because its peers or the API server are away.
func (n *Node) healthz(w http.ResponseWriter, _ *http.Request) {
	if err := n.onLoop(func() {}); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// Readiness is the body of /readyz.
type Readiness struct {
	Ready      bool                 `json:"ready"`
	Member     string               `json:"member"`
	Missing    []string             `json:"missing,omitempty"` // what keeps it from being ready, in words
	Partitions []PartitionReadiness `json:"partitions"`
}

// PartitionReadiness is one partition's part of Readiness.
type PartitionReadiness struct {
	Partition string   `json:"partition"`
	Member    string   `json:"member"` // this node's incarnation in the partition
	Role      string   `json:"role"`
	Epoch     uint64   `json:"epoch"`
	InSync    []string `json:"inSync"`
	LastSeq   uint64   `json:"lastSeq"`
	CommitSeq uint64   `json:"commitSeq"`
}

// readyz is ready when this process is in sync in every partition of its shard:
// a node that restarted and still learns is not, whatever its pod's name.
func (n *Node) readyz(w http.ResponseWriter, _ *http.Request) {
	var r Readiness
	err := n.onLoop(func() { r = n.readiness() })
	if err != nil {
		r = Readiness{Member: n.self, Missing: []string{err.Error()}}
	}
	if !r.Ready {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	writePage(w, r)
}

func (n *Node) readiness() Readiness {
	r := Readiness{Member: n.self, Ready: true}
	for _, p := range n.parts {
		s := p.replica.Status()
		pr := PartitionReadiness{Partition: p.id.String(), Member: p.inc.self.ID, Role: s.Role.String(), LastSeq: s.LastSeq, CommitSeq: s.CommitSeq}
		why := ""
		switch {
		case s.Config == nil:
			why = "its configuration has not been read from the arbiter yet"
		case s.Config.Epoch == 0:
			why = "nobody has claimed it yet"
		case !s.Config.Has(p.inc.self.Boot):
			why = "this member is not in its inSync: it has to catch up with " + s.Config.Primary.ID
		case s.Role != replica.RolePrimary && s.Role != replica.RoleBackup:
			why = "this member is " + s.Role.String()
		}
		if s.Config != nil {
			pr.Epoch = s.Config.Epoch
			for _, m := range s.Config.InSync {
				pr.InSync = append(pr.InSync, m.ID)
			}
		}
		if why != "" {
			r.Ready = false
			r.Missing = append(r.Missing, "partition "+pr.Partition+": "+why)
		}
		r.Partitions = append(r.Partitions, pr)
	}
	if n.stopping {
		r.Ready = false
		r.Missing = append(r.Missing, "the node is stopping")
	}
	return r
}
