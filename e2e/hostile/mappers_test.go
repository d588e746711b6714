package hostile

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// mappers are clients that begin as many Maps over the orders of a log as they may.
var mappers = []neighbour{
	{name: "100 begin Maps over 20,000 orders without end and read no answer", conns: 100, talk: mapsUnread, busy: true, seen: "ordergrid_node_compute_function_calls_total"},
	{name: "100 begin Maps over 20,000 orders without end and read no answer, and reconnect", conns: 100, talk: mapsUnread, stay: 300 * time.Millisecond, busy: true, seen: "ordergrid_node_compute_function_calls_total"},
	{name: "20 begin Maps over 20,000 orders and end them, 16,000 a second each", conns: 20, talk: mapsEnded, busy: true, seen: "ordergrid_node_rejects_total"},
}

const (
	mapped     = 20_000 // orders of the log before the neighbours come
	atOnce     = 160    // Maps: more than the 64 that a node lets all of them have, who come from one address
	partitions = 2      // of the grid
)

// maps begins Maps, in turn of each partition.
func maps(first uint64) (b []byte) {
	for i := range uint64(atOnce) {
		b = wire.AppendMapOrders(b, wire.PartitionID(i%partitions), &wire.MapOrders{ReqID: first + i, TimeoutMs: 60_000, Slices: 1, Function: []byte("notional")})
	}
	return b
}

func mapsUnread(c net.Conn) {
	_, err := c.Write(hello())
	for first := uint64(1); err == nil; first += atOnce {
		_, err = c.Write(maps(first))
	}
}

// mapsEnded reads what comes, so that the node does not stop to read from it.
func mapsEnded(c net.Conn) {
	go func() { _, _ = io.Copy(io.Discard, c) }()
	_, err := c.Write(hello())
	for first := uint64(1); err == nil; first += atOnce {
		time.Sleep(10 * time.Millisecond)
		b := maps(first)
		for i := range uint64(atOnce) {
			b = wire.AppendMap(b, wire.PartitionID(i%partitions), &wire.Map{ReqID: first + i}) // no slices: it ends that one
		}
		_, err = c.Write(b)
	}
}

// Whatever such clients do, every order of another client is acknowledged and stays, and its quiet session too; what it does
// to latency is reported beside the same at another grid. Maps of another client over all orders are answered beside them.
func TestMappersDenyNothing(t *testing.T) {
	exe, module := program(t), filepath.Join(t.TempDir(), "notional.wasm")
	if err := os.WriteFile(module, examples.Notional, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--", "--regions", fileOf(t, "regions.yaml", "memory: 16Mi\nregions: [{name: positions}]\n"),
		"--function-compute", fmt.Sprintf("notional=%s:sha256=%x", module, sha256.Sum256(examples.Notional))}
	for _, n := range mappers {
		t.Run(n.name, func(t *testing.T) {
			g, other := start(t, exe, args...), start(t, exe, args...)
			c := fill(t, g)
			fill(t, other)
			stop, answered := make(chan struct{}), make(chan int)
			go func() { answered <- mapsBeside(t, c, stop) }()
			n.beside(t, g, other)
			close(stop)
			t.Logf("%d Maps of another client were answered", <-answered)
		})
	}
}

// mapsBeside has Maps over all orders, one after the other, until stop is closed, and returns how many. The last one ends
// behind that.
func mapsBeside(t *testing.T, c *client.Client, stop <-chan struct{}) (n int) {
	for {
		parts, err := c.Map(t.Context(), "notional", client.MapRequest{Orders: true})
		rows := uint64(0)
		for i := range parts {
			rows += parts[i].Rows
		}
		if err != nil || len(parts) != partitions || rows < mapped {
			t.Errorf("Map %d is of %d orders in %d parts, %v, want at least %d in %d", n, rows, len(parts), err, mapped, partitions)
			return n
		}
		n++
		select {
		case <-stop:
			return n
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// fill submits orders, which Maps are then over, and returns the client that did.
func fill(t *testing.T, g *testgrid.Grid) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, DialTimeout: time.Minute, RequestTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var sent atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for n := sent.Add(1); n <= mapped; n = sent.Add(1) {
				if _, err := c.Submit(t.Context(), testgrid.Order(fmt.Sprint("MAPPED-", n), 305)); err != nil {
					t.Errorf("order %d: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
	return c
}
