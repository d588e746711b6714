package node

import (
	"net"
	"testing"
	"time"
)

// A process that restarts on its address before it is detected is a death like any other:
// a peer that finds another process there need not wait for the silence of the first. The
// grace is longer than the test.
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

// An exiting process resets connections the kernel still accepted for it, and the redial
// may meet that reset while it connects. No second attempt is needed.
func TestResetWhileLookingIsADeath(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Lease, g.base.Grace = 5*time.Minute, 10*time.Minute
	g.up()
	look := make(chan struct{})
	hold := func() {
		held := make(chan struct{})
		g.nodes[1].loop.Post(func() { close(held); <-look })
		<-held
	}
	hold()
	g.kill(0)
	ln, err := net.Listen("tcp", g.addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_ = c.(*net.TCPConn).SetLinger(0) // close with a reset
			_ = c.Close()
			if n == 0 {
				close(first)
			}
		}
	}()
	defer ln.Close()
	// The loop is blocked from the moment it has dialled until the reset is there.
	g.nodes[1].loop.Post(func() {
		g.nodes[1].loop.Post(func() {
			select {
			case <-first:
			case <-time.After(5 * time.Second): // it looked later, or not at all
			}
			time.Sleep(10 * time.Millisecond)
		})
	})
	close(look)
	g.until(func() bool { return g.readiness(1).Partitions[0].Role == "primary" }, "node 1 waits for silence: %+v", func() any { return g.readiness(1) })
}
