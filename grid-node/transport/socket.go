package transport

import (
	"net"
	"net/netip"
	"syscall"
	"time"
)

// SocketInfo is what the kernel knows of a connection at the time it is asked.
type SocketInfo struct {
	Local, Remote netip.AddrPort
	TCP           *TCPInfo // nil where the kernel does not tell
}

// TCPInfo is the part of Linux's struct tcp_info (tcp(7)) that tells of the way
// between the two ends.
type TCPInfo struct {
	State         string        // as in RFC 9293: "ESTABLISHED", "FIN-WAIT-1", …
	RTT, RTTVar   time.Duration // smoothed round trip and its mean deviation
	MinRTT        time.Duration // lowest round trip of the last minutes
	RTO           time.Duration // time until what is not acknowledged is sent again
	Retransmits   uint64        // segments sent again since the connection stands
	DSACKDups     uint64        // times the other end said that a segment came twice
	OutOfOrder    uint64        // segments received before one that was sent earlier
	SegsOut       uint64        // segments sent, those sent again included
	SegsIn        uint64        // segments received
	Unacked       uint64        // segments on the way
	NotSent       uint64        // bytes the kernel holds and has not sent yet
	BytesAcked    uint64        // that the other end's kernel has received
	BytesReceived uint64
	LastSent      time.Duration // age of the last data sent, in whole milliseconds
	LastReceived  time.Duration // age of the last data received, likewise
	LastAck       time.Duration // age of the last acknowledgement received, likewise
}

// Socket asks the kernel. It costs some system calls: for a page that somebody
// asks for, not for the path of a frame. On the loop only.
func (c *Conn) Socket() (SocketInfo, error) {
	if !c.open || c.closed {
		return SocketInfo{}, ErrClosed
	}
	info, err := c.sock.info()
	if !info.Remote.IsValid() { // of a connection that was just reset the kernel has forgotten it
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
