package transport

import (
	"fmt"
	"io"
	"testing"
)

// The cost of a bounded send buffer for a peer that reads: long answers, one after
// another.
func BenchmarkSendBuffer(b *testing.B) {
	const answer = 64 << 10
	for _, size := range []int{0, 64 << 10, 128 << 10} {
		b.Run(fmt.Sprintf("%d KiB", size>>10), func(b *testing.B) {
			e := &echo{repeat: 4, setup: func(c *Conn) {
				c.SetLimits(32<<10, 32<<20)
				if size > 0 {
					c.SetSendBuffer(size)
				}
			}}
			c := dial(b, serve(b, KindAuto, Config{}, e))
			ask := frame(string(make([]byte, answer/4)))
			b.SetBytes(answer)
			go func() {
				for range b.N {
					if _, err := c.Write(ask); err != nil {
						return
					}
				}
			}()
			if _, err := io.CopyN(io.Discard, c, int64(b.N)*4*int64(len(ask))); err != nil {
				b.Fatal(err)
			}
		})
	}
}
