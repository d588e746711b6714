package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/proc"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

func TestDrillUsage(t *testing.T) {
	t.Setenv(api.TokenVariable, "")
	if code, _, stderr := call("drill", "--endpoint", "x:1"); code != ExitUsage || !strings.Contains(stderr, "$DRILL_TOKEN is empty") {
		t.Errorf("code %d, %s", code, stderr)
	}
	t.Setenv(api.TokenVariable, "secret")
	for want, args := range map[string][]string{
		"--endpoint: name the grid's client service": {},
		"--replicas 9: must be 1 to 3":               {"--endpoint", "x:1", "--replicas", "9"},
		"--max-orders 5: not one second":             {"--endpoint", "x:1", "--max-orders", "5"},
		"--http nowhere":                             {"--endpoint", "x:1", "--http", "nowhere"},
		"unknown command":                            {"now"},
	} {
		if code, _, stderr := call(append([]string{"drill"}, args...)...); code != ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: code %d, %s; want %q", args, code, stderr, want)
		}
	}
}

// A grid that does not exist: the program reports it and ends with 4.
func TestDrillWithoutAGrid(t *testing.T) {
	t.Setenv(api.TokenVariable, "secret")
	code, _, stderr := call("drill", "--endpoint", "127.0.0.1:1", "--patience", "1s", "--ttl", "0s", "--http", "127.0.0.1:0", "--dir", t.TempDir())
	if code != ExitFailed || !strings.Contains(stderr, "connect to [127.0.0.1:1]: not within 1s") {
		t.Errorf("code %d, %s", code, stderr)
	}
}

// order-probe drill on a real grid, driven over HTTP like the operator; then order-probe certify on
// its files, unmodified and tampered with.
func TestDrillAndCertify(t *testing.T) {
	g := testgrid.Start(t, testgrid.Options{MemoryMiB: 128})
	defer func() { _ = g.Stop() }()
	t.Setenv(api.TokenVariable, "secret")
	dir, address, authority := t.TempDir(), proc.PortForTest(t), newAuthority(t)
	ended := make(chan string, 1)
	go func() {
		code, out, stderr := call(append([]string{"drill", "--endpoint", g.Endpoints[0], "--replicas", "2", "--rate", "200", "--max-orders", "100000", "--gap-limit", "10s",
			"--http", address, "--node-port", "0", "--dir", dir, "--ttl", "0s", "--seed", "-7"}, secureFlags(t, authority)...)...)
		ended <- strings.Join([]string{string(rune('0' + code)), out, stderr}, "\n")
	}()
	c := api.NewClient("https://"+address, "secret", trusting(t, authority, drillUID))
	wait(t, c, func(s *api.State) bool { return s.Phase == api.Running && s.Counts.Acknowledged > 100 && s.Redundant })
	seen := api.Note{Witness: api.Witness{State: api.Seen, Message: "the primary moved"}}
	step := api.Step{Type: "HandOver", What: "nothing, really", Partitions: []string{"p0"}}
	if _, err := c.Begin(t.Context(), 0, step); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Begin(t.Context(), 0, api.Step{Type: "PodKill"}); err == nil || !strings.Contains(err.Error(), "409") {
		t.Errorf("another step under the same index: %v", err)
	}
	if _, err := c.Tell(t.Context(), 0, api.Recovered, seen); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tell(t.Context(), 0, api.Injected, api.Note{Witness: api.Witness{State: api.NotSeen}}); err != nil { // a witness that was seen stays seen
		t.Fatal(err)
	}
	for range 600 {
		if r, err := c.Step(t.Context(), 0); err != nil || r.Over {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := c.Finish(t.Context(), api.Finish{Context: api.Context{Drill: "ns/x", StepsAsked: 1}}); err != nil {
		t.Fatal(err)
	}
	if output := <-ended; output[0] != '0' || !strings.Contains(output, "verdict Pass") {
		t.Fatal(output)
	}
	certify(t, dir)
}

func wait(t *testing.T, c *api.Client, until func(*api.State) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		s, err := c.State(ctx)
		if err == nil && until(s) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("a minute passed: %+v, %v", s, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func certify(t *testing.T, dir string) {
	t.Helper()
	code, out, stderr := call("certify", dir)
	if code != ExitOK || !strings.Contains(out, "LOSS CERTIFICATE  PASS") || !strings.Contains(stderr, "agree") {
		t.Fatalf("certify: code %d, %s\n%s", code, stderr, out)
	}
	again := t.TempDir()
	code, out, _ = call("certify", "--format", "json", "--out", again, filepath.Join(dir, certificate.HistoryFile))
	var c certificate.Certificate
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != ExitOK || c.Verdict != certificate.Pass || c.Drill != "ns/x" {
		t.Errorf("certify --format json: code %d, %v, %+v", code, err, c.Verdict)
	}
	for _, name := range []string{certificate.JSONFile, certificate.TextFile, certificate.PageFile, certificate.SumsFile} {
		first, err1 := os.ReadFile(filepath.Join(dir, name))
		made, err2 := os.ReadFile(filepath.Join(again, name))
		if err1 != nil || err2 != nil || string(first) != string(made) {
			t.Errorf("%s regenerated differs: %v, %v", name, err1, err2)
		}
	}
	if code, out, _ := call("certify", "--format", "html", dir); code != ExitOK || !strings.HasPrefix(out, "<!doctype html>") || strings.Contains(out, "src=") || strings.Contains(out, "href=") {
		t.Errorf("certify --format html: code %d, %.100q", code, out)
	}
	if code, _, stderr := call("certify", "--format", "pdf", dir); code != ExitUsage || !strings.Contains(stderr, "there are table, json and html") {
		t.Errorf("certify --format pdf: code %d, %s", code, stderr)
	}
	path := filepath.Join(dir, certificate.JSONFile)
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(b), `"lost": 0`, `"lost": 1`, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call("certify", dir); code != ExitFailed || !strings.Contains(stderr, "is not what was certified") || !strings.Contains(stderr, "ledger") {
		t.Errorf("certify after a change: code %d, %s", code, stderr)
	}
	if code, _, stderr := call("certify", filepath.Join(dir, "none")); code != ExitFailed || !strings.Contains(stderr, "no such file") {
		t.Errorf("certify of nothing: code %d, %s", code, stderr)
	}
}
