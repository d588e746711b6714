package transport

import (
	"net/netip"
	"runtime"
	"testing"
)

// Every kind of connection reports the same: both addresses, and bytes counted by the
// kernel.
func TestSocketTellsWhatTheKernelKnows(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		opened := make(chan *Conn, 1)
		e := &echo{onOpen: func(c *Conn) { opened <- c }}
		c := dial(t, serve(t, kind, Config{}, e))
		accepted := within(t, opened)
		sent := frame("some bytes")
		exchange(t, c, sent, len(sent))
		var err error
		s := onLoop(t, e.loop, func() (s SocketInfo) { s, err = accepted.Socket(); return s })
		if err != nil {
			t.Fatal(err)
		}
		if local, remote := netip.MustParseAddrPort(c.RemoteAddr().String()), netip.MustParseAddrPort(c.LocalAddr().String()); s.Local != local || s.Remote != remote {
			t.Errorf("from %s to %s, want from %s to %s", s.Local, s.Remote, local, remote)
		}
		if runtime.GOOS != "linux" {
			return
		}
		if s.TCP == nil || s.TCP.State != "ESTABLISHED" || s.TCP.BytesReceived < uint64(len(sent)) || s.TCP.RTT <= 0 || s.TCP.RTO <= 0 {
			t.Errorf("TCP %+v", s.TCP)
		}
		_ = c.Close()
		_ = within(t, e.closed)
		if s := onLoop(t, e.loop, func() (s SocketInfo) { s, err = accepted.Socket(); return s }); err == nil {
			t.Errorf("of a closed connection it tells %+v", s)
		}
	})
}
