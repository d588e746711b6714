package cli

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/report"
)

// ownPod runs a pod that starts grids of its own, to its end, and returns what it handed over.
func ownPod(t *testing.T, want int, args ...string) (*report.Own, *report.Suite) {
	t.Helper()
	api := &configMaps{data: map[string]map[string]string{}}
	srv := httptest.NewServer(api)
	defer srv.Close()
	api.set("own-run", "startAt", time.Now().UTC().Format(time.RFC3339Nano))
	code, _, stderr := call(append([]string{"pod", "--probe", "own", "--index", "0", "--api-server", srv.URL, "--namespace", "trading", "--account-dir", t.TempDir(), "--http", ""}, args...)...)
	if code != want || api.get("own-0", "ready") == "" || api.get("own-0", "error") != "" {
		t.Fatalf("code %d, ready %q, error %q\n%s", code, api.get("own-0", "ready"), api.get("own-0", "error"), stderr)
	}
	own, suite, err := report.ParseOwn([]byte(api.get("own-0", "result.json")))
	if err != nil {
		t.Fatal(err)
	}
	return own, suite
}

func TestPodRunsAScenarioOfItsOwn(t *testing.T) {
	own, suite := ownPod(t, ExitOK, "--scenario", "match-flash", "--quick")
	if o := own.Outcome; suite != nil || o == nil || o.Run.Scenario != "match-flash" || o.Run.Mode != "quick" || !strings.Contains(o.Run.Control, "without its first order") || o.Verdict() == report.ReportIncorrect {
		t.Errorf("outcome %+v, suite %v", own.Outcome, suite)
	}
	for file, want := range map[string]string{report.FileTable: "match-flash (quick)", report.FileResults: `"scenario": "match-flash"`, report.FileCSV: "flow,messages", report.FilePage: "<html"} {
		if !strings.Contains(own.Files[file], want) {
			t.Errorf("%s is %.200q, want %q", file, own.Files[file], want)
		}
	}
}

// TestPodRunsTheSuite: with a budget that has time for nothing there is a row for each table nevertheless.
func TestPodRunsTheSuite(t *testing.T) {
	own, suite := ownPod(t, ExitOK, "--scenario", "suite", "--quick", "--budget", "1ms")
	if own.Outcome != nil || suite == nil || len(suite.Rows) != 35 || len(suite.Runs) != 0 {
		t.Fatalf("outcome %+v, suite %+v", own.Outcome, suite)
	}
	for _, r := range suite.Rows {
		if r.Verdict != report.NotRun && r.Verdict != report.NotBuilt || r.Reason == "" {
			t.Errorf("%s %s: %s: %s", r.Report, r.Table, r.Verdict, r.Reason)
		}
	}
	if page := own.Files[report.FilePage]; !strings.Contains(page, "stac-pair") || strings.Contains(page, `href="stac-pair`) {
		t.Errorf("the page leads to what is not there, or is none: %.300s", page)
	}
}

func TestPodOfItsOwnRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"endpoint":       {[]string{"--index", "0", "--scenario", "sol-fanout", "--endpoint", "a:1"}, "--endpoint: sol-fanout starts the grids"},
		"index":          {[]string{"--index", "1", "--scenario", "suite"}, "--index 1: suite has one pod"},
		"budget":         {[]string{"--index", "0", "--scenario", "bar-load", "--budget", "1m"}, "--budget 1m0s: it goes with suite"},
		"two sizes":      {[]string{"--index", "0", "--scenario", "bar-load", "--quick", "--exact"}, "choose one"},
		"another budget": {[]string{"--index", "0", "--scenario", "suite", "--budget", "-1m"}, "is more than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, _, stderr := call(append([]string{"pod", "--probe", "p"}, c.args...)...); code != ExitUsage || !strings.Contains(stderr, c.want) {
				t.Errorf("code %d, %q, want %q", code, stderr, c.want)
			}
		})
	}
}
