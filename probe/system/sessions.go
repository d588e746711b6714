package system

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/fixdoor"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/grid"
	"github.com/ordergrid/ordergrid/probe/host"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	// minSessionsTPS is what the rate of the most users has to be of that of the fewest.
	minSessionsTPS = 0.95
	// maxSessionsP99 is what 99 of 100 orders at the rate may take.
	maxSessionsP99 = 10 * time.Millisecond
	// maxSessionKiB is what a further session may take of the memory of its gateway.
	maxSessionKiB = 6
	// sessionsWindow orders are without a report where users are as fast as they can.
	sessionsWindow = 256
	// sessionsMost bounds the orders of such a time.
	sessionsMost = 150_000
	// sessionsWarm is how long orders are sent before they are timed.
	sessionsWarm = time.Second
	// sessionFiles are descriptors of a process that are not sessions.
	sessionFiles = 300
	// partitionSessions are the FIX sessions that a partition may have.
	partitionSessions = 16_384
	// unloggedFiles are those of connections to a gateway that have not logged on yet.
	unloggedFiles = 1100
	// maxSessionThreads bounds the threads of the users.
	maxSessionThreads = 16
	// sessionKiB is the memory of a session on this machine, of all processes and of both ends of the connection.
	sessionKiB = 40
	// logonsASec is a careful guess of how many sessions log on in a second.
	logonsASec = 500
)

// sessionsPlan is how many users there are.
type sessionsPlan struct {
	users    []int // rising
	gateways int
	rate     int // orders/s of all users together
	measure  time.Duration
}

// sessionsOf returns the plan of a mode: the exact one has the published users.
func sessionsOf(mode scenario.Mode) sessionsPlan {
	switch mode {
	case scenario.Exact:
		return sessionsPlan{[]int{9_600, 19_200, 40_000, 120_000}, 12, 4_100, 30 * time.Second}
	case scenario.Quick:
		return sessionsPlan{[]int{300, 600, 1_200}, 2, 500, 2 * time.Second}
	}
	return sessionsPlan{[]int{4_800, 9_600, 19_200}, 4, 2_000, 10 * time.Second}
}

func (p *sessionsPlan) most() int { return p.users[len(p.users)-1] }

// orders is how many there are at the most.
func (p *sessionsPlan) orders() int {
	return len(p.users) * (int((p.measure+sessionsWarm).Seconds())*p.rate + sessionsMost)
}

func (p sessionsPlan) length() time.Duration {
	return 2*gridTime + time.Duration(p.most()/logonsASec)*time.Second + time.Duration(len(p.users))*(2*p.measure+sessionsWarm) +
		time.Duration(p.orders())*2*time.Second/rowsASec
}

// partitions is how many the grid has: one for each node, or as many as the sessions need.
func (p *sessionsPlan) partitions() int {
	return max(2, (p.most()+partitionSessions-1)/partitionSessions)
}

// nodeMiB is the memory of a node.
func (p *sessionsPlan) nodeMiB() int64 { return gridMiB(p.orders()) + int64(p.most())>>6 }

// threads is how many of this process have the users, each with a table of descriptors of its own.
func (p *sessionsPlan) threads(hard uint64) int {
	return fixdoor.Threads(p.most(), int(max(hard, 2*sessionFiles)-sessionFiles))
}

// fits refuses what this machine has no descriptors or memory for, before anything starts.
func (p *sessionsPlan) fits(hard uint64, availableMiB int64) error {
	need := max(uint64(p.most()/p.gateways+unloggedFiles), uint64(p.most()/maxSessionThreads)) + sessionFiles
	if need > hard {
		return fmt.Errorf("%d sessions through %d gateways need %d file descriptors in a process, and its hard limit is %d: raise it (ulimit -Hn %d as root, LimitNOFILE= of a systemd unit, nofile in limits.conf), or use --scaled or --quick",
			p.most(), p.gateways, need, hard, need)
	}
	if mib := p.needMiB(); availableMiB > 0 && mib > availableMiB {
		return fmt.Errorf("%d sessions and %d orders need about %d MiB, and this machine has %d MiB available: use --scaled or --quick", p.most(), p.orders(), mib, availableMiB)
	}
	return nil
}

