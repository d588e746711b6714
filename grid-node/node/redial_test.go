package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
)

// TestRefusedRedialIsNoEnd: a node whose connection was closed redials at once, to find
// out whether the other process has ended. One that answers with a Goaway has not: the
// configuration stays, and the pair continues when it is accepted again.
func TestRefusedRedialIsNoEnd(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Lease, g.base.Grace = 20*time.Second, 30*time.Second // a slow machine is not the cause
	key := peerkey.New()
	files, keys := [2]string{}, [2]*peerkey.Keys{}
	for i := range files {
		files[i] = filepath.Join(t.TempDir(), "peer.key")
		if err := peerkey.WriteFile(files[i], key); err != nil {
			t.Fatal(err)
		}
		var err error
		if keys[i], err = peerkey.Load(files[i]); err != nil {
			t.Fatal(err)
		}
		g.base.PeerKeys = keys[i]
		g.start(i)
	}
	g.ready()
	submit2(t, g, 5)
	before := g.records()[0]
	become := func(k peerkey.Key) {
		t.Helper()
		if err := os.WriteFile(files[1], []byte(k.Text()), 0o600); err != nil {
			t.Fatal(err)
		}
		g.until(func() bool { return keys[1].Accepted()[0] == k }, "the file is not read again")
	}
	become(peerkey.New())
	refused := func() (n uint64) {
		g.onLoop(1, func() { n = g.nodes[1].counters.NodesRefused })
		return n
	}
	was := refused()
	g.onLoop(1, func() {
		for _, p := range g.nodes[1].data.peers.byAddr {
			for _, l := range p.links {
				l.conn.Close(errors.New("the test closes it"))
			}
		}
	})
	// An order waits for its copy, and has node 1 dialled repeatedly.
	c, ctx := g.client(), t.Context()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var receipt client.Receipt
	var err error
	done := make(chan struct{})
	go func() { receipt, err = c.Submit(ctx, fix("waits")); close(done) }()
	answered := func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
	g.until(func() bool { return answered() || refused() >= was+3 }, "node 1 is not dialled again")
	become(key)
	g.until(answered, "the order is not answered after node 1 takes the other one again")
	if now := g.records()[0]; err != nil || receipt.Copies != 2 || now.Epoch != before.Epoch {
		t.Errorf("%v, %v; epoch %d, was %d: a node that answered was taken for one that has ended", receipt, err, now.Epoch, before.Epoch)
	}
	g.verify("")
}
