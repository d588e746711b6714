package transport

import "testing"

// TestConnsSayByWhichDoorTheyCame: a handler that listens on two addresses can distinguish
// their connections.
func TestConnsSayByWhichDoorTheyCame(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		doors := make(chan int, 1)
		h := &echo{onOpen: func(c *Conn) { doors <- c.Door() }}
		first := serve(t, kind, Config{}, h)
		second, err := h.loop.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if over, ok := wantTLS.Load(first); ok {
			wantTLS.Store(second.String(), over)
		} else {
			wantTLS.Delete(second.String()) // the port may have been that of a loop with TLS
		}
		for i, addr := range []string{first, second.String(), first} {
			_ = dial(t, addr)
			if got, want := within(t, doors), i%2; got != want {
				t.Errorf("connection %d came by door %d, want %d", i, got, want)
			}
		}
	})
}