// needMiB is the memory of everything.
func (p *sessionsPlan) needMiB() int64 { return 2*p.nodeMiB() + int64(p.most())*sessionKiB>>10 }

// sessions logs users on through concentrators, more and more of them, and has them send orders: at a rate, and as fast
// as reports come.
func sessions(ctx context.Context, d *published.Data, _ published.Scenario, o Options, r *Report) (err error) {
	p := sessionsOf(o.Mode)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if err := p.fits(limit.Max, host.AvailableMiB()); err != nil {
		return err
	}
	r.Columns = []string{"users", "concentrators", "logged on/s", "Logons again", "orders/s asked", "reported/s", "p50 ms", "p99 ms", "max ms", "TPS", "KiB of a further session", "gateways MiB", "published TPS"}
	r.Differences = append(r.Differences,
		fmt.Sprintf("a concentrator is an order-gateway, of which there are %d at each number of users; a user is a FIX 4.4 session with a connection of its own, which logs on and stays; a transaction is an order of 305 bytes, reported when both nodes hold it", p.gateways),
		fmt.Sprintf("the grid stores orders; the published one matched them. At the rate users take turns; TPS is of %d orders without a report, as fast as reports come", sessionsWindow),
		fmt.Sprintf("the grid has %d partitions, each of which may have %d FIX sessions", p.partitions(), partitionSessions),
		"HeartBtInt is an hour, so that a session costs nothing while it says nothing",
		"users, concentrators and grid share this machine")
	o.Say("up to %d sessions through %d order-gateways: about %d MiB and %v", p.most(), p.gateways, p.needMiB(), p.length().Round(time.Second))
	x := &crowd{Options: &o, p: p, hard: limit.Max}
	if err := x.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.end()) }()
	if err := x.run(ctx, d, r); err != nil {
		return fmt.Errorf("%w%s", err, x.refused())
	}
	return x.judge(ctx, r)
}

// crowd is a grid with concentrators and their users.
type crowd struct {
	*Options
	p     sessionsPlan
	grid  *devgrid.Grid
	c     *grid.Grid
	gates []*devgrid.Gateway
	dir   string
	users *fixdoor.Herd
	hard  uint64 // limit of descriptors
}

func (x *crowd) open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, x.end())
		}
	}()
	program, err := devgrid.Find(x.Gateway, "order-gateway")
	if err != nil {
		return err
	}
	if x.dir, err = os.MkdirTemp("", "order-probe-sessions-"); err != nil {
		return err
	}
	if x.grid, err = x.pair(ctx, x.p.nodeMiB(), "--partitions", strconv.Itoa(x.p.partitions())); err != nil {
		return err
	}
	if x.c, err = grid.Dial(ctx, grid.Config{Endpoints: x.grid.Endpoints, RequestTimeout: time.Minute}); err != nil {
		return err
	}
	need := map[wire.PartitionID]int{}
	for i := range x.p.most() {
		need[wire.PartitionID(i%x.p.partitions())]++
	}
	names, err := fixdoor.Names("FIX.4.4", 0, need, x.c.SessionHome)
	if err != nil {
		return err
	}
	cfg := fixdoor.SwarmConfig{Names: names, Home: x.c.SessionHome, Password: rand.Text(), Version: fixorder.FIX44, Run: fixorder.NewRun(), Most: x.p.orders()}
	threads := x.p.threads(x.hard)
	for k := range x.p.gateways {
		var own []fixdoor.Name
		for n, name := range names {
			if fixdoor.GatewayOf(n, threads, x.p.gateways) == k {
				own = append(own, name)
			}
		}
		dir := filepath.Join(x.dir, strconv.Itoa(k))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		file, err := fixdoor.WriteSessions(dir, own, cfg.Password)
		if err != nil {
			return err
		}
		// An address of its own for each, so that 28,000 local ports are there for each.
		w, err := x.grid.StartGateway(ctx, program, "--listen", fmt.Sprintf("127.0.0.%d:0", 2+k), "--sessions", file, "--fix-insecure-plain",
			"--max-connections", strconv.Itoa(max(4096, len(own)+unloggedFiles)), "--logon-rate", "20000")
		if err != nil {
			return err
		}
		x.gates, cfg.Gateways = append(x.gates, w), append(cfg.Gateways, w.Address)
	}
	x.users, err = fixdoor.NewHerd(cfg, threads)
	return err
}

