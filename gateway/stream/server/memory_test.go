package server

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
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

// An idle client with five subscriptions takes little memory, before it is sent anything and after. What this measures has the
// test's own end of each connection in it.
func TestMemoryOfAClient(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes memory of its own")
	}
	const (
		clients = 1000
		most    = 1900 // 1,650 on amd64, of which some 350 are the test's end
		// What the server keeps for all clients together is 300 for each of so few.
		mostServed = most + 500
	)
	all, err := topics.ParsePattern(">")
	if err != nil {
		t.Fatal(err)
	}
	grant := &Grant{Client: "test", Topics: []topics.Pattern{all}} // of one entry of a file of clients
	s, addr := start(t, transport.KindAuto, func(c *Config) {
		c.MaxClients, c.MaxOfOne, c.MaxUnknown = 2*clients, 2*clients, 2*clients
		c.Admit = func(*http.Request, *x509.Certificate) (*Grant, error) { return grant, nil }
	})
	opening := []byte("GET /stream HTTP/1.1\r\nHost: " + addr + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: " + Binary + "\r\n\r\n")
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
				if _, err := c.Write(maskedText(fmt.Sprintf(`{"op":"subscribe","id":%d,"topics":"orders.*.S%d.>","flush_ms":20}`, k, (i*5+k)%100))); err != nil {
					t.Fatal(err)
				}
			}
		}
		for ready := false; !ready; {
			s.Do(func(h *fanout.Hub) {
				ready = h.Stats().Subscriptions == len(ours)*subscriptions && len(s.lent) == 0 && len(s.clients) == len(ours) && s.Transport().InputHeld == 0
			})
			time.Sleep(time.Millisecond)
		}
	}
	connect(10, 5)
	before := heapOf()
	connect(clients, 5)
	idle := float64(heapOf()-before) / clients
	t.Logf("%.0f bytes a client", idle)
	if idle > most {
		t.Errorf("a client takes %.0f bytes of heap, want at most %d", idle, most)
	}

	s.Do(func(h *fanout.Hub) {
		for i := range 100 * 20 {
			if err := h.Publish(&fanout.Message{At: fanout.Position{Seq: h.Last(0).Seq + 1}, Topic: fmt.Appendf(nil, "orders.A.S%d.buy", i%100), Payload: make([]byte, 100)}); err != nil {
				t.Error(err)
			}
		}
	})
	for rests := false; !rests; time.Sleep(time.Millisecond) {
		s.Do(func(h *fanout.Hub) {
			for range 20 {
				s.shrunk = 0
				s.shrink(int64(time.Hour))
			}
			st := h.Stats()
			rests = st.Waiting == 0 && st.Delivered+st.Dropped >= 20*5*clients && len(s.lent) == 0 && len(s.buffers) == 0
		})
	}
	served := float64(heapOf()-before) / clients
	t.Logf("%.0f bytes a client that was served", served)
	if served > mostServed {
		t.Errorf("a client that was served takes %.0f bytes of heap, want at most %d", served, mostServed)
	}
}
