package skew

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/internal/proc"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// pair is two nodes with a partition each, of programs that can differ.
type pair struct {
	t          *testing.T
	arbiter    string
	peerKey    string // file
	sinkDir    string
	data, http [2]string
	processes  [2]*exec.Cmd
	logs       [2]*proc.Tail
}

func newPair(t *testing.T) *pair {
	t.Helper()
	specs := map[string]arbiter.Spec{}
	for i := range 2 {
		specs[node.PartitionName("g", i)] = arbiter.Spec{Grid: "g", Partition: i, Replicas: 2, MinInSync: 1, PreferredPod: podName(i)}
	}
	store := memory.NewStore(specs)
	srv := httptest.NewServer(store.Handler())
	t.Cleanup(srv.Close)
	p := &pair{t: t, arbiter: srv.URL, sinkDir: t.TempDir(), peerKey: filepath.Join(t.TempDir(), "peer.key")}
	if err := peerkey.WriteFile(p.peerKey, peerkey.New()); err != nil {
		t.Fatal(err)
	}
	for i, a := range freeAddresses(t, 4) {
		if i < 2 {
			p.data[i] = a
		} else {
			p.http[i-2] = a
		}
	}
	t.Cleanup(func() {
		for i, cmd := range p.processes {
			if cmd != nil {
				_ = cmd.Process.Kill() // it may have ended
				_ = cmd.Wait()
			}
			if t.Failed() && p.logs[i] != nil {
				t.Logf("node %d: %s", i, p.logs[i])
			}
		}
	})
	return p
}

func podName(i int) string { return "g-s0-" + strconv.Itoa(i) }

func freeAddresses(t *testing.T, n int) (out []string) {
	t.Helper()
	for range n {
		out = append(out, proc.PortForTest(t))
	}
	return out
}

// start runs a program in a place.
func (p *pair) start(i int, exe string) {
	p.t.Helper()
	cmd := exec.Command(exe, "serve", "--grid", "g", "--arbiter", p.arbiter, "--partitions", "2", "--replicas", "2", "--pod", podName(i), "--peer-key-file", p.peerKey,
		"--listen", p.data[i], "--advertise", p.data[i], "--http", p.http[i], "--peers", p.data[0], "--peers", p.data[1],
		"--memory-limit", "256Mi", "--sink", "file", "--sink-dir", p.sinkDir, "--hand-over-delay", "200ms", "--log-format", "text",
		// A shared machine may be busy: a slow member must not be replaced.
		"--beacon", "50ms", "--lease", "1s", "--grace", "2s")
	p.logs[i] = &proc.Tail{}
	cmd.Stderr = p.logs[i]
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.processes[i] = cmd
}

// stop ends a node in good order, as an update does.
func (p *pair) stop(i int) {
	p.t.Helper()
	if err := p.processes[i].Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := p.processes[i].Wait(); err != nil {
		p.t.Fatalf("node %d did not leave in good order: %v\n%s", i, err, p.logs[i])
	}
	p.processes[i] = nil
}

func (p *pair) kill(i int) {
	p.t.Helper()
	if err := p.processes[i].Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.processes[i].Wait() // it was killed
	p.processes[i] = nil
}

// whole waits until both nodes are in sync and each has its own partition back.
func (p *pair) whole(c *http.Client) {
	p.t.Helper()
	p.until("both nodes are in sync, each the primary of its partition", func() bool {
		for i := range 2 {
			s, err := nodestatus.Get(p.t.Context(), c, p.http[i])
			if err != nil {
				return false
			}
			own := s.Find(node.PartitionName("g", i))
			if own == nil || own.Role != "primary" || len(own.InSync) != 2 {
				return false
			}
		}
		return true
	})
}

// until polls; the limit only turns a hang into a failure.
func (p *pair) until(what string, cond func() bool) {
	p.t.Helper()
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if cond() {
			return
		}
	}
	p.t.Fatalf("never: %s", what)
}

// traffic is orders without end on both partitions.
type traffic struct {
	acked  atomic.Int64
	failed atomic.Pointer[error]
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func (p *pair) load(c *client.Client) *traffic {
	ctx, cancel := context.WithCancel(context.Background())
	t := &traffic{cancel: cancel}
	run := fixorder.NewRun()
	for k := range 4 {
		orders, err := fixorder.NewMaker(fixorder.FIX42, fixorder.ID{Run: run, Probe: k})
		if err != nil {
			p.t.Fatal(err)
		}
		t.wg.Go(func() {
			for i := int64(0); ctx.Err() == nil; i++ {
				if _, err := c.Submit(context.Background(), orders.Make(i, i+1, time.Now(), time.Now())); err != nil {
					t.failed.CompareAndSwap(nil, &err)
					return
				}
				t.acked.Add(1)
				time.Sleep(time.Millisecond) // load, and cores left for the nodes
			}
		})
	}
	return t
}

// more waits for orders that are acknowledged from now on.
func (t *traffic) more(p *pair, n int64) {
	p.t.Helper()
	want := t.acked.Load() + n
	p.until(fmt.Sprintf("%d more orders are acknowledged", n), func() bool { return t.acked.Load() >= want || t.failed.Load() != nil })
	if err := t.failed.Load(); err != nil {
		p.t.Fatalf("an order failed: %v", *err)
	}
}

// stop ends the load and returns how many orders were acknowledged.
func (t *traffic) stop() int64 {
	t.cancel()
	t.wg.Wait()
	return t.acked.Load()
}
