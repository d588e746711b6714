package transport

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"
)

// Latency of a message beside bursts of a hundred handshakes, every 100 ms, of which the
// given number compute concurrently; "none" is without them.
//
//	GOGC=400 go test -run - -bench BesideHandshakes -benchtime 2000x ./grid-node/transport
//
// GOGC is that of a node.
func BenchmarkBesideHandshakes(b *testing.B) {
	for _, computing := range []int{0, 1, 128} {
		name := fmt.Sprintf("computing=%d", computing)
		if computing == 0 {
			name = "none"
		}
		b.Run(name, func(b *testing.B) { besideHandshakes(b, computing) })
	}
}

func besideHandshakes(b *testing.B, computing int) {
	cfg := testTLS(b)
	cfg.MaxComputing = computing
	addr := serve(b, overTLS, Config{TLS: cfg}, &echo{})
	c, hello := dial(b, addr), clientHello(b)
	_ = c.SetDeadline(time.Time{})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			for _, c := range open {
				_ = c.Close()
			}
			open = open[:0]
			for range min(100, 100*computing) {
				if c, err := net.Dial("tcp", addr); err == nil {
					_, _ = c.Write(hello)
					open = append(open, c)
				}
			}
		}
	}()
	took := make([]time.Duration, 0, b.N)
	message := frame("an order")
	b.ResetTimer()
	for range b.N {
		time.Sleep(time.Millisecond)
		begin := time.Now()
		exchange(b, c, message, len(message))
		took = append(took, time.Since(begin))
	}
	b.StopTimer()
	close(stop)
	<-done
	slices.Sort(took)
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		b.ReportMetric(float64(took[int(q*float64(len(took)-1))])/1e3, fmt.Sprintf("p%v-us", 100*q))
	}
}
