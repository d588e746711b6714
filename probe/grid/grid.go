// Package grid connects a probe to a grid: publishing connections, the copies of a partition, and
// their committed logs.
package grid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/live"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// Config of a connection. Endpoints is required.
type Config struct {
	Endpoints []string   // host:port
	TLS       client.TLS // nil: plain TCP
	Token     client.TokenSource
	Name      string // of the grid; "" takes the one that answers
	// RequestTimeout bounds one order, retries included; then its outcome is
	// unknown.
	RequestTimeout time.Duration
	Logger         *slog.Logger
}

// Grid is a connection to one grid.
type Grid struct{ c *client.Client }

// Dial reads the grid's partitions.
func Dial(ctx context.Context, cfg Config) (*Grid, error) {
	c, err := client.Dial(ctx, client.Config{
		Endpoints: cfg.Endpoints, TLS: cfg.TLS, Token: cfg.Token, Grid: cfg.Name, Name: "order-probe",
		RequestTimeout: cfg.RequestTimeout, Logger: cfg.Logger,
		// A publishing thread is the only user of its session: it waits in the system call itself
		// and keeps its scheduler processor, so that the measured time is the grid's and not the Go
		// scheduler's.
		IO: client.IOPinned, MaxInFlight: 1,
	})
	if err != nil {
		return nil, err
	}
	return &Grid{c: c}, nil
}

// Close ends all connections.
func (g *Grid) Close() error { return g.c.Close() }

// Refresh reads the grid's table again.
func (g *Grid) Refresh(ctx context.Context) error { return g.c.Refresh(ctx) }

// Copy is one server that holds a partition.
type Copy struct {
	Member  string // pod/bootID
	Address string
	Primary bool
}

// Copies lists the servers that are in sync in a partition, the primary first.
func (g *Grid) Copies(p wire.PartitionID) (copies []Copy) {
	for _, part := range g.c.Table() {
		if part.ID != p {
			continue
		}
		for _, m := range part.Members {
			switch {
			case m.ID == part.Primary.ID:
				copies = append([]Copy{{m.ID, m.Address, true}}, copies...)
			case m.InSync:
				copies = append(copies, Copy{m.ID, m.Address, false})
			}
		}
	}
	return copies
}

// Addresses lists every server of the grid once.
func (g *Grid) Addresses() (addresses []string) {
	seen := map[string]bool{}
	for _, part := range g.c.Table() {
		for _, m := range part.Members {
			if !seen[m.Address] {
				seen[m.Address] = true
				addresses = append(addresses, m.Address)
			}
		}
	}
	return addresses
}

// Ready waits until the grid matches the plan: each partition that a probe writes to exists, has a
// primary, and as many copies in sync as the scenario has servers in a pair.
func (g *Grid) Ready(ctx context.Context, plan scenario.Plan) error {
	for {
		final, wrong := g.mismatch(plan)
		if wrong == nil || final {
			return wrong
		}
		select {
		case <-ctx.Done():
			return wrong
		case <-time.After(100 * time.Millisecond):
		}
		_ = g.c.Refresh(ctx) // an unknown partition is an error
	}
}

// mismatch returns the difference, and whether waiting is useless.
func (g *Grid) mismatch(plan scenario.Plan) (final bool, err error) {
	if g.c.BySymbol() {
		return true, fmt.Errorf("scenario %s publishes orders to a grid that stores them, and this one matches; allowed: spec.execution.mode Store, or scenario jade-tradeem, which starts a grid that matches", plan.Scenario)
	}
	need := fmt.Sprintf("scenario %s needs a grid with %d shard(s), %d partitions or more and replicas %d", plan.Scenario, plan.Shards, plan.Servers(), plan.Replicas)
	for probe := range plan.Probes {
		id, err := Partition(plan, probe)
		if err != nil {
			return true, err
		}
		copies := g.Copies(id)
		switch {
		case len(copies) == 0 && !g.has(id):
			return true, fmt.Errorf("%s: partition %s does not exist", need, id)
		case len(copies) == 0 || !copies[0].Primary:
			return false, fmt.Errorf("%s: partition %s has no primary now", need, id)
		case len(copies) != plan.Replicas:
			return false, fmt.Errorf("%s: partition %s has %d copies in sync", need, id, len(copies))
		}
	}
	return false, nil
}

func (g *Grid) has(id wire.PartitionID) bool {
	for _, part := range g.c.Table() {
		if part.ID == id {
			return true
		}
	}
	return false
}

// Partition is where a probe of the plan sends its orders.
func Partition(plan scenario.Plan, probe int) (wire.PartitionID, error) {
	return wire.MakePartitionID(plan.Partition(probe))
}

// SessionHome is the partition of a FIX session, which its BeginString and the CompIDs of counterparty and gateway choose.
func (g *Grid) SessionHome(version, sender, target string) wire.PartitionID {
	return g.c.RouteFix(client.FixSessionOf(version, sender, target))
}

// Thread is one publishing thread's session. It is for one goroutine.
type Thread struct{ s *client.Session }

// Open opens a publishing thread's session, connected and ready.
func (g *Grid) Open(ctx context.Context, p wire.PartitionID) (*Thread, error) {
	s, err := g.c.OpenSession(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("open a session on %s: %w", p, err)
	}
	return &Thread{s: s}, nil
}

// Close ends the session.
func (t *Thread) Close() error { return t.s.Close() }

// Pinger is a publishing thread's session that sends a Ping instead of an order: the same sockets,
// the same clock, no grid behind the node.
type Pinger struct{ p *client.Pinger }

// Pinger connects to the primary of a partition.
func (g *Grid) Pinger(ctx context.Context, p wire.PartitionID) (*Pinger, error) {
	c, err := g.c.OpenPinger(ctx, p)
	if err != nil {
		return nil, err
	}
	return &Pinger{p: c}, nil
}

// Close ends the connection.
func (p *Pinger) Close() error { return p.p.Close() }

// Submit implements load.Submitter; the order is not sent.
func (p *Pinger) Submit(ctx context.Context, _ []byte) (load.Receipt, error) {
	return load.Receipt{}, p.p.Ping(ctx)
}

// Fate implements load.Submitter.
func (p *Pinger) Fate(error) load.Fate { return load.Unknown }

// Counts are the client's counters: orders sent again, answers that named another node, connections
// made.
func (g *Grid) Counts() live.Client {
	s := g.c.Stats()
	return live.Client{Retries: s.Resent, Redirects: s.Redirects, Connects: s.Connects}
}

// Outages are those of any session that ended after since, one line each; at most
// the last 64.
func (g *Grid) Outages(since time.Time) (lines []string) {
	for _, o := range g.c.Outages() {
		if o.To.After(since) {
			lines = append(lines, o.String())
		}
	}
	return lines
}

// Submit implements load.Submitter.
func (t *Thread) Submit(ctx context.Context, fix []byte) (load.Receipt, error) {
	r, err := t.s.Submit(ctx, fix)
	return load.Receipt{Seq: r.Seq, Epoch: r.Epoch, Hash: r.Hash, Lineage: r.Lineage, Copies: r.Copies}, err
}

// Fate implements load.Submitter. The client's report about an order is its contract; the ledger
// checks whether it is true.
func (t *Thread) Fate(err error) load.Fate {
	switch client.FateOf(err) {
	case client.FateAccepted:
		return load.Acked
	case client.FateRefused:
		return load.Rejected
	}
	return load.Unknown
}

// IsLogFault reports whether an error of ReadLog means that the copy's log is
// broken, not that it could not be read.
func IsLogFault(err error) bool {
	var fault *client.LogError
	return errors.As(err, &fault)
}
