package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// The host has routes to pods and services, so it is no place to try how clients
// outside of the cluster get in. A command that runs outside gets a network of its own:
// one interface on the machines' network, with no route to anything else.

// Addresses of commands that run outside at the same time, on the machines' network.
const (
	firstOutside = 200
	maxOutside   = 32
)

func (p *Plan) outsideAddr(n int) netip.Addr { return p.addr(0, firstOutside+n) }

// RunOutside runs a command with the caller's terminal and environment.
func (c *Cluster) RunOutside(ctx context.Context, args []string) error {
	plan, err := c.load()
	if err != nil {
		return err
	}
	number, unlock, err := outsideNumber(filepath.Join(plan.State, "outside"))
	if err != nil {
		return err
	}
	defer unlock()
	// The shell waits for its network before it becomes the command.
	ready, release, err := os.Pipe()
	if err != nil {
		return err
	}
	defer release.Close() //nolint:errcheck // the command has the other end
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `read -r _ <&3 && exec 3<&- && exec "$@"`, "outside"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{ready}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if err := errors.Join(cmd.Start(), ready.Close()); err != nil {
		return err
	}
	err = ipBatch(ctx, 0, []string{fmt.Sprintf("link add link %s name eth0 netns %d type macvlan mode bridge", plan.hostLink(), cmd.Process.Pid)})
	if err == nil {
		err = ipBatch(ctx, cmd.Process.Pid, []string{"link set lo up", "addr add " + onBridge(plan.outsideAddr(number)) + " dev eth0", "link set eth0 up"})
	}
	if err == nil {
		_, err = release.WriteString("\n")
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("network of a command outside: %w", err)
	}
	return cmd.Wait()
}

// outsideNumber takes the lowest number that no other command has, until unlock.
func outsideNumber(dir string) (number int, unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, nil, err
	}
	for n := range maxOutside {
		file, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(n)), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return 0, nil, err
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			return n, func() { file.Close() }, nil
		}
		file.Close()
	}
	return 0, nil, fmt.Errorf("%d commands run outside already", maxOutside)
}
