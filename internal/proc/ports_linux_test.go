package proc

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A port that a node was given and did not listen on yet was assigned to another process as an
// ephemeral one: the node found it taken and the grid did not start.
func TestPortsAreKept(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			var p HeldPorts
			defer p.Release()
			mine, err := p.Take(host, 0)
			if host == "::1" && err != nil {
				t.Skip("this machine has no IPv6 loopback")
			}
			if err != nil {
				t.Fatal(err)
			}
			refusedToStrangers(t, host, mine)
			for range 2 { // started, and started again
				ln, err := net.Listen("tcp", mine)
				if err != nil {
					t.Fatalf("the node cannot listen on its port: %v", err)
				}
				if other, err := net.Listen("tcp", mine); err == nil {
					t.Errorf("two listen on %s: %v", mine, other.Close())
				}
				if _, err := p.Take(host, ln.Addr().(*net.TCPAddr).Port); err == nil || !strings.Contains(err.Error(), "is not free: address already in use") {
					t.Errorf("a port in use was returned: %v", err)
				}
				_ = ln.Close()
				refusedToStrangers(t, host, mine)
			}
		})
	}
}

// refusedToStrangers asks the kernel for any port out of a range that is only the reserved port, to
// listen and to connect.
func refusedToStrangers(t *testing.T, host, kept string) {
	t.Helper()
	at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(kept))
	only := func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_LOCAL_PORT_RANGE, at.Port<<16|at.Port)
		}); e != nil {
			return e
		}
		return err
	}
	ln, err := (&net.ListenConfig{Control: only}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if errors.Is(err, unix.ENOPROTOOPT) {
		t.Skip("a kernel before 6.3 cannot be asked for a port out of a range")
	}
	if err == nil {
		t.Errorf("%s was assigned to a listener: %v", kept, ln.Close())
	} else if !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("listen: %v", err)
	}
	server, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	c, err := (&net.Dialer{Control: only}).DialContext(t.Context(), "tcp", server.Addr().String())
	if err == nil {
		t.Errorf("%s was assigned to a client: %v", kept, c.Close())
	} else if !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("connect: %v", err)
	}
}