func (x *crowd) end() (err error) {
	if x.users != nil {
		x.users.Close()
	}
	for _, w := range x.gates {
		w.Kill()
	}
	if x.c != nil {
		err = x.c.Close()
	}
	if x.grid != nil {
		err = errors.Join(err, x.grid.Stop())
	}
	_ = os.RemoveAll(x.dir) // below the directory for temporary files
	return err
}

// refused is what gateways say of logons and sessions that they have ended.
func (x *crowd) refused() (text string) {
	for _, w := range x.gates {
		var s struct {
			Listeners struct {
				FIX struct {
					Refused []struct {
						Reason, Text string
						Count        int
					}
				}
			}
		}
		b, err := w.Status()
		if err == nil {
			err = json.Unmarshal(b, &s)
		}
		if err != nil {
			text += fmt.Sprintf("; %s: %v", w.Address, err)
		}
		for _, f := range s.Listeners.FIX.Refused {
			text += fmt.Sprintf("; %s refused %d logons, %s: %.200s", w.Address, f.Count, f.Reason, f.Text)
		}
	}
	return text
}

// memory is that of all gateways in KiB: what of it is in use, of files too.
func (x *crowd) memory() (kib int64, err error) {
	for _, w := range x.gates {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.PID))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return 0, fmt.Errorf("/proc/%d/status has no VmRSS", w.PID)
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return 0, err
		}
		kib += n
	}
	return kib, nil
}

// crowded is what came of one number of users.
type crowded struct {
	users int
	rate  *fixdoor.Driven
	fast  *fixdoor.Driven
	kib   int64 // of all gateways, behind the orders
}

// furtherKiB is the memory of gateways for each session that there is more of, both times behind orders.
func furtherKiB(few, many *crowded) float64 {
	return float64(many.kib-few.kib) / float64(many.users-few.users)
}

// run measures all numbers of users.
func (x *crowd) run(ctx context.Context, d *published.Data, r *Report) (err error) {
	var all []*crowded
	for _, users := range x.p.users {
		x.Say("%d users", users)
		c, begun, were := &crowded{users: users}, time.Now(), x.users.Members()
		if err := x.users.Grow(ctx, users); err != nil {
			return err
		}
		logon := float64(users-were) / time.Since(begun).Seconds()
		if err := x.measure(ctx, c); err != nil {
			return err
		}
		if c.kib, err = x.memory(); err != nil {
			return err
		}
		all = append(all, c)
		further, was := "-", "-"
		if len(all) > 1 {
			further = fmt.Sprintf("%.1f", furtherKiB(all[len(all)-2], c))
		}
		if v, ok := d.Cell("jade", "TradeEm-TCP", float64(users), "tps"); ok {
			was = fmt.Sprint(v.Value)
		}
		r.row(users, x.p.gateways, fmt.Sprintf("%.0f", logon), x.users.Again(), x.p.rate, fmt.Sprintf("%.0f", c.rate.PerS), ms(at(c.rate.Took, 0.5)), ms(at(c.rate.Took, 0.99)), ms(at(c.rate.Took, 1)),
			fmt.Sprintf("%.0f", c.fast.PerS), further, c.kib>>10, was)
	}
	sessionsShape(r, x.p, all)
	return nil
}

// measure has the users send orders.
func (x *crowd) measure(ctx context.Context, c *crowded) (err error) {
	if _, err = x.users.AtRate(ctx, x.p.rate, sessionsWarm); err != nil {
		return err
	}
	if c.rate, err = x.users.AtRate(ctx, x.p.rate, x.p.measure); err != nil {
		return err
	}
	c.fast, err = x.users.AsFast(ctx, sessionsWindow, sessionsMost, x.p.measure)
	return err
}
