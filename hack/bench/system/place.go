package system

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
)

// Role is the role of a process; it decides the namespace.
type Role int

// Roles of processes.
const (
	Client Role = iota
	Primary
	Backup
	Third // a shard of three
	roles
)

func (r Role) String() string { return [...]string{"client", "primary", "backup", "third"}[r] }

// Place is where processes run.
type Place interface {
	// Name is the first word of a case's name: "lo" or "ns".
	Name() string
	// IP a server of that role listens on.
	IP(Role) string
	// Command is exec.Command for a process of that role.
	Command(r Role, name string, args ...string) *exec.Cmd
	// Listen opens a listener of this process that servers can reach.
	Listen() (net.Listener, error)
	// Dial connects to a server from this process.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Close removes what was made.
	Close() error
}

// Loopback is 127.0.0.1 of this machine.
type Loopback struct{}

// Name implements Place.
func (Loopback) Name() string { return "lo" }

// IP implements Place.
func (Loopback) IP(Role) string { return "127.0.0.1" }

// Command implements Place.
func (Loopback) Command(_ Role, name string, args ...string) *exec.Cmd {
	return exec.Command(name, args...)
}

// Listen implements Place.
func (Loopback) Listen() (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
}

// Dial implements Place.
func (Loopback) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Close implements Place.
func (Loopback) Close() error { return nil }

// Address is "ip:port" for a server: the usual port in a namespace of its own, a
// free one where all share the machine's loopback.
func Address(at Place, r Role, usual int) (string, error) {
	if _, shared := at.(Loopback); !shared {
		return net.JoinHostPort(at.IP(r), strconv.Itoa(usual)), nil
	}
	ln, err := at.Listen()
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

// Missing returns why namespaces cannot be made here; "" if they can.
func Missing() string {
	if os.Geteuid() != 0 {
		return "network namespaces need root"
	}
	for _, tool := range [][2]string{{"ip", "iproute2"}, {"nsenter", "util-linux"}} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			return fmt.Sprintf("network namespaces need the program %s (apt-get install %s)", tool[0], tool[1])
		}
	}
	return ""
}
