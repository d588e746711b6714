package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/grid-node/dev"
	"github.com/ordergrid/ordergrid/internal/command"
)

type devFlags struct {
	sink, dir, memory, io, logLevel string
	restore                         restoreFlags
	views                           viewFlags
	external                        []string
	journal                         string
	fix                             devFIX
	limits                          string
	asJSON, pprof, leased           bool
}

func devCommand() *cobra.Command {
	var o dev.Options
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole grid on this machine, without a cluster",
		Long: `Run a whole grid on this machine: every node a process of its own, on ports that
follow --port, and an arbiter in memory. Nothing is kept when it ends, except the
files of --sink=file. A node that is killed is started again as a new member.

It prints the endpoints and a command for a first order. --json prints one line for
programs once the grid accepts orders. Ctrl-C stops everything. What follows "--" are
further flags of "grid-node serve" for every node.

The arbiter's address also has switches for tests: GET /v1/nodes lists the processes
with their present pids, POST /v1/nodes/POD/replace starts another process under a pod's
name, PUT /v1/partitions/NAME/spec changes the spec of a partition, and POST /v1/faults
{"mode":"away"} makes the arbiter misbehave (ok, away, slow, commit-then-timeout).
Changes need "Content-Type: application/json", so that no web page can make them.`,
		Args: func(cmd *cobra.Command, args []string) error {
			return command.NoArgs(cmd, args[:max(0, dash(cmd, args))])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.apply(&o); err != nil {
				return command.BadUsage(err)
			}
			if err := f.restore.applyDev(cmd.Context(), &o, cmd.Flags().Changed("partitions")); err != nil {
				return err
			}
			o.Args = append(o.Args, args...)
			return runDev(cmd.Context(), o, &f.fix, func(i dev.Info) {
				if f.asJSON {
					_ = json.NewEncoder(cmd.OutOrStdout()).Encode(i)
					return
				}
				printInfo(cmd.OutOrStdout(), o, i)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&o.Grid, "grid", "dev", "name of the grid")
	fl.IntVar(&o.Replicas, "replicas", 2, "nodes of a shard, copies of every order: 1..3")
	fl.IntVar(&o.Shards, "shards", 1, "shards")
	fl.IntVar(&o.Partitions, "partitions", 0, "partitions of the grid, --shards..1024; default one for each node")
	fl.StringVar(&o.Host, "listen", "127.0.0.1", "IP address to listen on")
	fl.BoolVar(&o.HostPerNode, "address-per-node", false, "node i listens on --listen + i and dials from there, so that a packet filter can cut it off; needs --listen 127.x.y.1")
	fl.IntVar(&o.Port, "port", 7400, "data port of the first node, the others follow; 0: any free ports")
	fl.IntVar(&o.HTTPPort, "http-port", 9400, "metrics and health port of the first node, the others follow; 0: any free ports")
	fl.StringVar(&f.sink, "sink", "hold", "sink: hold (none) or file")
	fl.StringVar(&f.dir, "dir", "", "directory of the file sink")
	fl.StringSliceVar(&f.external, "external-sink", nil, "name of a sink outside the grid, which follows the log and says what it holds; repeat or separate by commas")
	fl.StringVar(&f.limits, "limits", "", limitsHelp)
	fl.BoolVar(&o.Standby, "standby", false, "the partitions take no orders: they get the entries of another grid from grid-link")
	fl.StringVar(&o.Source, "source", "", "of a standby: name and endpoints of the other grid, for the error that clients get")
	fl.StringVar(&f.memory, "memory-limit", "2Gi", "memory of each node")
	fl.StringVar(&f.io, "io", "", "sockets: epoll (Linux, default there) or net")
	fl.BoolVar(&o.TLS, "tls", false, "TLS 1.3 on the data ports, with throw-away certificates; the commands printed have the flags for it")
	fl.BoolVar(&f.leased, "leased-reads", false, "answer leased reads at once; a take-over then has to wait for the end of the lease")
	fl.BoolVar(&f.pprof, "pprof", false, "serve /debug/pprof on the health ports")
	fl.StringVar(&f.logLevel, "log-level", "warn", "of the nodes, to standard error: debug, info, warn or error")
	fl.IntVar(&f.fix.port, "fix", 0, "port for FIX sessions, as order-gateway has it: without TLS and with a password that is printed; 0: none")
	f.restore.addDev(fl)
	fl.StringVar(&f.journal, "journal", "", "directory of the nodes' journals: a node acknowledges what is on the disk of every copy, and all nodes can be killed at once; empty: none")
	f.views.add(fl)
	fl.BoolVar(&f.asJSON, "json", false, "print one line of JSON when ready")
	return cmd
}

// dash is how many arguments stand before "--".
func dash(cmd *cobra.Command, args []string) int {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return n
	}
	return len(args)
}

// apply turns flags into arguments of the nodes.
func (f *devFlags) apply(o *dev.Options) error {
	log, err := command.Logger(os.Stderr, f.logLevel, "text")
	if err != nil {
		return err
	}
	o.Log = log
	o.Args = []string{"--memory-limit", f.memory, "--sink", f.sink, "--log-level", f.logLevel, "--log-format", "text", "--io", f.io}
	if len(f.external) > 0 {
		o.Args = append(o.Args, "--external-sink", strings.Join(f.external, ","))
	}
	if f.limits != "" {
		o.Args = append(o.Args, "--limits", f.limits)
	}
	o.Args = append(o.Args, f.views.args()...)
	if f.journal != "" {
		dir, err := filepath.Abs(f.journal)
		if err != nil {
			return fmt.Errorf("--journal: %w", err)
		}
		o.Args = append(o.Args, "--journal", dir)
	}
	if f.leased {
		o.Args = append(o.Args, "--leased-reads")
	}
	if f.pprof {
		o.Args = append(o.Args, "--pprof")
	}
	switch {
	case f.sink == "file" && f.dir == "":
		return fmt.Errorf(`--dir: value "", allowed: a directory; --sink=file writes to it`)
	case f.sink == "file":
		dir, err := filepath.Abs(f.dir)
		if err != nil {
			return fmt.Errorf("--dir: %w", err)
		}
		o.Args = append(o.Args, "--sink-dir", dir)
	case f.sink != "hold":
		return fmt.Errorf("--sink: value %q, allowed: hold, file", f.sink)
	}
	if err := f.fix.check(o); err != nil {
		return err
	}
	return o.Fill()
}

// whoReaches names the clients that can reach an address.
func whoReaches(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return "every program of this machine"
	}
	return "any host that reaches " + host
}

