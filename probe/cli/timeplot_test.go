package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/probe/report"
)

// A pod starts the two grids of stac-timeplot one after the other, and hands over one report of both.
func TestPodRunsTimeplots(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(testgrid.Program(t, "grid-node"))+string(filepath.ListSeparator)+os.Getenv("PATH"))
	own, suite := ownPod(t, ExitOK, "--scenario", "stac-timeplot", "--quick")
	if o := own.Outcome; suite != nil || o == nil || o.Run.Scenario != "stac-timeplot" || o.Run.Mode != "quick" || o.Verdict() == report.ReportIncorrect {
		t.Fatalf("outcome %+v, suite %v", own.Outcome, suite)
	}
	for file, wants := range map[string][]string{
		report.FileTable: {"2 servers", "1 server", "the worst moment"}, report.FileResults: {`"scenario": "stac-timeplot"`},
		report.FileCSV: {",servers\n", ",1 server\n"}, report.FilePage: {"The first three seconds", "2,000 orders/s, 2 servers", "1,000 orders/s, 1 server"},
	} {
		for _, want := range wants {
			if !strings.Contains(own.Files[file], want) {
				t.Errorf("%s has no %q", file, want)
			}
		}
	}
}
