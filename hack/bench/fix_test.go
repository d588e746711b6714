package main

import (
	"os"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/acceptors"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// Clients by FIX have each order reported, one after the other and many at once, by the acceptor of order-gateway, and by
// those of others that are there.
func TestFIXClients(t *testing.T) {
	for _, s := range acceptors.All(os.Args[0], t.TempDir()) {
		if m := s.Missing(); m != "" || s.Name() != acceptors.Own("").Name() && os.Getenv("ORDERGRID_BENCH_ACCEPTORS") == "" {
			t.Logf("%s is not tested: %s; ORDERGRID_BENCH_ACCEPTORS=1 tests all that can be built", s.Name(), m)
			continue
		}
		run := startRelay(t, s, system.Topology{Copies: 1})
		for _, shape := range []generator.Shape{
			{Op: generator.Submit, Threads: 2, Depth: 1}, {Op: generator.Submit, Threads: 3, Depth: 64}, {Op: generator.Submit, Threads: 2, Depth: 1, Rate: 500},
		} {
			r, err := generator.Run(&generator.Spec{Driver: run.Driver, Addresses: run.Addresses, FIX: run.FIX, Shape: shape, Size: fixorder.Size, Request: 8, Reply: 8, Copies: 1,
				Duration: 300 * time.Millisecond})
			if err != nil {
				t.Fatalf("%s %+v: %v", s.Name(), shape, err)
			}
			if r.Orders == 0 || r.Failed > r.Unsent {
				t.Errorf("%s %+v: %d orders, %d failed: %s", s.Name(), shape, r.Orders, r.Failed, r.Error)
			}
		}
	}
}
