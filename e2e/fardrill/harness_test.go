package fardrill

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/recorder"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// enabled skips a drill unless it is asked for: each takes half a minute.
func enabled(t *testing.T) {
	t.Helper()
	if os.Getenv("ORDERGRID_FAR_DRILLS") == "" {
		t.Skip("ORDERGRID_FAR_DRILLS is not set; make far-drills sets it")
	}
}

// drill is a recorder in this process.
type drill struct {
	t     *testing.T
	name  string
	rec   *recorder.Recorder
	dir   string
	grid  string
	steps int
	ended chan error
}

// begin starts the recorder of a grid.
func begin(t *testing.T, name string, g *testgrid.Grid, change func(*recorder.Config)) *drill {
	t.Helper()
	c := recorder.Config{Endpoints: g.Endpoints, Grid: "dev"}
	for _, u := range g.HTTP {
		c.NodeHTTP = append(c.NodeHTTP, strings.TrimPrefix(u, "http://"))
	}
	change(&c)
	return record(t, name, c)
}

// record is begin with a recorder of its own; what is the same in all drills is filled in.
func record(t *testing.T, name string, c recorder.Config) *drill {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	d := &drill{t: t, name: name, dir: filepath.Join(root, "out", "far-drills", name), grid: c.Grid, ended: make(chan error, 1)}
	c.Replicas, c.Probes, c.Rate, c.Sessions, c.FIX, c.Timeout, c.Seed = 2, 2, 200, 2, fixorder.FIX42, time.Minute, 19
	c.Patience, c.GapLimit, c.MaxOrders, c.Token, c.Dir, c.Say = time.Minute, 5*time.Second, 1<<20, "secret", d.dir, t.Logf
	if d.rec, err = recorder.New(c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go func() { d.ended <- d.rec.Run(ctx) }()
	return d
}

// until polls; the limit only turns a hang into a failure.
func (d *drill) until(what string, done func() bool) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-d.ended:
			d.t.Fatalf("%s: the recorder ended: %v", what, err)
		default:
		}
		if time.Now().After(end) {
			d.t.Fatalf("not after a minute: %s; state %+v", what, d.rec.State())
		}
	}
}

// fault is one step: inject makes it, and says what showed that it hit; recover ends it.
type fault struct {
	kind, what   string
	pods         []string
	inject       func() (witness string)
	lasts        time.Duration
	recover      func()
	failedOrders string // "": none
}

// step makes a fault in a calm time, and waits until it is over.
func (d *drill) step(f fault) *api.Record {
	d.t.Helper()
	d.until("calm for a second", func() bool { s := d.rec.State(); return s.Phase == api.Running && s.Calm > time.Second })
	index := d.steps
	d.steps++
	if f.failedOrders == "" {
		f.failedOrders = api.FailedOrdersNone
	}
	must := func(_ *api.Record, err error) {
		d.t.Helper()
		if err != nil {
			d.t.Fatal(err)
		}
	}
	must(d.rec.Begin(index, api.Step{Repetition: 1, Fault: f.kind, Type: f.kind, Provider: "process", What: f.what, Pods: f.pods, Expect: api.Expect{FailedOrders: f.failedOrders}}))
	seen := f.inject()
	must(d.rec.Tell(index, api.Injected, api.Note{Witness: api.Witness{State: api.Seen, Message: seen}}))
	time.Sleep(f.lasts)
	if f.recover != nil {
		f.recover()
	}
	must(d.rec.Tell(index, api.Recovered, api.Note{}))
	var r *api.Record
	d.until("step "+f.kind+" is over", func() bool {
		var err error
		r, err = d.rec.Step(index)
		must(r, err)
		return r.Over
	})
	return r
}

// finish ends the drill and returns its certificate, which is judged a second time from its files.
func (d *drill) finish() *certificate.Certificate {
	d.t.Helper()
	if err := d.rec.Finish(api.Finish{Context: api.Context{Drill: d.name, Suite: d.name, Grid: d.grid, StepsAsked: d.steps}}); err != nil {
		d.t.Fatal(err)
	}
	select {
	case err := <-d.ended:
		if err != nil {
			d.t.Fatal(err)
		}
	case <-time.After(5 * time.Minute):
		d.t.Fatalf("no certificate after five minutes: %+v", d.rec.State())
	}
	text, err := os.ReadFile(filepath.Join(d.dir, "certificate.txt"))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Logf("%s", text)
	again, err := certificate.Verify(d.dir)
	if err != nil || len(again.Trouble) > 0 {
		d.t.Fatalf("judged again: %v, %v", again, err)
	}
	return again.Certificate
}

// switchboard leads connections to the nodes of one grid, and after a turn to those of another: what a site's name in DNS
// or a load balancer does for clients. A turn ends the connections that there are.
type switchboard struct {
	before *downstream.Roads

	mu sync.Mutex
	to map[string]string
}

func newSwitchboard(t *testing.T) *switchboard {
	return &switchboard{before: downstream.NewRoads(t.Context(), 0, 0)}
}

func (s *switchboard) turn(from, to *testgrid.Grid) {
	s.mu.Lock()
	s.to = map[string]string{}
	for i, a := range from.Endpoints {
		s.to[a] = to.Endpoints[i%len(to.Endpoints)]
	}
	s.mu.Unlock()
	s.before.Cut()
}

func (s *switchboard) dial(ctx context.Context, address string) (net.Conn, error) {
	s.mu.Lock()
	to, turned := s.to[address], s.to != nil
	s.mu.Unlock()
	switch {
	case to != "":
		address = to
	case !turned:
		return s.before.Dial(ctx, address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// gone returns once nothing listens on an address, and says so.
func gone(t *testing.T, address string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return fmt.Sprintf("%s: %v", address, err)
		}
		_ = c.Close()
	}
	t.Fatalf("%s is still there", address)
	return ""
}
