package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
	"github.com/ordergrid/ordergrid/grid-node/fabric"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
)

// serveFlags are the flags that are not fields of node.Config.
type serveFlags struct {
	arbiter, namespace, memory, prefault, learnerRate, io, peerKey string
	tls                                                            tlsflag.Flags
	fabric                                                         fabricFlags
	access                                                         accessFlags
	restore                                                        restoreFlags
	journal                                                        journalFlags
	views                                                          viewFlags
	log                                                            command.LogFlags
	functions                                                      functionFlags
	execution                                                      executionFlags
	regions                                                        regionFlags
}

func serveCommand() *cobra.Command {
	var cfg node.Config
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one node of a grid",
		Long: `Run one node of a grid until SIGTERM; then drain and exit 0.

A node holds a replica of every partition of its shard. Which replica is primary
is kept by the arbiter: GridPartition objects of the API server ("kube"), or the
process that runs "grid-node dev" (http://host:port). It is not on the data path.

A replica whose state is no longer valid (it was removed from inSync, or its
log is another history) is discarded and joins anew, as a new member of its partition.

Draining: every partition this node is primary of is handed over to a member in
sync, the node is retired from the others, and only then it ends; no order fails. A node that
holds the only copy serves on until another has caught up. It stops at once, after answering
what it accepted, when the partition's record is gone (the grid is being deleted), with
--replicas 1, at a second SIGTERM or a SIGINT, and when --drain-timeout is nearly over.

Exit codes: 0 drained, 1 failed, 2 wrong usage.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("max-connections-per-client") {
				cfg.MaxClientConns = cfg.MaxConns / 4
			}
			n, err := newNode(cmd.Context(), cfg, f)
			switch {
			case errors.Is(err, fabric.ErrNoAddress):
				return err
			case err != nil:
				return command.BadUsage(err)
			}
			defer stopAtSecondSignal(n)()
			return n.Run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&cfg.Grid, "grid", "", "name of the grid (required)")
	fl.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the grid, with --arbiter=kube")
	fl.StringVar(&cfg.Pod, "pod", os.Getenv("POD_NAME"), "name of this pod; default $POD_NAME")
	fl.IntVar(&cfg.Shard, "shard", 0, "number of this node's shard, from 0")
	fl.IntVar(&cfg.Replicas, "replicas", 2, "copies of each partition, the primary's included, until its record in the arbiter was read, which has the number: 1..3")
	fl.IntVar(&cfg.Partitions, "partitions", 0, "how many partitions the grid has, 1..1024, the same for all its nodes, immutable: orders are spread over them by the hash of their key (required)")
	fl.IntVar(&cfg.MinInSync, "min-in-sync", 1, "refuse orders while fewer copies than this are in sync; the partition's record overrides it")
	fl.StringVar(&cfg.Listen, "listen", ":7400", "data port: clients, peers and administration")
	fl.StringVar(&cfg.Advertise, "advertise", defaultAdvertise(), "ip:port at which others reach the data port; default $POD_IP:7400")
	fl.StringVar(&cfg.External, "external-listen", "", "a second data port, for clients outside the cluster, which receive the external addresses in the partitions' records. Empty: none")
	f.fabric.add(fl)
	fl.StringVar(&cfg.HTTP, "http", ":9400", "metrics and health: /metrics /healthz /readyz /status; empty switches it off")
	fl.StringSliceVar(&cfg.Peers, "peers", nil, "host:port of the shard's nodes, connected to in advance; repeat or separate by commas")
	fl.StringVar(&f.memory, "memory-limit", "1Gi", "memory the process may use; orders get what remains after the runtime and the connections")
	fl.StringVar(&f.prefault, "prefault", "0", "memory for orders to fault in before the node serves, of --memory-limit: orders do not wait for it later, the start takes longer (0.1 to 2 s per GiB)")
	fl.IntVar(&cfg.MaxConns, "max-connections", 4096, "connections at the same time")
	fl.IntVar(&cfg.MaxClientConns, "max-connections-per-client", 0, "connections of one client, by its authenticated user, service account or certificate, with --authorization: 0 any number; default a quarter of --max-connections")
	fl.StringVar(&f.arbiter, "arbiter", "", "store of the configuration: kube, or http://host:port of grid-node dev (required)")
	fl.StringVar(&cfg.Sink, "sink", "hold", "the sink called file: hold (none) or file (append-only, one line an order, fsync per batch). --file-sink adds others")
	fl.StringVar(&cfg.SinkDir, "sink-dir", "", "directory of --sink=file; a directory per pod is made in it")
	fl.StringToStringVar(&cfg.FileSinks, "file-sink", nil, "NAME=DIR, a further file sink, with a position of its own in the log; repeat or separate by commas. The same names on every node of the grid; an entry is freed only once all of them hold it")
	fl.StringSliceVar(&cfg.ExternalSinks, "external-sink", nil, "name of a sink outside the grid, which follows the log and reports its position; repeat or separate by commas. The same names on every node of the grid; an entry is freed only once all of them hold it")
	fl.StringSliceVar(&cfg.RemovedSinks, "removed-sink", nil, "name of a removed --file-sink or --external-sink: entries are freed without waiting for it. Repeat or separate by commas")
	fl.StringVar(&cfg.Retention, "retention", "keep-all", "keep-all (a full node refuses orders) or free-downstream (above --high-watermark the oldest orders that every sink holds are freed)")
	fl.IntVar(&cfg.HighWatermark, "high-watermark", 0, "percent of the orders' memory beyond which --retention=free-downstream frees: 20..95; default 80")
	fl.DurationVar(&cfg.Beacon, "beacon", 0, "heartbeat interval; default 20ms")
	fl.DurationVar(&cfg.Lease, "lease", 0, "a member silent for this long is dropped by the primary; default 200ms")
	fl.DurationVar(&cfg.Grace, "grace", 0, "a primary silent for this long is replaced, more than --lease; default 300ms")
	fl.DurationVar(&cfg.ClaimDelay, "claim-delay", 0, "pods other than the preferred one wait this long before they claim a new partition; default 10s")
	fl.DurationVar(&cfg.HandOverDelay, "hand-over-delay", 0, "a partition returns to its preferred pod once that has been in sync for this long, so that a flapping pod does not move it each time; default 5s")
	fl.StringVar(&f.learnerRate, "learner-rate", "256Mi", "bytes a second this node may send to nodes that catch up, all partitions together: a higher rate restores redundancy sooner, a lower one disturbs orders less")
	fl.DurationVar(&cfg.DrainTimeout, "drain-timeout", 0, "longest time to hand over, finish accepted orders and the sink after SIGTERM; its last quarter, 5s at most, does not wait for other nodes; default 20s")
	fl.BoolVar(&cfg.LeasedReads, "leased-reads", false, "answer leased reads at once; a take-over then has to wait for --lease to expire")
	fl.StringVar(&f.io, "io", "", "sockets: epoll (own loop, Linux, default there) or net (portable, slower)")
	f.tls.Register(fl, "the data port speaks TLS 1.3, with clients and nodes alike")
	f.tls.RegisterServer(fl)
	fl.StringVar((*string)(&cfg.TLSTransition), "tls-transition", "", "a stage of enabling or disabling TLS one node at a time: accept (the data port accepts plain connections and TLS, other nodes are dialled without), dial (it accepts both, other nodes are dialled with TLS); default: TLS only")
	fl.StringVar(&f.peerKey, "peer-key-file", "", "file with the peer key, with which the nodes of the grid authenticate each other without TLS: 32 random bytes in base64, the same file for all of them; more lines are further keys that are accepted. Reloaded when it changes")
	fl.BoolVar(&cfg.InsecurePeers, "insecure-peers", false, "for measuring the cost of --peer-key-file: accept every connection that claims to be a node's, without authentication; any client of the data port can then erase orders")
	f.access.add(fl)
	f.restore.add(fl)
	f.journal.add(fl)
	f.views.add(fl)
	f.functions.add(fl)
	f.execution.add(fl)
	f.regions.add(fl)
	fl.StringVar(&cfg.LimitsFile, "limits", "", limitsHelp)
	fl.BoolVar(&cfg.Pprof, "pprof", false, "serve /debug/pprof on --http")
	f.log.Register(fl, "json")
	addFaults(fl)
	return cmd
}

// stopAtSecondSignal makes a second SIGTERM, or a SIGINT, stop without draining. The first SIGTERM ends the command's
// context. The returned function undoes it.
func stopAtSecondSignal(n *node.Node) (end func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			select {
			case s := <-signals:
				if s == os.Interrupt || !first {
					n.StopNow()
				}
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(signals); close(done) }
}

func defaultAdvertise() string {
	if ip := os.Getenv("POD_IP"); ip != "" {
		return ip + ":7400"
	}
	return ""
}

func newNode(ctx context.Context, cfg node.Config, f serveFlags) (*node.Node, error) {
	var err error
	if cfg.Log, err = f.log.Logger(os.Stderr); err != nil {
		return nil, err
	}
	q, err := resource.ParseQuantity(f.memory)
	if err != nil {
		return nil, fmt.Errorf("--memory-limit: value %q, allowed: a quantity such as 512Mi or 4Gi", f.memory)
	}
	cfg.MemoryLimit = q.Value()
	if q, err = resource.ParseQuantity(f.prefault); err != nil {
		return nil, fmt.Errorf("--prefault: value %q, allowed: a quantity such as 0, 512Mi or 4Gi", f.prefault)
	}
	cfg.Prefault = q.Value()
	if q, err = resource.ParseQuantity(f.learnerRate); err != nil {
		return nil, fmt.Errorf("--learner-rate: value %q, allowed: a quantity of bytes a second such as 64Mi or 1Gi", f.learnerRate)
	}
	if cfg.LearnerRate = q.Value(); cfg.LearnerRate == 0 {
		cfg.LearnerRate = -1 // an explicit 0 is not the default
	}
	cfg.Transport = transport.Kind(f.io)
	if cfg.TLS, err = f.tls.Load(); err != nil {
		return nil, err
	}
	if f.peerKey != "" {
		if cfg.PeerKeys, err = peerkey.Load(f.peerKey); err != nil {
			return nil, fmt.Errorf("--peer-key-file: %w", err)
		}
	}
	if err := f.fabric.apply(ctx, &cfg); err != nil {
		return nil, err
	}
	if err := setArbiter(ctx, &cfg, f); err != nil {
		return nil, err
	}
	if err := f.restore.apply(&cfg); err != nil {
		return nil, err
	}
	if cfg.Journal, err = f.journal.options(); err != nil {
		return nil, err
	}
	if cfg.Views, err = f.views.options(); err != nil {
		return nil, err
	}
	if cfg.Functions, err = f.functions.options(); err != nil {
		return nil, err
	}
	if cfg.Execution, err = f.execution.options(); err != nil {
		return nil, err
	}
	if err = f.regions.apply(&cfg); err != nil {
		return nil, err
	}
	tuneRuntime(&cfg)
	return node.New(cfg)
}

func setArbiter(ctx context.Context, cfg *node.Config, f serveFlags) error {
	if f.arbiter != "kube" {
		a, err := memory.NewClient(f.arbiter)
		if err != nil {
			return fmt.Errorf("--arbiter: value %q, allowed: kube, or http://host:port", f.arbiter)
		}
		if source := cfg.Source(); source.IsValid() {
			a.From(source)
		}
		cfg.Arbiter = a
		return f.access.apply(cfg, nil)
	}
	rc, err := kube.InCluster()
	if err != nil {
		return err
	}
	a, err := kube.New(rc, f.namespace)
	if err != nil {
		return err
	}
	rec, err := kube.NewRecorder(rc, a, cfg.Pod, cfg.Log)
	if err != nil {
		return err
	}
	cfg.Arbiter, cfg.Recorder = a, rec
	go rec.Run(context.WithoutCancel(ctx)) // until the process ends: draining records events too
	return f.access.apply(cfg, rc)
}

// tuneRuntime keeps garbage collection rare: orders are not on its heap, so the live heap is a few MiB and may grow
// several times over before it is worth a pause. GOGC, if set, takes precedence.
func tuneRuntime(cfg *node.Config) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(cfg.HeapLimit()) // the heap's share; orders are elsewhere
	}
}
