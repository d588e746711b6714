package floor

import (
	"fmt"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Raw system calls: the goroutine keeps its P while it waits, see
// grid-node/transport for why that is safe.

func epollWait(epfd int, events []unix.EpollEvent) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), ^uintptr(0), 0, 0)
	return int(n), errno
}

func recv(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

func send(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

func sockaddr(ap netip.AddrPort) unix.Sockaddr {
	if a := ap.Addr().Unmap(); a.Is4() {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: a.As4()}
	}
	return &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}
}

func socket(ap netip.AddrPort) (int, error) {
	domain := unix.AF_INET
	if !ap.Addr().Unmap().Is4() {
		domain = unix.AF_INET6
	}
	return unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

// listen returns a non-blocking listener and the port it got.
func listen(address string) (fd int, bound netip.AddrPort, err error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return -1, bound, err
	}
	if fd, err = socket(ap); err != nil {
		return -1, bound, fmt.Errorf("socket: %w", err)
	}
	if err = unix.Bind(fd, sockaddr(ap)); err == nil {
		err = unix.Listen(fd, 1024)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	var sa unix.Sockaddr
	if err == nil {
		sa, err = unix.Getsockname(fd)
	}
	if err != nil {
		unix.Close(fd)
		return -1, bound, fmt.Errorf("listen on %s: %w", address, err)
	}
	port := 0
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		port = a.Port
	case *unix.SockaddrInet6:
		port = a.Port
	}
	return fd, netip.AddrPortFrom(ap.Addr(), uint16(port)), nil
}

func dial(address string) (int, error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return -1, err
	}
	fd, err := socket(ap)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	if err := unix.Connect(fd, sockaddr(ap)); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("connect to %s: %w", address, err)
	}
	return fd, noDelay(fd)
}

func noDelay(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) }
