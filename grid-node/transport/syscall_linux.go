package transport

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollWait sleeps without notifying the scheduler; see the package comment.
func epollWait(epfd int, events []unix.EpollEvent, timeoutMS int) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd),
		uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(timeoutMS), 0, 0)
	return int(n), errno
}

func recv(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

func send(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

func signalEventfd(fd int) {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	_, _ = unix.Write(fd, b[:]) // EAGAIN means it is signalled already
}

func drainEventfd(fd int) {
	var b [8]byte
	_, _, _ = syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 8)
}

// setTimer makes fd readable once, after ns; not before.
func setTimer(fd int, ns int64) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(ns)}
	_, _, _ = syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(fd), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}

// Keep-alive probes: the first one after keepIdle to keepIdle + keepSpread - 1 seconds without data, by descriptor. The
// kernel fires timers of that length together, half a second's worth of them, and its queue for packets that do not leave
// the machine, or go through a pod's veth, has room for 1,000: probes of ten thousand connections that became idle at the
// same time were dropped there, three times in a row, and the kernel ended the connections.
const (
	keepIdle     = 15 // seconds
	keepSpread   = 16
	keepInterval = 5 // seconds between further probes
	keepProbes   = 4 // without an answer: the connection is lost
)

// tuneSocket sets the options of every connection: no Nagle delay, and keep-alive probes
// to detect a peer that vanished silently. Errors are ignored: the connection works
// without.
func tuneSocket(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepIdle+fd%keepSpread)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepInterval)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepProbes)
}

// dupListener duplicates the descriptor of a net listener.
func dupListener(ln *net.TCPListener) (int, error) {
	raw, err := ln.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var dupErr error
	if err := raw.Control(func(p uintptr) {
		fd, dupErr = unix.FcntlInt(p, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return -1, err
	}
	if dupErr != nil {
		return -1, fmt.Errorf("duplicate the listener: %w", dupErr)
	}
	return fd, nil
}

// startConnect starts a non-blocking connect, from source if that is valid and of the same
// family.
func startConnect(ap netip.AddrPort, source netip.Addr) (int, error) {
	domain := unix.AF_INET
	if !ap.Addr().Unmap().Is4() {
		domain = unix.AF_INET6
	}
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	if source.IsValid() && source.Unmap().Is4() == ap.Addr().Unmap().Is4() {
		// The port is chosen by connect, when the other end is known: bound ones run out.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		if err := unix.Bind(fd, sockaddr(netip.AddrPortFrom(source, 0))); err != nil {
			_ = unix.Close(fd)
			return -1, fmt.Errorf("bind to %s: %w", source, err)
		}
	}
	if err := unix.Connect(fd, sockaddr(ap)); err != nil && err != unix.EINPROGRESS {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// resolve returns the first address of "host:port"; IPv4 first, as pods have it.
func resolve(addr string, timeout time.Duration) (netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q: port %q: a number from 1 to 65535 is needed", addr, service)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	best := ips[0].Unmap()
	for _, ip := range ips {
		if ip.Unmap().Is4() {
			best = ip.Unmap()
			break
		}
	}
	return netip.AddrPortFrom(best, uint16(port)), nil
}

func sockaddr(ap netip.AddrPort) unix.Sockaddr {
	if addr := ap.Addr().Unmap(); addr.Is4() {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: addr.As4()}
	}
	return &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}
}

func sockaddrAddr(sa unix.Sockaddr) net.Addr {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)))
	case *unix.SockaddrInet6:
		return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port)))
	}
	return nil
}
