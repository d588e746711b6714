package failoverdrill

import (
	"context"
	"crypto/tls"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/probe/drill/recorder"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// TestRealRecorder: a drill with the real recorder on a real grid of processes. The process of a pod that Chaos Mesh
// would kill is killed.
func TestRealRecorder(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts a grid: run it without -short")
	}
	grid := testgrid.Start(t, testgrid.Options{MemoryMiB: 256, Args: []string{"--sink", "file", "--dir", t.TempDir()}})

	b := newBench(t)
	b.gridName, b.lasts = "dev", true
	b.killed = func(pod string) {
		for i, pid := range grid.PIDs {
			if pod == api.PodName("dev", 0, int32(i)) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	b.grid(2)
	d := b.drill("real", faults(killing("kill")))
	key, err := b.rec.Keys.Key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	url := serveRecorder(t, grid, d, key)
	b.rec.RecorderURL = func(*corev1.Pod) string { return url }

	b.untilOver(d)
	b.want(d, api.ConditionComplete, metav1.ConditionTrue, "StepsDone", "Pass: ")
	c, s := d.Status.Certificate, d.Status.Steps[0]
	if c == nil || c.Verdict != api.DrillPass || c.Lost != 0 || c.Acknowledged < 100 || c.Downstream == nil || *c.Downstream < c.Acknowledged || c.SHA256 == "" || c.HistorySHA256 == "" {
		t.Fatalf("certificate %s", jsonOf(c))
	}
	if !strings.HasPrefix(c.NegativeControl, "Passed: 64 taken out, 64 found lost") {
		t.Errorf("negative control %q", c.NegativeControl)
	}
	if s.Outage == nil || s.P99Before == nil || s.P99During == nil || s.P99After == nil || s.Outcome != api.StepPassed {
		t.Errorf("step %s", jsonOf(s))
	}
}

func serveRecorder(t *testing.T, grid *testgrid.Grid, d *api.FailoverDrill, key []byte) string {
	t.Helper()
	c := recorder.Config{Endpoints: grid.Endpoints, Replicas: 2, Probes: 2, Rate: 200, Sessions: 2, Reads: 20, Orders: 10, FIX: fixorder.FIX42, Timeout: 10 * time.Second, Seed: 7,
		Patience: 20 * time.Second, GapLimit: 5 * time.Second, MaxOrders: 1 << 20, Token: token(key, d), Dir: t.TempDir(), Say: t.Logf}
	for _, u := range grid.HTTP {
		c.NodeHTTP = append(c.NodeHTTP, strings.TrimPrefix(u, "http://"))
	}
	rec, err := recorder.New(c)
	if err != nil {
		t.Fatal(err)
	}
	id, err := identity(d, key)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(id[certificates.KeyCert], id[certificates.KeyKey])
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	server := rec.Server()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { _ = server.Serve(l) }()
	go func() { defer close(ended); _ = rec.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended; _ = server.Close() })
	return "https://" + l.Addr().String()
}
