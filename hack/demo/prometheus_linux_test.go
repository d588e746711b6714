package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

func TestStopWatching(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "watch")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	note := func(pid string) {
		t.Helper()
		if err := os.WriteFile(watchFile(dir), []byte(pid), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what, program string, was bool, fails bool) {
		t.Helper()
		if got, err := stopWatching(dir, program); got != was || (err != nil) != fails {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	want("nothing was started", program, false, false)
	note("none")
	want("no number", program, false, true)
	note("-1") // would be all processes
	want("a number that is no process", program, false, true)
	note(strconv.Itoa(cmd.Process.Pid))
	want("the process of another program", filepath.Join(dir, "other"), false, false)
	select {
	case err := <-ended:
		t.Fatalf("the process of another program was ended: %v", err)
	default:
	}
	note(strconv.Itoa(cmd.Process.Pid))
	want("the one", program, true, false)
	<-ended
	want("again", program, false, false)
}
