package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/probe/ledger"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

// checkCounts asserts what must hold on any machine: every order created was acknowledged, and
// every remaining copy of the log has it once. Latencies depend on the machine; so does a copy that
// a starved machine costs the grid, but then the guard must have seen it.
func checkCounts(t *testing.T, rep *report.Report, steps int, copies int) {
	t.Helper()
	if len(rep.Checks) != steps {
		t.Fatalf("%d steps, want %d", len(rep.Checks), steps)
	}
	for _, c := range rep.Checks {
		if c.Created == 0 || c.Created != c.Acked || c.Rejected+c.Unknown+c.Unsent != 0 {
			t.Errorf("%d/s run %d: created %d acked %d rejected %d unknown %d unsent %d copies %d", c.Rate, c.Run, c.Created, c.Acked, c.Rejected, c.Unknown, c.Unsent, c.MinCopies)
		}
		both := c.Ledger
		both.Add(c.Backups)
		if both.Violations() != 0 || c.Disorder != 0 || both.UnknownFound+both.UnknownAbsent != 0 {
			t.Errorf("%d/s run %d: %+v %v", c.Rate, c.Run, both, c.Violations)
		}
		shrunk := false
		for _, why := range c.Reasons {
			shrunk = shrunk || why.Guard == "topology"
			if why.Guard == "detector" || why.Guard == "answers" {
				t.Errorf("%d/s run %d: %s", c.Rate, c.Run, why.Text)
			}
		}
		if shrunk != (c.MinCopies != copies) {
			t.Errorf("%d/s run %d: acknowledged with %d copies of %d, reasons %+v", c.Rate, c.Run, c.MinCopies, copies, c.Reasons)
		}
	}
	if rep.Verdict == report.ReportIncorrect || rep.Judgements[0].Status != report.Pass {
		t.Errorf("%s: %s; %+v", rep.Verdict, rep.Reason, rep.Judgements[0])
	}
}

func TestRunAgainstARealGrid(t *testing.T) {
	for _, c := range []struct {
		scenario, rates, repeats string
		steps, probes, copies    int
	}{
		{"stac-single", "300", "2", 2, 1, 1},
		{"stac-pair", "100,400", "2", 4, 2, 2},
		{"stac-scale", "60", "1", 3, 6, 2},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			dir := t.TempDir()
			code, out, stderr := call("run", "--dev", "--grid-node", testgrid.Program(t, "grid-node"), "--scenario", c.scenario, "--rates", c.rates, "--repeats", c.repeats,
				"--warmup", "200ms", "--measure", "800ms", "--quiet-wait", "0s", "--format", "json", "--out", dir)
			if code != ExitOK && code != ExitInvalid && code != ExitJudged {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			var rep report.Report
			if err := json.Unmarshal([]byte(out), &rep); err != nil {
				t.Fatal(err)
			}
			checkCounts(t, &rep, c.steps, c.copies)
			if want := codeOf(outcome(&rep)); code != want {
				t.Errorf("exit code %d with verdict %s, judgements %+v", code, rep.Verdict, rep.Judgements)
			}
			checkFiles(t, dir, &rep, c.probes)
			for _, p := range rep.Result.Probes {
				if len(p.Copies) == 0 {
					t.Errorf("probe %s: no log was read back", p.Name)
				}
			}
			for _, k := range rep.Result.Conditions {
				if len(k.Nodes) == 0 || k.ForeignPct < 0 {
					t.Errorf("conditions of step %d: %d nodes, foreign %v", k.Step, len(k.Nodes), k.ForeignPct)
				}
			}
		})
	}
}

