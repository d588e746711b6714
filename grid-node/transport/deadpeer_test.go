package transport

import (
	"testing"
	"time"
)

// A peer that ends its stream and is gone, as a process that is killed, is closed at once, also with output for it under
// way: the kernel never gets that acknowledged. A handler may wait for it, as for the end of a FIX gateway.
func TestDeadPeerIsClosedAtOnce(t *testing.T) {
	forEach(t, func(t *testing.T, kind Kind) {
		e := &echo{repeat: 64}
		addr := serve(t, kind, Config{WriteStall: time.Hour}, e)
		for range 20 {
			c := dial(t, addr)
			if _, err := c.Write(frame("answered when it is gone")); err != nil {
				t.Fatal(err)
			}
			_ = tcpOf(c).Close()
			_ = within(t, e.closed)
		}
	})
}