func printInfo(w io.Writer, o dev.Options, i dev.Info) {
	endpoint := strings.Join(i.Endpoints, ",")
	fmt.Fprintf(w, "Grid %q is ready after %d ms: %d nodes.\n\n", i.Grid, i.ReadyMS, len(i.Endpoints))
	fmt.Fprintf(w, "  endpoint  %s\n", endpoint)
	for n, url := range i.HTTP {
		fmt.Fprintf(w, "  node %-4d pid %d, %s/readyz, %s/metrics\n", n, i.PIDs[n], url, url)
	}
	fmt.Fprintf(w, "  arbiter   %s/v1/partitions\n\n", i.Arbiter)
	grid := ""
	if o.Grid != "dev" {
		grid = " --grid " + o.Grid
	}
	if i.TLS == nil {
		fmt.Fprintf(w, "  open      no TLS: %s may submit, read and replace orders; --tls makes certificates\n\n", whoReaches(o.Host))
	} else {
		grid += fmt.Sprintf(" --tls-cert %s --tls-key %s --tls-ca %s", i.TLS.Cert, i.TLS.Key, i.TLS.CA)
	}
	printFIX(w, i.FIX)
	fmt.Fprintf(w, "Submit a first order, read it back, compare the copies (in another terminal):\n\n")
	for _, c := range []string{"submit --clordid first-order", "get --clordid first-order", "verify"} {
		fmt.Fprintf(w, "  %s %s --endpoint %s%s\n", os.Args[0], c, endpoint, grid)
	}
	fmt.Fprintf(w, "\nCtrl-C stops the grid; nothing is kept.\n")
}
