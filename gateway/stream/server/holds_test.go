package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// TestHeldFramesKeepTheirPlace: what waits for the end of an interval is sent before anything that comes after it, an
// answer or a message of another subscription; what exceeds the buffer follows in order.
func TestHeldFramesKeepTheirPlace(t *testing.T) {
	kinds(t, heldFramesKeepTheirPlace)
}

func heldFramesKeepTheirPlace(t *testing.T, kind transport.Kind) {
	s, addr := start(t, kind, nil)
	seq := uint64(0)
	next := func(topic string) {
		seq++
		publish(t, s, 0, seq, topic, "A17", fmt.Sprint(seq))
	}
	slow, quick := connect(t, addr, JSON), connect(t, addr, JSON)
	for _, p := range []*peer{slow, quick} {
		flush := map[*peer]int{slow: 1000, quick: 20}[p]
		p.send(fmt.Sprintf(`{"op":"subscribe","id":7,"topics":"orders.A17.>","flush_ms":%d}`, flush))
		p.want(`"id":7`)
	}
	slow.send(`{"op":"subscribe","id":8,"topics":"orders.B.>"}`)
	slow.want(`"id":8`)

	next("orders.A17.X")
	next("orders.A17.X")
	next("orders.B.X") // not held: it takes the two before with it
	for _, want := range []string{`"id":7,`, `"id":7,`, `"id":8,`} {
		slow.want(want)
	}
	next("orders.A17.X")
	slow.send(`{"op":"unsubscribe","id":8}`) // so does an answer
	slow.want(`"price":"4"`)
	slow.want(`"id":8`)

	const many = 4 * heldBytes / 64
	for range many {
		next("orders.A17.X")
	}
	for i := range many {
		slow.want(fmt.Sprintf(`"price":"%d"`, int(seq)-many+i+1))
	}
	for i := range seq {
		if i+1 != 3 {
			quick.want(fmt.Sprintf(`"price":"%d"`, i+1))
		}
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		held, free := 0, 0
		s.Do(func(*fanout.Hub) {
			for _, c := range s.clients {
				held += len(c.held)
			}
			free = len(s.holds.free)
		})
		if held == 0 && free > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d bytes are held at the end, %d buffers are free", held, free)
		}
	}
}
