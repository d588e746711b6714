package local

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/internal/pki"
)

// run executes a command and returns its standard output; an error carries
// the command line and its output.
func run(ctx context.Context, stdin io.Reader, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// enter returns the arguments of nsenter that run args inside the machine whose
// first process is pid, as a shell on that machine would.
func enter(pid int, args ...string) []string {
	return append([]string{"-t", strconv.Itoa(pid), "-m", "-u", "-i", "-n", "-p", "--"}, args...)
}

// runIn runs a command inside a machine.
func runIn(ctx context.Context, pid int, stdin io.Reader, args ...string) (string, error) {
	return run(ctx, stdin, "nsenter", enter(pid, args...)...)
}

// ipBatch runs "ip" commands, one a line, in the network namespace of pid, or
// in the host's own for pid 0.
func ipBatch(ctx context.Context, pid int, lines []string) error {
	args := []string{"ip", "-batch", "-"}
	if pid != 0 {
		args = append([]string{"nsenter", "-t", strconv.Itoa(pid), "-n", "--"}, args...)
	}
	_, err := run(ctx, strings.NewReader(strings.Join(lines, "\n")+"\n"), args[0], args[1:]...)
	if err != nil {
		return fmt.Errorf("%w\nof: %s", err, strings.Join(lines, "; "))
	}
	return nil
}

// flock takes an exclusive lock, waiting for its holder. The file may be
// removed by its last holder.
func flock(path string) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		// Someone may have removed it while we waited: the next comer would
		// lock another file of that name.
		held, err := file.Stat()
		if err == nil {
			if named, err := os.Stat(path); err == nil && os.SameFile(held, named) {
				return func() { file.Close() }, nil
			}
		}
		file.Close()
	}
}

// writeFile writes through a temporary name, so that a crash leaves either the
// old file or the new.
func writeFile(path string, content []byte, mode os.FileMode) error {
	return pki.WriteFile(path, content, mode)
}
