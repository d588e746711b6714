package node

import (
	"net"
	"testing"
	"time"
)

// A process that ends and is back on its address before anybody looked is a
// death like any other: whoever finds another process there need not wait for
// the silence of the first. The grace is longer than the test.
func TestQuickRestartIsADeath(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Lease, g.base.Grace = 5*time.Minute, 10*time.Minute
	g.up()
	held, look := make(chan struct{}), make(chan struct{})
	g.nodes[1].loop.Post(func() { close(held); <-look })
	<-held
	g.kill(0)
	g.start(0)
	g.until(func() bool {
		c, err := net.Dial("tcp", g.addrs[0])
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	}, "the new process does not listen")
	close(look)
	g.until(func() bool { return g.readiness(1).Partitions[0].Role == "primary" }, "node 1 waits for silence: %+v", func() any { return g.readiness(1) })
}
