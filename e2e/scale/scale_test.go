package scale

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/internal/golden"
)

func TestVersionMatchesModule(t *testing.T) {
	content, err := os.ReadFile("binaries/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), "\tsigs.k8s.io/kwok "+kwokVersion) {
		t.Errorf("e2e/scale/binaries/go.mod does not require kwok %s", kwokVersion)
	}
}

// TestFewGrids is the whole measurement, small. What it holds to are counts, which do not depend on the machine. It builds
// KWOK the first time.
func TestFewGrids(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane and four grids: run it without -short")
	}
	root, err := filepath.Abs(envtest.Root())
	if err != nil {
		t.Fatal(err)
	}
	envtest.Assets(t)
	kwok, err := EnsureKWOK(t.Context(), root, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.ArtifactDir()
	const grids = 4
	r, err := Run(t.Context(), Options{Root: root, Dir: filepath.Join(dir, "run"), KWOK: kwok, Operator: testgrid.Program(t, "operator"), Rest: 10 * time.Second, Say: t.Logf}, grids)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Objects["Pod"]; got != grids*shards*replicas {
		t.Errorf("%d pods", got)
	}
	// One read and one write for each of a grid's 25 objects, and some writes of status and events on the way.
	if per := r.Create.Total("") / grids; per < 50 || per > 90 {
		t.Errorf("%d requests per grid until steady, want 50 to 90: %v", per, r.Create.Requests)
	}
	if n := r.Rest.Total("") - r.Rest.Total("get leases") - r.Rest.Total("update leases"); n != 0 || r.Rest.Reconciles != 0 {
		t.Errorf("at rest %v reconciles, %d requests beside the Lease's: %v", r.Rest.Reconciles, n, r.Rest.Requests)
	}
	for key := range r.Restart.Requests {
		if verb, what, _ := strings.Cut(key, " "); verb != "get" && verb != "list" && what != "leases" && what != "events" {
			t.Errorf("after a restart the operator wrote: %s", key)
		}
	}
	if r.Restart.Questions != grids*shards*replicas {
		t.Errorf("%v grid nodes were asked after a restart, want each once", r.Restart.Questions)
	}
	if r.Create.Errors != 0 || r.Restart.Errors != 0 {
		t.Errorf("%v failed reconciles, %v after the restart", r.Create.Errors, r.Restart.Errors)
	}
}

func TestParseStat(t *testing.T) {
	rest := " S 41 1 1 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 100 1000000 2048 18446744073709551615"
	pid, parent, name, u, err := parseStat([]byte("42 (a (b) c)" + rest))
	if err != nil || pid != 42 || parent != 41 || name != "a (b) c" || u.CPU != 3*time.Second || u.RSS != 2048*int64(os.Getpagesize()) {
		t.Errorf("%d %d %q %+v %v", pid, parent, name, u, err)
	}
	for _, line := range []string{"", "42", "42 (a", "42 )a(" + rest, "(a)" + rest, "x (a)" + rest, "42 (a) S 41", "42 (a) S x" + rest} {
		if _, _, _, _, err := parseStat([]byte(line)); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}

func TestChildren(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		all, err := children()
		if err != nil {
			t.Fatal(err)
		}
		if all["sleep"].RSS > 0 && all["scale"].RSS > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v", all)
		}
	}
}

func TestResourceOf(t *testing.T) {
	for uri, want := range map[string]string{
		"/api/v1/namespaces/trading/pods/a":                                          "pods",
		"/api/v1/pods?limit=500&resourceVersion=0":                                   "pods",
		"/api/v1/namespaces":                                                         "namespaces",
		"/api/v1/namespaces/trading":                                                 "namespaces",
		"/apis/ordergrid.dev/v1alpha1/namespaces/trading/ordergrids/grid-1/status":   "ordergrids/status",
		"/apis/apps/v1/namespaces/trading/statefulsets/grid-1-s0?fieldManager=x":     "statefulsets",
		"/apis/coordination.k8s.io/v1/namespaces/ordergrid-system/leases/x?timeout=": "leases",
		"/api": "discovery", "/apis": "discovery", "/apis/apps/v1": "discovery", "/": "discovery",
	} {
		if got := resourceOf(uri); got != want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
}

// sample is made up, with figures that tell rows apart.
func sample(grids int) *Result {
	n := float64(grids)
	phase := func(seconds float64) Phase {
		return Phase{Seconds: seconds, Reconciles: 5 * n, P50: 12, P99: 90, QueueP50: 3, QueueP99: 400, Questions: 6 * n, Sent: 60 * n,
			Requests: map[string]int{"get pods": 25 * grids, "patch pods": 28 * grids, "update leases": 10}, CPU: map[string]float64{"operator": n / 50, "kube-apiserver": n / 10, "etcd": n / 30, "kwok": n / 90}}
	}
	rest := phase(60)
	rest.Reconciles, rest.P50, rest.P99, rest.Requests = 0, 0, 0, map[string]int{"update leases": 15}
	return &Result{
		Grids: grids, Pods: 6 * grids, Created: n / 100, Steady: n / 8, Create: phase(n / 7), Rest: rest, Heap: int64(grids) << 18,
		Processes: map[string]usage{"operator": {RSS: int64(grids) << 19}, "kube-apiserver": {RSS: int64(grids) << 21}, "etcd": {RSS: int64(grids) << 20}},
		Reactions: []float64{5, 9, 7}, Restarted: n / 90, Restart: phase(n / 90), RestartHeap: int64(grids) << 17, RestartRSS: int64(grids) << 18,
		Objects: map[string]int{"Pod": 6 * grids, "OrderGrid": grids},
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := Table(&b, []*Result{sample(10), sample(100)}); err != nil {
		t.Fatal(err)
	}
	golden.Bytes(t, "testdata/table.md", []byte(b.String()))
}

func TestPlots(t *testing.T) {
	plots := Plots([]*Result{sample(10), sample(100), sample(1000)})
	if len(plots) != 5 {
		t.Errorf("%d plots", len(plots))
	}
	for name, chart := range plots {
		var b strings.Builder
		if err := chart.SVG(&b); err != nil || !strings.Contains(b.String(), chart.Title) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var b strings.Builder
	if err := plots["time.svg"].SVG(&b); err != nil {
		t.Fatal(err)
	}
	golden.Bytes(t, "testdata/time.svg", []byte(b.String()))
}
