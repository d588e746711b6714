package transport

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls are raw, as all calls of a serving loop: see bootNanos.

func (s *epollSocket) info() (SocketInfo, error) {
	local, err := addrOf(unix.SYS_GETSOCKNAME, s.fd)
	if err != nil {
		return SocketInfo{}, err
	}
	remote, _ := addrOf(unix.SYS_GETPEERNAME, s.fd)
	tcp, err := tcpInfo(s.fd)
	return SocketInfo{Local: local, Remote: remote, TCP: tcp}, err
}

func (noSocket) info() (SocketInfo, error) { return SocketInfo{}, ErrClosed }

func addrOf(call uintptr, fd int) (netip.AddrPort, error) {
	var sa unix.RawSockaddrInet6 // the longer one of the two
	size := uint32(unix.SizeofSockaddrInet6)
	if _, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&sa)), uintptr(unsafe.Pointer(&size))); errno != 0 {
		return netip.AddrPort{}, fmt.Errorf("address of a socket: %w", errno)
	}
	// Ports are in network byte order at the same offset in both.
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&sa.Port))[:])
	switch sa.Family {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(&sa)).Addr), port), nil
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), port), nil
	}
	return netip.AddrPort{}, fmt.Errorf("address of a socket: family %d, allowed: IPv4, IPv6", sa.Family)
}

// tcpInfo reads TCP_INFO. An older kernel fills a part of the structure.
func tcpInfo(fd int) (*TCPInfo, error) {
	var t unix.TCPInfo
	size := uint32(unsafe.Sizeof(t))
	if _, _, errno := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&t)), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
		return nil, fmt.Errorf("TCP_INFO of a socket: %w", errno)
	}
	us := func(v uint32) time.Duration { return time.Duration(v) * time.Microsecond }
	ms := func(v uint32) time.Duration { return time.Duration(v) * time.Millisecond }
	return &TCPInfo{
		State: tcpState(t.State), RTT: us(t.Rtt), RTTVar: us(t.Rttvar), MinRTT: us(t.Min_rtt), RTO: us(t.Rto),
		Retransmits: uint64(t.Total_retrans), DSACKDups: uint64(t.Dsack_dups), OutOfOrder: uint64(t.Rcv_ooopack),
		SegsOut: uint64(t.Segs_out), SegsIn: uint64(t.Segs_in), Unacked: uint64(t.Unacked), NotSent: uint64(t.Notsent_bytes),
		BytesAcked: t.Bytes_acked, BytesReceived: t.Bytes_received,
		LastSent: ms(t.Last_data_sent), LastReceived: ms(t.Last_data_recv), LastAck: ms(t.Last_ack_recv),
	}, nil
}

// tcpStates by the kernel's numbers (TCP_ESTABLISHED is 1).
var tcpStates = [...]string{"", "ESTABLISHED", "SYN-SENT", "SYN-RECEIVED", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT", "CLOSED",
	"CLOSE-WAIT", "LAST-ACK", "LISTEN", "CLOSING", "NEW-SYN-RECEIVED"}

func tcpState(n uint8) string {
	if int(n) < len(tcpStates) && n > 0 {
		return tcpStates[n]
	}
	return fmt.Sprintf("state %d", n)
}
