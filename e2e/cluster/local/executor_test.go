package local

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestDownEndsTheExecutor has a teardown end the process that was noted, and
// no other that has got its number.
func TestDownEndsTheExecutor(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a cluster is taken down by root: run it as root")
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	c, err := New(t.TempDir(), os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := stopExecutor(c.state); err != nil {
		t.Errorf("where none was ever noted: %v", err)
	}
	if err := os.MkdirAll(c.ExecutorDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.NoteExecutor(); err != nil || executorPID(c.state) != os.Getpid() {
		t.Fatalf("noted %d: %v", executorPID(c.state), err)
	}
	other := exec.Command("sleep", "300")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- other.Wait() }()
	note := func(start uint64) {
		content, err := json.Marshal(birth{PID: other.Process.Pid, Start: start})
		if err == nil {
			err = writeFile(executorProcess(c.state), content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	start, err := startTime(other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	note(start + 1) // the executor ended, and its number was given to another
	if err := stopExecutor(c.state); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		t.Fatalf("another process was ended: %v", err)
	default:
	}
	note(start)
	if left := strings.Join(c.Leaks(t.Context()), "\n"); !strings.Contains(left, "executor ") {
		t.Errorf("the executor is not among what is left: %s", left)
	}
	if err := c.Down(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the executor ended by itself")
	}
}
