package grid

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/proc"
	"github.com/ordergrid/ordergrid/probe/fixdoor"
)

// gatewaySessions is how many clients may log on.
const gatewaySessions = 64

// gatewayPassword is that of all sessions, on a port of this machine for the time of a round.
const gatewayPassword = "of-a-benchmark"

// before starts an order-gateway before the grid, through which the clients of run come then.
func (g *Grid) before(ctx context.Context, at system.Place, run *system.Running, group *proc.Group) error {
	dir, err := os.MkdirTemp(g.Dir, "gateway-")
	if err != nil {
		return err
	}
	group.Add(func() error { return os.RemoveAll(dir) })
	// The grid of a case has one partition, in which all sessions are.
	names, err := fixdoor.Names("FIX.4.2", 0, map[wire.PartitionID]int{0: gatewaySessions}, func(string, string, string) wire.PartitionID { return 0 })
	if err != nil {
		return err
	}
	file, err := fixdoor.WriteSessions(dir, names, gatewayPassword)
	if err != nil {
		return err
	}
	listen, err1 := system.Address(at, system.Primary, 7440)
	web, err2 := system.Address(at, system.Primary, 9404)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	p, err := proc.Start("order-gateway", at.Command(system.Primary, g.Gateway, "--listen", listen, "--endpoint", strings.Join(run.Addresses, ","), "--http", web,
		"--sessions", file, "--fix-insecure-plain", "--log-level", "warn", "--log-format", "text"))
	if err != nil {
		return err
	}
	group.Add(func() error { return end(p) })
	if err := awaitReady(ctx, at, p, "http://"+web+"/readyz"); err != nil {
		return err
	}
	login := &generator.FIXLogin{Target: names[0].Target, User: fixdoor.User, Password: gatewayPassword}
	for _, n := range names {
		login.Senders = append(login.Senders, n.Sender)
	}
	run.Driver, run.Addresses, run.FIX, run.PIDs = generator.FIX, []string{listen}, login, append(run.PIDs, p.PID())
	return nil
}
