package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestUsageErrors checks that errors of a command line are reported before
// anything is done.
func TestUsageErrors(t *testing.T) {
	for _, c := range []struct{ line, says string }{
		{"up --cluster minikube", `"minikube"; use current, kind, local`},
		{"up extra", "extra"},
		{"up --nodes many", "many"},
		{"node kill", "accepts 1 arg"},
		{"node cut --cluster current xeon-1", "use CLUSTER=local"},
		{"status --leaks --cluster current", "for local clusters"},
		{"load", "requires at least 1 arg"},
		{"exec xeon-1", "requires at least 2 arg"},
		{"image build", "name an image or give --all"},
		{"image build missing", `no image "missing"; there are grid-link, grid-node, grid-sink, operator, order-gateway, order-probe, and for tests grid-node-faulty`},
		{"executor serve --cluster current", "use CLUSTER=local"},
		{"executor faults extra", "extra"},
		{"supervise", "not by hand"},
		{"destroy", "unknown command"},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Setenv("CLUSTER", "")
			root := newRoot()
			root.SetArgs(strings.Fields(c.line))
			var out bytes.Buffer
			root.SetOut(&out)
			root.SetErr(&out)
			err := root.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want one saying %q", err, c.says)
			}
		})
	}
}

// TestEveryCommandIsExplained keeps help worth reading.
func TestEveryCommandIsExplained(t *testing.T) {
	for _, cmd := range newRoot().Commands() {
		if cmd.Short == "" && !cmd.Hidden {
			t.Errorf("%s has no description", cmd.Name())
		}
	}
}
