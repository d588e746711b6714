// Package testgrid is how a test starts a grid: grid-node dev, built from this checkout, as real processes.
package testgrid

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/devgrid"
)

// Options of a grid; the zero value is one shard of two nodes.
type Options struct {
	Shards, Replicas int      // 0: 1 and 2
	MemoryMiB        int64    // of a node; 0: 2,048
	Args             []string // more arguments of grid-node dev
	Tags             []string // build tags of the program
	Program          string   // instead of the one of this checkout
	Log              io.Writer
}

// Grid is a grid that runs.
type Grid struct{ *devgrid.Grid }

// Run starts a grid of one shard of two nodes, with more arguments for grid-node dev. It ends with the test.
func Run(t testing.TB, args ...string) *Grid {
	t.Helper()
	return Start(t, Options{Args: args})
}

// Start starts a grid. It ends with the test; if that failed, the log of the processes is printed.
func Start(t testing.TB, o Options) *Grid {
	t.Helper()
	g, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("grid-node dev:\n%s", g.Log())
		}
	})
	return g
}

// Open is Start for what is not a test. The grid ends by Stop, or with this process.
func Open(ctx context.Context, o Options) (*Grid, error) {
	if o.Program == "" {
		exe, err := Build(ctx, "grid-node", o.Tags...)
		if err != nil {
			return nil, err
		}
		o.Program = exe
	}
	g, err := devgrid.Start(ctx, devgrid.Options{Program: o.Program, Shards: cmp.Or(o.Shards, 1), Replicas: cmp.Or(o.Replicas, 2),
		MemoryMiB: cmp.Or(o.MemoryMiB, 2048), Args: o.Args, Log: o.Log})
	if err != nil {
		return nil, err
	}
	return &Grid{g}, nil
}

// Order is a FIX 4.2 NewOrderSingle with this ClOrdID, padded with tag 58 to size bytes if it would be shorter.
func Order(clOrdID string, size int) []byte {
	body := fmt.Appendf(nil, "35=D\x0149=CLIENT\x0156=GRID\x0134=1\x0152=20261121-09:30:00\x0111=%s\x011=ACC\x0121=1\x0155=IBM\x0154=1\x0160=20261121-09:30:00\x0138=100\x0140=2\x0144=125.25\x0159=0\x01", clOrdID)
	if pad := size - len(body) - len("8=FIX.4.2\x019=000\x0110=000\x01") - len("58=\x01"); pad > 0 {
		body = append(append(append(body, "58="...), bytes.Repeat([]byte{'x'}, pad)...), 1)
	}
	m := append([]byte("8=FIX.4.2\x019="+strconv.Itoa(len(body))+"\x01"), body...)
	return fmt.Appendf(m, "10=%03d\x01", order.CheckSum(m))
}
