package devgrid

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	g, err := parse([]byte(`{"grid":"dev","endpoints":["127.0.0.1:1","127.0.0.1:2"],"arbiter":"http://x","pids":[7,8],"http":["http://127.0.0.1:3"],"ready_ms":5}`))
	if err != nil || len(g.Endpoints) != 2 || g.PIDs[1] != 8 || g.HTTP[0] != "http://127.0.0.1:3" {
		t.Errorf("%+v, %v", g, err)
	}
	for _, bad := range []string{"", "ready", "{}", `{"endpoints":"x"}`} {
		if _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

// A grid that does not come up returns its output, and leaves nothing behind.
func TestStartReportsTrouble(t *testing.T) {
	program := filepath.Join(t.TempDir(), "grid-node")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho 'port 7400 is taken' >&2\nexit 1\n"), 0o755); err != nil { //nolint:gosec // a test program
		t.Fatal(err)
	}
	_, err := Start(context.Background(), Options{Program: program, Shards: 1, Replicas: 2, MemoryMiB: 64})
	if err == nil || !strings.Contains(err.Error(), "before it was ready") {
		t.Errorf("got %v", err)
	}
	if _, err := Start(context.Background(), Options{Program: filepath.Join(t.TempDir(), "absent")}); err == nil {
		t.Error("a missing program was started")
	}
}
