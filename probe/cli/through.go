package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/fixdoor"
	"github.com/ordergrid/ordergrid/probe/grid"
	"github.com/ordergrid/ordergrid/probe/runner"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// Doors that orders can go through.
const (
	throughNative = "native" // the grid's own protocol
	throughFIX    = "fix"    // FIX sessions of an order-gateway
)

// throughFlags choose the door.
type throughFlags struct {
	door      string
	addresses []string
	sessions  string
	tls       tlsflag.Flags
}

func (f *throughFlags) register(set *pflag.FlagSet) {
	f.tls = tlsflag.Of("fix-")
	f.tls.OptionalCertificate()
	set.StringVar(&f.door, "through", throughNative, "how orders get to the grid: native, its own protocol, or fix, FIX sessions of an order-gateway, one for each publishing thread, in the version of --fix. With --dev the gateway is started and stopped with the grid")
	set.StringSliceVar(&f.addresses, "fix-address", nil, "with --through fix and --endpoint: host:port of one or more order-gateways before that grid; a session that is cut logs on at the next one")
	set.StringVar(&f.sessions, "fix-sessions", "", "with --through fix and --endpoint: the file of the gateways' sessions (their --sessions), with the password files that it names; sessions that nothing else uses, since their numbers begin anew")
	f.tls.Register(set, "TLS is used for the order-gateway; --fix-tls-ca alone where sessions have passwords only")
}

// check refuses what does not go together.
func (f *throughFlags) check(dev bool) error {
	switch f.door {
	case throughNative, "": // a suite has no flag
		if len(f.addresses) > 0 || f.sessions != "" {
			return fmt.Errorf("--fix-address, --fix-sessions: given, and --through is native; allowed: with --through fix")
		}
		return nil
	case throughFIX:
	default:
		return fmt.Errorf("--through %q: allowed: %s, %s", f.door, throughNative, throughFIX)
	}
	switch {
	case dev && (len(f.addresses) > 0 || f.sessions != ""):
		return errors.New("--fix-address, --fix-sessions: given, with --dev; allowed: with --endpoint, --dev starts an order-gateway with sessions of its own")
	case !dev && (len(f.addresses) == 0 || f.sessions == ""):
		return errors.New("--through fix: --fix-address and --fix-sessions are needed with --endpoint: where the order-gateway is, and the file of its sessions; or use --dev")
	}
	_, err := f.tls.Client()
	return err
}

// config is for a grid that is there; nil for the native door.
func (f *throughFlags) config() (*fixdoor.Config, error) {
	if f.door != throughFIX {
		return nil, nil
	}
	secure, err := f.tls.Client()
	if err != nil {
		return nil, err
	}
	return &fixdoor.Config{Addresses: f.addresses, Sessions: f.sessions, TLS: secure}, nil
}

// startDoor starts an order-gateway before a grid of --dev, with a session for each publishing thread of the plan. end
// stops it.
func (f *runFlags) startDoor(ctx context.Context, g *devgrid.Grid, plan scenario.Plan, cfg *runner.Config) (end func(), err error) {
	program, err := devgrid.Find(f.gateway, "order-gateway")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "order-probe-fix-")
	if err != nil {
		return nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) } // below the directory for temporary files
	defer func() {
		if err != nil {
			remove()
		}
	}()
	sessions, err := f.writeSessions(ctx, dir, g, plan)
	if err != nil {
		return nil, err
	}
	w, err := g.StartGateway(ctx, program, "--listen", "127.0.0.1:0", "--sessions", sessions, "--fix-insecure-plain")
	if err != nil {
		return nil, err
	}
	cfg.Through = &fixdoor.Config{Addresses: []string{w.Address}, Sessions: sessions}
	cfg.NodePIDs = append(cfg.NodePIDs, w.PID) // it is a part of what is measured, and no other process
	return func() { w.Kill(); remove() }, nil
}

// writeSessions writes the file of sessions whose names lead to the partitions of the plan.
func (f *runFlags) writeSessions(ctx context.Context, dir string, g *devgrid.Grid, plan scenario.Plan) (string, error) {
	c, err := grid.Dial(ctx, grid.Config{Endpoints: g.Endpoints, RequestTimeout: 10 * time.Second})
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // it never fails
	need := map[wire.PartitionID]int{}
	for i := range plan.Probes {
		p, err := grid.Partition(plan, i)
		if err != nil {
			return "", err
		}
		need[p] += plan.Threads
	}
	names, err := fixdoor.Names("FIX."+f.grid.fix, need, c.SessionHome)
	if err != nil {
		return "", err
	}
	return fixdoor.WriteSessions(dir, names, rand.Text())
}
