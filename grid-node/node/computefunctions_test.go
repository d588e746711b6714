package node

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

func positions() *Regions {
	return &Regions{Memory: 16 << 20, Regions: []replica.RegionSpec{{Name: "positions"}}}
}

func compute(name string, module []byte) ComputeFunction {
	return ComputeFunction{Name: name, Module: module, SHA256: sha256.Sum256(module)}
}

// TestComputeWhilePodsAreReplaced: a primary without a function that its backup has refuses no call for good, and the call
// succeeds, once, when the backup leads; a function that no copy has is refused for good.
func TestComputeWhilePodsAreReplaced(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.Regions = positions()
	g.start(0)
	g.base.Functions = &Functions{Compute: []ComputeFunction{compute("add", examples.Add)}}
	g.start(1)
	g.ready()
	c, key, hundred := g.client(), []byte("ACC-1/IBM"), binary.LittleEndian.AppendUint64(nil, 100)
	if _, _, err := c.Invoke(t.Context(), "positions", "subtract", key, hundred); !errors.Is(err, client.ErrFunctionUnknown) {
		t.Fatalf("a function that no copy has: %v, want %v", err, client.ErrFunctionUnknown)
	}
	for err := client.ErrUnknownOutcome; ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, _, err = c.Invoke(ctx, "positions", "add", key, hundred)
		cancel()
		if errors.Is(err, client.ErrUnknownOutcome) || errors.Is(err, client.ErrOverloaded) {
			continue // timed out between question and answer, or before all copies have said that they know regions
		}
		if !errors.Is(err, client.ErrFunctionAwaited) {
			t.Fatalf("a function that the backup has: %v, want %v", err, client.ErrFunctionAwaited)
		}
		break
	}
	answered := make(chan error)
	go func() {
		reply, _, err := c.Invoke(t.Context(), "positions", "add", key, hundred)
		if err == nil && binary.LittleEndian.Uint64(reply) != 100 {
			err = fmt.Errorf("reply %x, want 100", reply)
		}
		answered <- err
	}()
	g.kill(0)
	if err := <-answered; err != nil {
		t.Fatalf("the call that waited: %v", err)
	}
	if e, err := c.Region("positions").Get(t.Context(), key); err != nil || binary.LittleEndian.Uint64(e.Value) != 100 {
		t.Fatalf("the value is %x (%v), want 100", e.Value, err)
	}
	g.start(0)
	g.ready()
	for i, decided := range []uint64{0, 1} {
		var s []nodestatus.ComputeFunction
		g.onLoop(i, func() { s = g.nodes[i].data.status().Computes })
		if len(s) != 1 || s[0].Name != "add" || s[0].SHA256 != fmt.Sprintf("%x", sha256.Sum256(examples.Add)) || s[0].Fuel != 100_000 || s[0].Pages != 16 || s[0].Decided != decided || s[0].Failed != 0 {
			t.Errorf("node %d reports %+v, want add, called %d times", i, s, decided)
		}
	}
}

// TestFaultsAreWork: a call that traps at once takes no fuel. It counts as work nevertheless, or a client that makes such
// calls would have as many of them served in a wake-up of the loop as it has in flight, before the orders of others.
func TestFaultsAreWork(t *testing.T) {
	g := newGrid(t, 1, 1)
	trap, err := os.ReadFile("../function/testdata/hostile-compute/trap.wasm")
	if err != nil {
		t.Fatal(err)
	}
	g.base.Regions, g.base.Functions = positions(), &Functions{Compute: []ComputeFunction{compute("trap", trap)}}
	g.up()
	g.onLoop(0, func() {
		fs := g.nodes[0].data.parts.computes
		for range 3 {
			r := fs.Compute(&replica.Call{Function: []byte("trap"), Region: []byte("positions"), Key: []byte("k")})
			if n, least := fs.spent(), faultWork+fs.list[0].inst.Bytes()/8; r.Kind != replica.CallFailed || n < least || least <= faultWork {
				t.Errorf("a call that traps is %v and counts as work of %d, want at least %d", r.Kind, n, least)
			}
		}
	})
}
