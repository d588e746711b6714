package packets

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Namespace is the network namespace of a process.
type Namespace struct {
	// PID is a process in it, numbered as this process sees it.
	PID int
}

func (n Namespace) path() string { return "/proc/" + strconv.Itoa(n.PID) + "/ns/net" }

// run executes a command in the namespace.
func (n Namespace) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + n.path(), "--"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("in the network of process %d: %s: %w: %s", n.PID, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// do calls f on a thread inside the namespace, for the sockets f makes to be
// of it.
func (n Namespace) do(f func() error) error {
	target, err := os.Open(n.path())
	if err != nil {
		return err
	}
	defer target.Close()
	result := make(chan error)
	go func() {
		// The thread is not unlocked: it ends with the goroutine, and nothing
		// else ever runs in this namespace by mistake.
		runtime.LockOSThread()
		if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- fmt.Errorf("entering the network of process %d: %w", n.PID, err)
			return
		}
		result <- f()
	}()
	return <-result
}
