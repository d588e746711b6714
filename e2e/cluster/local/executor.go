package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// An executor serves from outside the cluster's machines. Its process is noted
// beside its state, so that a teardown ends it and finds it if it does not end.

func executorProcess(state string) string { return filepath.Join(state, "executor", "process.json") }

// NoteExecutor records the calling process as the cluster's executor.
func (c *Cluster) NoteExecutor() error {
	start, err := startTime(os.Getpid())
	if err != nil {
		return err
	}
	content, err := json.Marshal(birth{PID: os.Getpid(), Start: start})
	if err != nil {
		return err
	}
	return writeFile(executorProcess(c.state), content, 0o644)
}

// executorPID is the executor's process, or 0.
func executorPID(state string) int { return livePID(executorProcess(state)) }

// stopExecutor ends the executor. What it did to machines and pods goes with
// them.
func stopExecutor(state string) error {
	pid := executorPID(state)
	for deadline := time.Now().Add(10 * time.Second); pid != 0 && executorPID(state) == pid; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("the executor, process %d, does not die", pid)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("ending the executor, process %d: %w", pid, err)
		}
	}
	return nil
}
