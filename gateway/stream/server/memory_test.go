package server

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/internal/race"
)

// maskedText is a frame of a client.
func maskedText(text string) []byte {
	b := ws.AppendFrame(nil, ws.Text, []byte(text))
	at := len(b) - len(text)
	b[1] |= 0x80
	return append(append(append([]byte{}, b[:at]...), 0, 0, 0, 0), b[at:]...)
}

func heapOf() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// An idle client with five subscriptions takes little memory. What this measures has the test's own end of each connection
// in it.
func TestMemoryOfAClient(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	const (
		clients = 1000
		most    = 3400 // 2,900 on amd64, of which some 350 are the test's end
	)
	s, addr := start(t, transport.KindAuto, func(c *Config) { c.MaxClients, c.MaxOfOne, c.MaxUnknown = 2*clients, 2*clients, 2*clients })
	opening := []byte("GET /stream?topics=%3E HTTP/1.1\r\nHost: " + addr + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: " + Binary + "\r\n\r\n")
	ours := make([]net.Conn, 0, clients)
	t.Cleanup(func() {
		for _, c := range ours {
			_ = c.Close()
		}
	})
	connect := func(n int, subscriptions int) {
		for i := range n {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			ours = append(ours, c)
			if _, err := c.Write(opening); err != nil {
				t.Fatal(err)
			}
			for k := range subscriptions {
				if _, err := c.Write(maskedText(fmt.Sprintf(`{"op":"subscribe","id":%d,"topics":"orders.*.S%d.>"}`, k, (i*5+k)%100))); err != nil {
					t.Fatal(err)
				}
			}
		}
		for ready := false; !ready; {
			s.Do(func(h *fanout.Hub) {
				ready = h.Stats().Subscriptions == len(ours)*subscriptions && len(s.lent) == 0 && len(s.clients) == len(ours)
			})
		}
	}
	connect(10, 5)
	before := heapOf()
	connect(clients, 5)
	all := float64(heapOf()-before) / clients
	t.Logf("%.0f bytes a client", all)
	if all > most {
		t.Errorf("a client takes %.0f bytes of heap, want at most %d", all, most)
	}
}
