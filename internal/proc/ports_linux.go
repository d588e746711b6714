package proc

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// hold binds a socket and does not listen on it. With SO_REUSEADDR, which every listener of Go has,
// another socket may then bind and listen there if it asks for this port explicitly; the kernel
// does not assign the port as an ephemeral one, neither to listeners nor to clients.
func hold(host string, port int) (addr string, release func(), err error) {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return "", nil, err
	}
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: port, Addr: ip.As16()})
	if ip.Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: ip.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, err
	}
	got, err := bind(fd, to)
	if err != nil {
		_ = unix.Close(fd)
		return "", nil, err
	}
	return netip.AddrPortFrom(ip, got).String(), func() { _ = unix.Close(fd) }, nil
}

// bind returns the port of fd.
func bind(fd int, to unix.Sockaddr) (uint16, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, to); err != nil {
		return 0, err
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	if v4, ok := at.(*unix.SockaddrInet4); ok {
		return uint16(v4.Port), nil //nolint:gosec // the kernel's, 16 bits
	}
	return uint16(at.(*unix.SockaddrInet6).Port), nil //nolint:gosec // likewise
}
