package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/traffic"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// drill is a real grid of processes with a recorder that is driven over HTTP.
type drill struct {
	t     *testing.T
	grid  *testgrid.Grid
	rec   *Recorder
	api   *api.Client
	dir   string
	ended chan error
	stop  context.CancelFunc
}

type setup struct {
	replicas int
	tags     []string // of the nodes' program
	args     []string // of the nodes
	noSink   bool
	before   int64 // orders in the grid before the recorder starts
	ready    func(*drill)
	change   func(*Config)
}

func start(t *testing.T, s setup) *drill {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts a grid: run it without -short")
	}
	d := &drill{t: t, dir: t.TempDir(), ended: make(chan error, 1)}
	sinks := t.TempDir()
	args := []string{}
	if !s.noSink {
		args = append(args, "--sink", "file", "--dir", sinks)
	}
	d.grid = testgrid.Start(t, testgrid.Options{Tags: s.tags, Replicas: s.replicas, MemoryMiB: 256, Args: append(append(args, "--"), s.args...)})
	d.fill(s.before)
	if s.ready != nil {
		s.ready(d)
	}
	c := Config{Endpoints: d.grid.Endpoints, Replicas: s.replicas, Probes: 2, Rate: 300, Sessions: 2, Reads: 50, Orders: 10, FIX: fixorder.FIX42, Timeout: 10 * time.Second, Seed: 7,
		Patience: 20 * time.Second, GapLimit: 5 * time.Second, MaxOrders: 1 << 20, Token: "secret", Dir: d.dir, Say: t.Logf}
	for _, u := range d.grid.HTTP {
		c.NodeHTTP = append(c.NodeHTTP, strings.TrimPrefix(u, "http://"))
	}
	if s.change != nil {
		s.change(&c)
	}
	var err error
	if d.rec, err = New(c); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := d.rec.Server()
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	d.api = api.NewClient("http://"+l.Addr().String(), "secret", nil)
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	t.Cleanup(stop)
	go func() { d.ended <- d.rec.Run(ctx) }()
	return d
}

// fill sends foreign orders to every partition.
func (d *drill) fill(orders int64) {
	d.t.Helper()
	if orders == 0 {
		return
	}
	c, err := client.Dial(d.t.Context(), client.Config{Endpoints: d.grid.Endpoints})
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, p := range c.Table() {
		if err := traffic.Fill(d.t.Context(), c, p.ID, orders); err != nil {
			d.t.Fatal(err)
		}
	}
}

// until polls; the limit only turns a hang into a failure.
func (d *drill) until(what string, done func() bool) {
	d.t.Helper()
	for range 1200 {
		if done() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	d.t.Fatalf("not after a minute: %s; state %+v", what, d.state())
}

func (d *drill) state() *api.State {
	d.t.Helper()
	s, err := d.api.State(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *drill) calm() {
	d.t.Helper()
	d.until("calm for a second", func() bool { s := d.state(); return s.Phase == api.Running && s.Calm > time.Second })
}

// killed is a step in which the process of a pod is killed, or all of them.
func (d *drill) kill(index int, pods ...int) {
	d.t.Helper()
	s := api.Step{Repetition: index + 1, Fault: "kill", Type: "PodKill", Provider: "test", What: "kill -9"}
	for _, p := range pods {
		s.Pods = append(s.Pods, "dev-s0-"+string(rune('0'+p)))
	}
	for range 2 { // the driver may restart and repeat it
		if _, err := d.api.Begin(d.t.Context(), index, s); err != nil {
			d.t.Fatal(err)
		}
	}
	for _, p := range pods {
		if err := syscall.Kill(d.grid.PIDs[p], syscall.SIGKILL); err != nil {
			d.t.Fatal(err)
		}
	}
	for _, e := range []api.Event{api.Injected, api.Recovered} {
		if _, err := d.api.Tell(d.t.Context(), index, e, api.Note{}); err != nil {
			d.t.Fatal(err)
		}
	}
	d.seen(index)
}

func (d *drill) seen(index int) {
	d.t.Helper()
	if _, err := d.api.Tell(d.t.Context(), index, api.Recovered, api.Note{Witness: api.Witness{State: api.Seen, Message: "the process is gone"}}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *drill) over(index int) *api.Record {
	d.t.Helper()
	var rec *api.Record
	d.until("the step is over", func() bool {
		var err error
		if rec, err = d.api.Step(d.t.Context(), index); err != nil {
			d.t.Fatal(err)
		}
		return rec.Over
	})
	return rec
}

// finish returns the certificate received over the network.
func (d *drill) finish(f api.Finish) *certificate.Certificate {
	d.t.Helper()
	for range 2 {
		if err := d.api.Finish(d.t.Context(), f); err != nil {
			d.t.Fatal(err)
		}
	}
	return d.certificate()
}

func (d *drill) certificate() *certificate.Certificate {
	d.t.Helper()
	select {
	case err := <-d.ended:
		if err != nil {
			d.t.Fatal(err)
		}
	case <-time.After(3 * time.Minute):
		d.t.Fatal("no end after three minutes")
	}
	b, err := d.api.Certificate(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	text, err := d.api.Text(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Logf("%s", text)
	sums, err := d.api.Digests(d.t.Context())
	if err != nil || sums.Certificate != certificate.Sum(b) {
		d.t.Fatalf("%v, sha256 %s, the bytes have %s", err, sums.Certificate, certificate.Sum(b))
	}
	var history bytes.Buffer
	if _, err := d.api.History(d.t.Context(), &history, 64<<20); err != nil || certificate.Sum(history.Bytes()) != sums.History {
		d.t.Fatalf("history: %v, sha256 %s, the bytes have %s", err, sums.History, certificate.Sum(history.Bytes()))
	}
	c := &certificate.Certificate{}
	if err := json.Unmarshal(b, c); err != nil {
		d.t.Fatal(err)
	}
	if k, err := certificate.Verify(d.dir); err != nil || len(k.Trouble) > 0 {
		d.t.Errorf("judged again: %v, %q", err, k.Trouble)
	}
	return c
}