// checkPlots regenerates the page and its plots: the page is the same, byte for byte.
func checkPlots(t *testing.T, dir string) {
	t.Helper()
	out := t.TempDir()
	page := filepath.Join(out, "again.html")
	if code, _, stderr := call("report", "--html", page, "--svg", filepath.Join(out, "svg"), "--png", filepath.Join(out, "png"), dir); code == ExitFailed || code == ExitUsage {
		t.Fatalf("report: code %d, %s", code, stderr)
	}
	first, err1 := os.ReadFile(filepath.Join(dir, "report.html"))
	again, err2 := os.ReadFile(page)
	if err := errors.Join(err1, err2); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the regenerated page has %d bytes, the first %d: %v", len(again), len(first), err)
	}
	for _, name := range []string{"histograms", "percentiles", "stages", "first-seconds", "whole-run", "cpu"} {
		for kind, begin := range map[string]string{"svg": "<svg ", "png": "\x89PNG"} {
			found, err := filepath.Glob(filepath.Join(out, kind, "*-"+name+"."+kind))
			if err != nil || len(found) != 1 {
				t.Errorf("plot %s as %s: files %v, %v", name, kind, found, err)
				continue
			}
			if b, err := os.ReadFile(found[0]); err != nil || !bytes.HasPrefix(b, []byte(begin)) {
				t.Errorf("%s begins with %.8q: %v", found[0], b, err)
			}
		}
	}
}

// checkCannotWrite: the error names the flag and the path when a file cannot be created.
func checkCannotWrite(t *testing.T, dir string) {
	t.Helper()
	for flag, place := range map[string]string{"--html": "/nonexistent/a.html", "--svg": "/dev/null/plots", "--png": "/dev/null/plots"} {
		if code, _, stderr := call("report", flag, place, dir); code != ExitFailed || !strings.Contains(stderr, flag+": ") || !strings.Contains(stderr, "/dev/null") && !strings.Contains(stderr, place) {
			t.Errorf("report %s %s: code %d, %q", flag, place, code, stderr)
		}
	}
}

