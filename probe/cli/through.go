package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/fixdoor"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/grid"
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

// doorway is the grid that an order-gateway of this process is started before.
type doorway struct {
	program string      // order-gateway; empty: next to this one, or in PATH
	grid    grid.Config // how it is reached
	args    []string    // likewise, for the gateway
	fix     string      // the version of the sessions
	first   int         // the number of the first of their names
}

// open starts the gateway, with a session for each publishing thread of these probes. end stops it.
func (w *doorway) open(ctx context.Context, plan scenario.Plan, probes []int) (_ *fixdoor.Config, pid int, end func(), err error) {
	program, err := devgrid.Find(w.program, "order-gateway")
	if err != nil {
		return nil, 0, nil, err
	}
	dir, err := os.MkdirTemp("", "order-probe-fix-")
	if err != nil {
		return nil, 0, nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) } // below the directory for temporary files
	defer func() {
		if err != nil {
			remove()
		}
	}()
	sessions, err := w.writeSessions(ctx, dir, plan, probes)
	if err != nil {
		return nil, 0, nil, err
	}
	g, err := devgrid.StartGateway(ctx, program, w.grid.Endpoints, append(w.args, "--listen", "127.0.0.1:0", "--sessions", sessions, "--fix-insecure-plain")...)
	if err != nil {
		return nil, 0, nil, err
	}
	return &fixdoor.Config{Addresses: []string{g.Address}, Sessions: sessions}, g.PID, func() { g.Kill(); remove() }, nil
}

// writeSessions writes the file of sessions whose names lead to the partitions of these probes.
func (w *doorway) writeSessions(ctx context.Context, dir string, plan scenario.Plan, probes []int) (string, error) {
	c, err := grid.Dial(ctx, w.grid)
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // it never fails
	need := map[wire.PartitionID]int{}
	for _, i := range probes {
		p, err := grid.Partition(plan, i)
		if err != nil {
			return "", err
		}
		need[p] += plan.Threads
	}
	names, err := fixdoor.Names(fixorder.Version(w.fix).BeginString(), w.first, need, c.SessionHome)
	if err != nil {
		return "", err
	}
	return fixdoor.WriteSessions(dir, names, rand.Text())
}
