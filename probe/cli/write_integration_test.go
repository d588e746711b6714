package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/probe/report"
)

// Two real grids one after the other, merged into one report.
func TestWritesAgainstRealGrids(t *testing.T) {
	dir := t.TempDir()
	code, out, stderr := call("run", "--dev", "--grid-node", testgrid.Program(t, "grid-node"), "--scenario", "gs-write", "--rates", "300",
		"--warmup", "200ms", "--measure", "800ms", "--quiet-wait", "0s", "--format", "json", "--out", dir)
	if code != ExitOK && code != ExitInvalid && code != ExitJudged {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var rep report.Report
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Checks) != 4 {
		t.Fatalf("%d steps, want an empty record and one of eight fields on each grid", len(rep.Checks))
	}
	one, two := rep, rep
	one.Checks, two.Checks = rep.Checks[:2], rep.Checks[2:]
	checkCounts(t, &one, 2, 1)
	checkCounts(t, &two, 2, 2)
	for i, want := range []string{"empty, 1 copy", "8 fields, 1 copy", "empty, 2 copies", "8 fields, 2 copies"} {
		if rep.Checks[i].Record != want {
			t.Errorf("step %d is %s, want %s", i, rep.Checks[i].Record, want)
		}
	}
	if len(rep.Result.RoundTrips) != 2 {
		t.Fatalf("%d round trips, want one of each grid", len(rep.Result.RoundTrips))
	}
	for i, x := range rep.Result.RoundTrips {
		if x.Replicas != i+1 || x.Rate != 300 || x.Latency.Count() != 300 || x.Latency.Min() <= 0 {
			t.Errorf("round trip %d: replicas %d at %d/s, %d pings, least %d ns", i, x.Replicas, x.Rate, x.Latency.Count(), x.Latency.Min())
		}
	}
	for _, name := range []string{"report.html", "results.json", "replicas-1/ledger-A.bin", "replicas-2/ledger-A.bin"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if code, again, stderr := call("report", "--format", "json", dir); code == ExitFailed || again != out {
		t.Errorf("the regenerated report differs: code %d, %s", code, stderr)
	}
}

// An existing grid is one half.
func TestWritesAgainstAGivenGrid(t *testing.T) {
	g := testgrid.Start(t, testgrid.Options{Replicas: 1, MemoryMiB: 128})
	code, out, stderr := call("run", "--endpoint", g.Endpoints[0], "--replicas", "1", "--fix", "4.4", "--scenario", "gs-write", "--rates", "300",
		"--warmup", "200ms", "--measure", "800ms", "--format", "json")
	if code != ExitOK && code != ExitInvalid && code != ExitJudged {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	var rep report.Report
	if err := json.Unmarshal([]byte(out), &rep); err != nil {
		t.Fatal(err)
	}
	checkCounts(t, &rep, 2, 1)
	if len(rep.Result.RoundTrips) != 1 || len(rep.Result.Plan.Grids()) != 1 {
		t.Errorf("%d round trips, %d grids", len(rep.Result.RoundTrips), len(rep.Result.Plan.Grids()))
	}
}
