package transport

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Connections that become idle at the same time are not probed at the same time.
func TestKeepAliveIsSpread(t *testing.T) {
	idle := map[int]int{}
	const sockets = 4 * keepSpread
	for range sockets {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(fd) }()
		tuneSocket(fd)
		on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE)
		if err != nil || on != 1 {
			t.Fatalf("SO_KEEPALIVE is %d: %v", on, err)
		}
		seconds, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
		if err != nil {
			t.Fatal(err)
		}
		idle[seconds]++
	}
	for seconds, n := range idle {
		if seconds < keepIdle || seconds >= keepIdle+keepSpread || n > sockets/4 {
			t.Errorf("%d of %d connections are probed after %d s; allowed: from %d to %d s, few at each", n, sockets, seconds, keepIdle, keepIdle+keepSpread-1)
		}
	}
}
