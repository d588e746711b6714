package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/fixdoor"
	"github.com/ordergrid/ordergrid/probe/grid"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Scenarios that send orders, through FIX sessions: the same counts as by the grid's own protocol, of both copies.
func TestRunThroughFIX(t *testing.T) {
	for _, c := range []struct {
		scenario, fix string
		args          []string
		steps         int
	}{
		{"stac-pair", "4.2", []string{"--rates", "100,300", "--repeats", "1"}, 2},
		{"stac-pair", "4.4", []string{"--rates", "200", "--repeats", "1"}, 1},
		{"stac-pair", "5.0SP2", []string{"--rates", "200", "--repeats", "1"}, 1},
		{"flow-hawkes", "5.0SP2", []string{"--rates", "150", "--repeats", "1"}, 2},
		{"flow-hawkes", "4.4", []string{"--rates", "150", "--repeats", "1"}, 2}, // cancels and replaces
	} {
		t.Run(c.scenario+" "+c.fix, func(t *testing.T) {
			args := append([]string{"run", "--dev", "--through", "fix", "--fix", c.fix, "--grid-node", testgrid.Program(t, "grid-node"), "--order-gateway", testgrid.Program(t, "order-gateway"),
				"--scenario", c.scenario, "--warmup", "200ms", "--measure", "800ms", "--quiet-wait", "0s", "--format", "json"}, c.args...)
			code, out, stderr := call(args...)
			if code != ExitOK && code != ExitInvalid && code != ExitJudged {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			checkThrough(t, out, c.steps)
		})
	}
}

// checkThrough checks a run with two copies.
func checkThrough(t *testing.T, out string, steps int) {
	t.Helper()
	var rep report.Report
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatal(err)
	}
	checkCounts(t, &rep, steps, 2)
	if m := rep.Result.Manifests[0]; m.Through != "fix" || len(m.Gateways) == 0 {
		t.Errorf("the manifest says through %q, gateways %v", m.Through, m.Gateways)
	}
}

// Pods of an OrderProbe start a gateway each, with sessions that no other one has.
func TestPodsThroughFIX(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(testgrid.Program(t, "order-gateway"))+string(os.PathListSeparator)+os.Getenv("PATH"))
	merged := podsMeet(t, "--through", "fix", "--fix", "4.4")
	gateways := map[string]bool{}
	for _, m := range merged.Manifests {
		if m.Through != "fix" || len(m.Gateways) != 1 {
			t.Fatalf("the manifest says through %q, gateways %v", m.Through, m.Gateways)
		}
		gateways[m.Gateways[0]] = true
	}
	if len(gateways) != 2 {
		t.Errorf("gateways are %v, want one of each pod", gateways)
	}
}

// A grid and a gateway that are there, with the file of its sessions.
func TestRunThroughFIXOfAGateway(t *testing.T) {
	g := testgrid.Run(t)
	c, err := grid.Dial(t.Context(), grid.Config{Endpoints: g.Endpoints, RequestTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	names, err := fixdoor.Names("FIX.4.4", 0, map[wire.PartitionID]int{0: 1, 1: 1}, c.SessionHome)
	if err != nil {
		t.Fatal(err)
	}
	for i := range names { // of any length
		names[i].Target = "THE-GATEWAY-OF-THE-TEST"
	}
	names = append(names, manyNames(names[0].Target, c)...)
	file, err := fixdoor.WriteSessions(t.TempDir(), names, "secret")
	if err != nil {
		t.Fatal(err)
	}
	w, err := g.StartGateway(t.Context(), testgrid.Program(t, "order-gateway"), "--listen", "127.0.0.1:0", "--sessions", file, "--fix-insecure-plain")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Kill()
	args := []string{"run", "--endpoint", g.Endpoints[0], "--through", "fix", "--fix", "4.4", "--fix-address", w.Address, "--fix-sessions", file,
		"--scenario", "stac-pair", "--rates", "200", "--repeats", "1", "--warmup", "200ms", "--measure", "800ms", "--format", "json"}
	code, out, stderr := call(args...)
	if code != ExitOK && code != ExitInvalid && code != ExitJudged {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	checkThrough(t, out, 1)
	if code, _, stderr = call(append(args, "--threads", "64")...); code != ExitFailed || !strings.Contains(stderr, "no further session of FIX.4.4 in partition") {
		t.Errorf("more threads than sessions: exit code %d, %s", code, stderr)
	}
}

// manyNames are sessions of both partitions with CompIDs of their own.
func manyNames(target string, c *grid.Grid) (names []fixdoor.Name) {
	left := map[wire.PartitionID]int{0: 16, 1: 16}
	for i := 0; left[0]+left[1] > 0; i++ {
		n := fixdoor.Name{Version: "FIX.4.4", Sender: "CLIENT-" + strings.Repeat("X", i%7) + string(rune('A'+i%26)) + string(rune('A'+i/26)), Target: target}
		if p := c.SessionHome(n.Version, n.Sender, n.Target); left[p] > 0 {
			left[p]--
			names = append(names, n)
		}
	}
	return names
}

// What does not go together is refused before anything starts.
func TestThroughIsChecked(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--dev", "--through", "tcp"}, `--through "tcp": allowed: native, fix`},
		{[]string{"--dev", "--through", "fix", "--fix-address", "a:1"}, "--fix-address, --fix-sessions: given, with --dev"},
		{[]string{"--endpoint", "a:1", "--through", "fix"}, "--fix-address and --fix-sessions are needed with --endpoint"},
		{[]string{"--endpoint", "a:1", "--fix-address", "a:1"}, "--through is native"},
		{[]string{"--endpoint", "a:1", "--through", "fix", "--fix-address", "a:1", "--fix-sessions", "f", "--fix-tls-cert", "c"}, "tls-"},
	} {
		if code, _, stderr := call(append([]string{"run", "--scenario", "stac-pair"}, c.args...)...); code != ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %s; want %s", c.args, code, stderr, c.want)
		}
	}
	if code, _, stderr := call("run", "--scenario", "sol-fanout", "--dev", "--through", "fix"); code != ExitUsage || !strings.Contains(stderr, "has doors of its own") {
		t.Errorf("a scenario about a system: exit code %d, %s", code, stderr)
	}
}
