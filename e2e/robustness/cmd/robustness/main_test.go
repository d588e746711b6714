package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// call runs the command and returns its exit code and what it printed.
func call(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = w, w
	done := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, r)
		done <- b.String()
	}()
	code = run(t.Context(), args)
	os.Stdout, os.Stderr = stdout, stderr
	w.Close()
	return code, <-done
}

func TestUsage(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte(strings.Repeat("junk", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"list":             {[]string{"list"}, 0, "kill-primary"},
		"help":             {[]string{"--help"}, 0, "Exit codes: 0 pass, 1 violated or missed, 2 wrong usage, 3 invalid"},
		"unknown command":  {[]string{"flood"}, 2, "unknown command"},
		"unknown flag":     {[]string{"run", "--flood"}, 2, "unknown flag"},
		"scenario":         {[]string{"run", "--scenario", "flood"}, 2, `--scenario: value "flood", allowed: calm, kill-primary`},
		"scenario, target": {[]string{"run", "--scenario", "drain"}, 2, "--target is dev, allowed: cluster"},
		"target":           {[]string{"run", "--target", "moon"}, 2, `--target: value "moon", allowed: dev, cluster`},
		"rate":             {[]string{"run", "--rate", "0"}, 2, "--rate: value 0, allowed: 1..100000"},
		"sessions":         {[]string{"run", "--sessions", "99"}, 2, "--sessions: value 99"},
		"repeat":           {[]string{"run", "--repeat", "-1"}, 2, "--repeat: value -1"},
		"reads":            {[]string{"run", "--reads", "-1"}, 2, "--reads"},
		"replicas":         {[]string{"run", "--replicas", "1"}, 2, "--replicas: value 1, allowed: 2, 3"},
		"memory":           {[]string{"run", "--memory-mib", "1"}, 2, "--memory-mib: value 1"},
		"calm":             {[]string{"run", "--calm", "1ms"}, 2, "--calm: value 1ms, allowed: 100ms..1h"},
		"no program":       {[]string{"run", "--grid-node", "/nowhere/grid-node", "--out", t.TempDir()}, 3, "/nowhere/grid-node"},
		"validate nothing": {[]string{"validate"}, 2, "name the history.gz"},
		"validate no file": {[]string{"validate", "/nowhere"}, 3, "/nowhere"},
		"validate junk":    {[]string{"validate", junk}, 3, "allowed: a history that a drill or `robustness run` wrote"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, text := call(t, c.args...); code != c.code || !strings.Contains(text, c.want) {
				t.Fatalf("exit %d, want %d; printed %q, want %q", code, c.code, text, c.want)
			}
		})
	}
}