// checkFiles compares the files of --out with the report.
func checkFiles(t *testing.T, dir string, rep *report.Report, probes int) {
	t.Helper()
	for _, name := range []string{"report.html", "table.txt", "results.csv", "results.json"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	code, out, stderr := call("report", "--format", "json", dir)
	var again report.Report
	if err := json.Unmarshal([]byte(out), &again); err != nil || code == ExitFailed {
		t.Fatalf("report: code %d, %v, %s", code, err, stderr)
	}
	if again.Verdict != rep.Verdict || len(again.Rows) != len(rep.Rows) {
		t.Errorf("regenerated: %s with %d rows, first %s with %d", again.Verdict, len(again.Rows), rep.Verdict, len(rep.Rows))
	}
	checkPlots(t, dir)
	checkCannotWrite(t, dir)
	var acked, records int64
	for _, c := range rep.Checks {
		acked += c.Acked
	}
	ids := map[string]bool{}
	for i := range probes {
		name := filepath.Join(dir, "ledger-"+string(rune('A'+i))+".bin")
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ledger.Read(f, func(h ledger.Header, r ledger.Record) error {
			records++
			ids[h.ID.ClOrdID(r.Index)] = true
			if r.Fate != load.Acked || r.Seq == 0 || r.Epoch == 0 || r.Created > r.Sent || r.Sent > r.Ended {
				return errors.New("odd record")
			}
			return nil
		})
		if err := errors.Join(err, f.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if records != acked || int64(len(ids)) != acked {
		t.Errorf("ledgers have %d records and %d ClOrdIDs, %d orders were acknowledged", records, len(ids), acked)
	}
	code, csv, _ := call("ledger", filepath.Join(dir, "ledger-A.bin"))
	if code != ExitOK || !strings.Contains(csv, ",acked,p0,") {
		t.Errorf("ledger as CSV: code %d, %.200s", code, csv)
	}
}

func TestRunRefusesTheWrongGrid(t *testing.T) {
	g := testgrid.Start(t, testgrid.Options{Replicas: 1, MemoryMiB: 128})
	t.Setenv("NO_COLOR", "1")
	start := time.Now()
	code, _, stderr := call("run", "--scenario", "stac-pair", "--quick", "--endpoint", g.Endpoints[0])
	if code != ExitFailed || !strings.Contains(stderr, "stac-pair needs a grid with 1 shard(s), 2 partitions or more and replicas 2") {
		t.Errorf("code %d after %v: %s", code, time.Since(start), stderr)
	}
}

func TestNoProcessStaysBehind(t *testing.T) {
	g := testgrid.Start(t, testgrid.Options{MemoryMiB: 128})
	if err := g.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range g.PIDs {
		if _, err := os.Stat(filepath.Join("/proc", jsonInt(pid))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
}

func jsonInt(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// Two pods and an operator: the pods meet at startAt, their results merge into one report. The API
// server is a stand-in for two ConfigMaps; the suites in e2e use the real one.
func TestPodsMeetAndMerge(t *testing.T) {
	merged := podsMeet(t)
	if a, b := merged.Probes[0].Steps[0].StartedNs, merged.Probes[1].Steps[0].StartedNs; a-b > int64(100*time.Millisecond) || b-a > int64(100*time.Millisecond) {
		t.Errorf("the pods' first steps were intended %d ns apart", a-b)
	}
}

// podsMeet runs stac-pair by two pods before one grid, with further flags, and returns what they measured.
func podsMeet(t *testing.T, flags ...string) *report.Result {
	t.Helper()
	g := testgrid.Start(t, testgrid.Options{MemoryMiB: 128})
	api := &configMaps{data: map[string]map[string]string{}}
	srv := httptest.NewServer(api)
	defer srv.Close()
	var pods sync.WaitGroup
	codes, errs := make([]int, 2), make([]string, 2)
	for i := range 2 {
		pods.Go(func() {
			codes[i], _, errs[i] = call(append([]string{"pod", "--probe", "pair", "--index", jsonInt(i), "--scenario", "stac-pair", "--rates", "200", "--repeats", "2",
				"--warmup", "200ms", "--measure", "800ms", "--endpoint", strings.Join(g.Endpoints, ","), "--metrics", strings.Join(g.HTTP, ","),
				"--api-server", srv.URL, "--namespace", "trading", "--account-dir", t.TempDir(), "--shared-cores", "--http", "127.0.0.1:0"}, flags...)...)
		})
	}
	for deadline := time.Now().Add(time.Minute); api.get("pair-0", "ready") == "" || api.get("pair-1", "ready") == ""; {
		if time.Now().After(deadline) {
			t.Fatal("the pods did not become ready")
		}
		time.Sleep(10 * time.Millisecond)
	}
	api.set("pair-run", "startAt", time.Now().Add(500*time.Millisecond).UTC().Format(time.RFC3339Nano))
	pods.Wait()
	var results []*report.Result
	for i, name := range []string{"pair-0", "pair-1"} {
		if codes[i] != ExitOK {
			t.Fatalf("pod %d: exit code %d: %s %s", i, codes[i], errs[i], api.get(name, "error"))
		}
		r, err := report.ParseResult([]byte(api.get(name, "result.json")))
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	merged, err := report.Merge(results...)
	if err != nil {
		t.Fatal(err)
	}
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	rep, err := report.New(d, merged)
	if err != nil {
		t.Fatal(err)
	}
	checkCounts(t, rep, 2, 2)
	return merged
}

// A pod that cannot run writes the reason to its ConfigMap.
func TestPodReportsFailure(t *testing.T) {
	api := &configMaps{data: map[string]map[string]string{}}
	srv := httptest.NewServer(api)
	defer srv.Close()
	code, _, _ := call("pod", "--probe", "pair", "--index", "0", "--scenario", "stac-pair", "--quick", "--endpoint", "127.0.0.1:1",
		"--api-server", srv.URL, "--namespace", "trading", "--account-dir", t.TempDir(), "--http", "")
	if code != ExitFailed || !strings.Contains(api.get("pair-0", "error"), "127.0.0.1:1") {
		t.Errorf("code %d, error key %q", code, api.get("pair-0", "error"))
	}
}

type configMaps struct {
	mu   sync.Mutex
	data map[string]map[string]string
}

func (c *configMaps) get(name, key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data[name][key]
}

func (c *configMaps) set(name, key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data[name] = map[string]string{key: value}
}

func (c *configMaps) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := filepath.Base(r.URL.Path)
	var m struct {
		Data map[string]string `json:"data"`
	}
	if r.Method == http.MethodPatch {
		var body bytes.Buffer
		if _, err := body.ReadFrom(r.Body); err != nil || json.Unmarshal(body.Bytes(), &m) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.data[name] = m.Data
	}
	data, ok := c.data[name]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	m.Data = data
	_ = json.NewEncoder(w).Encode(m)
}
