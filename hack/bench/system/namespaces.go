package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/internal/proc"
)

// Namespaces are one network namespace per role and one that holds the bridge
// between them. They have no names: each lives as long as a process that does
// nothing but hold it, so that nothing is left whatever becomes of us.
type Namespaces struct {
	bridge  *proc.Process
	holders [roles]*proc.Process
}

// Subnet of the bridge: documentation addresses (RFC 5737), which no route of
// the machine leads to.
const subnet = "192.0.2."

func ip(r Role) string { return subnet + strconv.Itoa(10+int(r)) }

// bridgeIP is what this process listens on for servers.
const bridgeIP = subnet + "1"

// NewNamespaces makes them.
func NewNamespaces(ctx context.Context) (*Namespaces, error) {
	n := &Namespaces{}
	err := n.make(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make network namespaces: %w", err), n.Close())
	}
	return n, nil
}

func (n *Namespaces) make(ctx context.Context) (err error) {
	if n.bridge, err = hold("bridge"); err != nil {
		return err
	}
	lines := []string{
		"link set lo up", "link add bridge type bridge", "addr add " + bridgeIP + "/24 dev bridge", "link set bridge up",
	}
	for r := range roles {
		if n.holders[r], err = hold(r.String()); err != nil {
			return err
		}
		lines = append(lines,
			fmt.Sprintf("link add %s type veth peer name eth0 netns %d", r, n.holders[r].PID()),
			fmt.Sprintf("link set %s master bridge", r), fmt.Sprintf("link set %s up", r))
	}
	if err := ipBatch(ctx, n.bridge.PID(), lines); err != nil {
		return err
	}
	for r := range roles {
		err := ipBatch(ctx, n.holders[r].PID(), []string{"link set lo up", "addr add " + ip(r) + "/24 dev eth0", "link set eth0 up"})
		if err != nil {
			return err
		}
	}
	return nil
}

// hold starts the process that a new namespace lives with.
func hold(name string) (*proc.Process, error) {
	cmd := exec.Command("sleep", "infinity")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	return proc.Start("holder of namespace "+name, cmd)
}

func ipBatch(ctx context.Context, pid int, lines []string) error {
	cmd := exec.CommandContext(ctx, "nsenter", "-t", strconv.Itoa(pid), "-n", "--", "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip -batch (%s): %w: %s", strings.Join(lines, "; "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Name implements Place.
func (n *Namespaces) Name() string { return "ns" }

// IP implements Place.
func (n *Namespaces) IP(r Role) string { return ip(r) }

// Command implements Place. nsenter replaces itself by the program: the pid is the program's.
func (n *Namespaces) Command(r Role, name string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", strconv.Itoa(n.holders[r].PID()), "-n", "--", name}, args...)...)
}

// Listen implements Place: on the bridge.
func (n *Namespaces) Listen() (ln net.Listener, err error) {
	err = n.inside(func() (err error) {
		ln, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", bridgeIP+":0")
		return err
	})
	return ln, err
}

// Dial implements Place: from the bridge.
func (n *Namespaces) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = n.inside(func() (err error) {
		c, err = new(net.Dialer).DialContext(ctx, network, address) // one literal address: dialled on this goroutine
		return err
	})
	return c, err
}

// inside runs f on a thread that is in the bridge's namespace: a socket belongs
// to the namespace it was made in, whichever process uses it.
func (n *Namespaces) inside(f func() error) error {
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and its namespace with it.
		runtime.LockOSThread()
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", n.bridge.PID()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			_ = unix.Close(fd)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// Close removes the namespaces with all that is in them.
func (n *Namespaces) Close() error {
	for _, h := range n.holders {
		h.Kill()
	}
	n.bridge.Kill()
	return nil
}
