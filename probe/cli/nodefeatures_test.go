package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/nodefeatures"
)

func TestNodeFeatures(t *testing.T) {
	if _, err := nodefeatures.Probe(""); err != nil {
		t.Skip(err)
	}
	log := filepath.Join(t.TempDir(), "termination-log")
	if err := os.WriteFile(log, []byte(strings.Repeat("old ", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call("node-features", "--node", "n7", "--termination-log", log)
	if code != ExitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	words, err := os.ReadFile(log)
	if err != nil || string(words)+"\n" != stdout {
		t.Errorf("termination message %q, %v; output %q", words, err, stdout)
	}
	var r nodefeatures.Report
	if err := json.Unmarshal(words, &r); err != nil || r.Node != "n7" || len(r.Features) != len(nodefeatures.Names()) {
		t.Errorf("%+v, %v", r, err)
	}
	// Outside of Kubernetes there is no such file, and none is created.
	missing := log + ".none"
	if code, _, stderr := call("node-features", "--termination-log", missing); code != ExitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a termination log was created")
	}
	if code, _, _ := call("node-features", "n7"); code != ExitUsage {
		t.Errorf("an argument: exit code %d", code)
	}
}
