package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/peers"
	"github.com/ordergrid/ordergrid/hack/bench/rounds"
	"github.com/ordergrid/ordergrid/probe/host"
)

// settings are what a user may set.
type settings struct {
	cases, systems, out, redis, peers, gate, nodeFlags string
	options                                            rounds.Options
}

const runHelp = `bench measures OrderGrid beside floors and peers, in one interleaved run.

  go run ./hack/bench [flags]                  measure; make bench CASES=... ROUNDS=...
  go run ./hack/bench list [--cases REGEXP]    the cases
  go run ./hack/bench compare A.json B.json    two runs, side by side
  go run ./hack/bench profile [flags]          profiles of one case; make profile CASES=...
  go run ./hack/bench growth [flags]           growth curves: tables, SVG plots, verdicts; make bench-growth
  go run ./hack/bench markdown [bench.json]    a run as docs/performance.md quotes it
  go run ./hack/bench garbage [flags]          heap and pauses with 10 million orders held; make garbage
  go run ./hack/bench move [flags]             10 million orders move to other nodes under load; make bench-move
  go run ./hack/bench idle [flags]             CPU of nodes with 2 and 64 partitions at rest; make bench-idle
  go run ./hack/bench outage [flags]           how long no order is answered when a primary is killed; make bench-outage
  go run ./hack/bench query [flags]            questions beside PostgreSQL, Redis, Hazelcast, Coherence; make bench PEERS=query

A case is NETWORK/COPIES/LOAD, such as lo/repl/rate-6000: lo is loopback, ns is a
network namespace per process behind one bridge (root); repl is acknowledged when a
second process has the order, single is without replication. growth/... are the cases
that vary one thing, tls/... those that show what TLS costs, views/... what views of the
orders cost, journal/... and sinks/... what a journal and sinks cost, functions/... what
functions that each order passes cost, and what those that are not there do (systems
grid-bare, grid-pre, grid-post and grid-audit), match/... what matching costs beside
storing the same orders; they run only when CASES names them.

Systems: floor-go, floor-c, floor-c-threads (relays that do nothing else; the better
counts), redis (SET and WAIT 1, if installed), grid; in tls/... also grid-tls, in views/...
grid-views and grid-views-backup, in journal/... grid-journal, in sinks/... grid-sinks, in match/...
grid-match and grid-match-told (whose clients are told of executions); with --peers also
hazelcast, coherence, geode, ignite (writes on loopback only). Every round starts every system
afresh; a round on a busy machine does not count and is repeated.

Examples:
  go run ./hack/bench --cases '^lo/repl/' --rounds 5
  go run ./hack/bench --cases pingpong --systems 'floor-c|grid' --duration 10s
  go run ./hack/bench --cases growth/held --rounds 1
  go run ./hack/bench --peers all --rounds 1   what one would use instead; make bench PEERS=all

Exit status: 0 measured, 1 failed, 2 wrong usage, 3 the machine was too busy.

Flags:
`

func (s *settings) parse(name, help string, args []string, out io.Writer) (rest []string, err error) {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o := &s.options
	o.Limits = host.Quiet
	fs.StringVar(&s.cases, "cases", ".", "regular expression over the names of cases")
	fs.StringVar(&s.systems, "systems", ".", "regular expression over the names of systems")
	fs.IntVar(&o.Rounds, "rounds", 3, "rounds per case and system that count, an odd number")
	fs.IntVar(&o.Repeats, "repeats", 2, "times a round that does not count is repeated")
	fs.DurationVar(&o.Warmup, "warmup", time.Second, "load before the measured time of a round")
	fs.DurationVar(&o.Duration, "duration", 3*time.Second, "measured time of a round")
	fs.DurationVar(&o.Patience, "patience", time.Minute, "longest wait for a quiet machine before a round")
	fs.StringVar(&s.gate, "gate", "on", "on: wait for a quiet machine and repeat disturbed rounds; off: measure now, and mark what was disturbed INVALID")
	fs.StringVar(&s.out, "out", "out/bench", "directory of table.txt, bench.json and benchstat.txt")
	fs.StringVar(&s.redis, "redis", "", "redis-server to use; default: the one in PATH")
	fs.StringVar(&s.peers, "peers", "", "peers that Maven installs: all, or some of hazelcast, coherence, geode, ignite, separated by commas; --cases is then "+cases.Instead+" by default")
	fs.DurationVar(&o.PeersWarmup, "peers-warmup", 15*time.Second, "load on the JVMs of such a peer before the warm-up of a round")
	fs.StringVar(&o.ClientIO, "client-io", "", "I/O of the grid's client: auto, net, blocking, pinned; default: the client's own")
	fs.StringVar(&s.nodeFlags, "node-flags", "", "further flags of grid-node serve for every node, separated by spaces, such as '--io net'")
	fs.IntVar(&o.Procs, "procs", 0, "GOMAXPROCS of the load generator; 0: as the case needs")
	fs.Float64Var(&o.Limits.MaxSteal, "max-steal", o.Limits.MaxSteal, "per cent of CPU time stolen above which a round does not count")
	fs.Float64Var(&o.Limits.MaxForeign, "max-foreign", o.Limits.MaxForeign, "per cent of the cores used by other processes above which a round does not count")
	err = fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, help)
		fs.SetOutput(out)
		fs.PrintDefaults()
		return nil, flag.ErrHelp
	}
	if err == nil {
		err = s.check()
	}
	if named := false; err == nil && s.peers != "" {
		fs.Visit(func(f *flag.Flag) { named = named || f.Name == "cases" })
		if !named {
			s.cases = cases.Instead
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return fs.Args(), nil
}

func (s *settings) check() error {
	o := &s.options
	switch {
	case o.Rounds < 1 || o.Rounds%2 == 0:
		return fmt.Errorf("--rounds: value %d, allowed: an odd number, so that there is a median", o.Rounds)
	case o.Repeats < 0:
		return fmt.Errorf("--repeats: value %d, allowed: 0 or more", o.Repeats)
	case o.Duration < 10*time.Millisecond || o.Duration > time.Hour:
		return fmt.Errorf("--duration: value %v, allowed: 10ms to 1h", o.Duration)
	case o.Warmup < 0 || o.Warmup > time.Hour:
		return fmt.Errorf("--warmup: value %v, allowed: 0 to 1h", o.Warmup)
	case o.PeersWarmup < 0 || o.PeersWarmup > time.Hour:
		return fmt.Errorf("--peers-warmup: value %v, allowed: 0 to 1h", o.PeersWarmup)
	case s.gate != "on" && s.gate != "off":
		return fmt.Errorf("--gate: value %q, allowed: on, off", s.gate)
	}
	o.Gate = s.gate == "on"
	if o.ClientIO != "" {
		if _, err := client.ParseIO(o.ClientIO); err != nil {
			return fmt.Errorf("--client-io: %w", err)
		}
	}
	if _, err := regexp.Compile(s.systems); err != nil {
		return fmt.Errorf("--systems: value %q, allowed: a regular expression: %w", s.systems, err)
	}
	if _, err := peers.Choose(s.peers, ""); err != nil {
		return fmt.Errorf("--peers: %w", err)
	}
	if s.redis != "" {
		if _, err := os.Stat(s.redis); err != nil {
			return fmt.Errorf("--redis: value %q, allowed: the path of redis-server: %w", s.redis, err)
		}
	}
	return nil
}
