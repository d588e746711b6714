package transport

import (
	"net"
	"net/netip"
	"syscall"
	"time"
)

// SocketInfo is the kernel's state of a connection when requested.
type SocketInfo struct {
	Local, Remote netip.AddrPort
	TCP           *TCPInfo // nil where the kernel does not report it
}

// TCPInfo is the part of Linux's struct tcp_info (tcp(7)) about the path between the two
// ends.
type TCPInfo struct {
	State         string        // as in RFC 9293: "ESTABLISHED", "FIN-WAIT-1", …
	RTT, RTTVar   time.Duration // smoothed round trip and its mean deviation
	MinRTT        time.Duration // lowest round trip of the last minutes
	RTO           time.Duration // retransmission timeout
	Retransmits   uint64        // segments retransmitted since the connection was opened
	DSACKDups     uint64        // times the other end reported a duplicate segment
	OutOfOrder    uint64        // segments received before one that was sent earlier
	SegsOut       uint64        // segments sent, including retransmissions
	SegsIn        uint64        // segments received
	Unacked       uint64        // segments in flight
	NotSent       uint64        // bytes the kernel holds and has not sent yet
	BytesAcked    uint64        // that the other end's kernel has received
	BytesReceived uint64
	LastSent      time.Duration // age of the last data sent, in whole milliseconds
	LastReceived  time.Duration // age of the last data received, likewise
	LastAck       time.Duration // age of the last acknowledgement received, likewise
}

// Socket asks the kernel. It costs some system calls: for status pages, not for the path
// of a frame. On the loop only.
func (c *Conn) Socket() (SocketInfo, error) {
	if !c.open || c.closed {
		return SocketInfo{}, ErrClosed
	}
	info, err := c.sock.info()
	if !info.Remote.IsValid() { // the kernel has forgotten it after a reset
		info.Remote, _ = netip.ParseAddrPort(c.remote)
	}
	return info, err
}

func (s *netSocket) info() (SocketInfo, error) {
	info := SocketInfo{}
	if a, ok := s.nc.LocalAddr().(*net.TCPAddr); ok {
		info.Local = unmapped(a.AddrPort())
	}
	if a, ok := s.nc.RemoteAddr().(*net.TCPAddr); ok {
		info.Remote = unmapped(a.AddrPort())
	}
	sc, ok := s.nc.(syscall.Conn)
	if !ok {
		return info, nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return info, err
	}
	if ctl := raw.Control(func(fd uintptr) { info.TCP, err = tcpInfo(int(fd)) }); ctl != nil {
		err = ctl
	}
	return info, err
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
