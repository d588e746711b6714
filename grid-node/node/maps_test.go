package node

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// mapsGrid is a grid of one node with the function primes and a region.
func mapsGrid(t *testing.T) *grid {
	g := newGrid(t, 1, 1)
	g.base.MinInSync = 1
	g.base.Regions = &Regions{Memory: 16 << 20, Regions: []replica.RegionSpec{{Name: "positions"}}}
	g.base.Functions = &Functions{Compute: []ComputeFunction{{Name: "primes", Module: examples.Primes, SHA256: sha256.Sum256(examples.Primes)}}}
	return g.up()
}

// endless are arguments with which primes computes for hours.
var endless = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 1<<24), 1<<30)

func (g *grid) openMaps() (open, clients, computing int) {
	g.onLoop(0, func() {
		ms := &g.nodes[0].data.parts.computes.maps
		open, clients, computing = ms.open, len(ms.ofClient), len(ms.slots)
	})
	return open, clients, computing
}

// Maps that never end are bounded for each client and in time, and end by a frame or with the connection; orders
// and Maps of others go on.
func TestMapsThatNeverEnd(t *testing.T) {
	g := mapsGrid(t)
	c := g.client()
	acked, stop := g.load(c)
	g.until(func() bool { return acked.Load() > 100 }, "no orders flow")
	r, b := g.rawClient(0), []byte(nil)
	ask := wire.Map{TimeoutMs: 1 << 31, Slices: 1, Function: []byte("primes"), Args: endless}
	for i := range clientMaps + 3 {
		ask.ReqID = uint64(i + 1)
		b = wire.AppendMap(b, 0, &ask)
	}
	ask.ReqID = 1 // of one that is open
	if _, err := r.Write(wire.AppendMap(b, 0, &ask)); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		var m wire.Reject
		want := wire.CodeOverloaded
		if i == 3 {
			want = wire.CodeUnsupported
		}
		if err := wire.DecodeReject(r.next(), &m); err != nil || m.Code != want || want == wire.CodeOverloaded && (m.Limit != clientMaps || m.RequestID != uint64(clientMaps+1+i)) {
			t.Fatalf("%+v, %v; want %v of Map %d", m, err, want, clientMaps+1+i)
		}
	}
	if open, _, computing := g.openMaps(); open != clientMaps || computing > slotsBeside() {
		t.Errorf("%d Maps are open, want %d; %d compute, allowed: %d", open, clientMaps, computing, slotsBeside())
	}
	before := acked.Load()
	g.until(func() bool { return acked.Load() > before+100 }, "orders wait for Maps")
	// By a frame: all but the last.
	b = nil
	for i := range clientMaps - 1 {
		b = wire.AppendMap(b, 0, &wire.Map{ReqID: uint64(i + 1)})
	}
	if _, err := r.Write(b); err != nil {
		t.Fatal(err)
	}
	g.until(func() bool { open, _, _ := g.openMaps(); return open == 1 }, "Maps that were ended go on")
	// With the connection.
	_ = r.Close()
	g.until(func() bool { open, clients, computing := g.openMaps(); return open+clients+computing == 0 }, "Maps outlive their connection")
	if parts, err := c.Map(t.Context(), "primes", client.MapRequest{Args: binary.LittleEndian.AppendUint32([]byte{100, 0, 0, 0}, 1)}); err != nil || binary.LittleEndian.Uint64(parts[0].Reply) != 25 {
		t.Errorf("afterwards: %+v, %v", parts, err)
	}
	stop()
}

// A Map that takes longer than it may is ended with what it had and what is allowed, and one that waits likewise.
func TestMapsTimeOut(t *testing.T) {
	g := mapsGrid(t)
	r, b := g.rawClient(0), []byte(nil)
	const n = 8
	for i := range n {
		b = wire.AppendMap(b, 0, &wire.Map{ReqID: uint64(i + 1), TimeoutMs: 300, Slices: 1, Function: []byte("primes"), Args: endless})
	}
	begun := time.Now()
	if _, err := r.Write(b); err != nil {
		t.Fatal(err)
	}
	for range n {
		var m wire.Reject
		if err := wire.DecodeReject(r.next(), &m); err != nil || m.Code != wire.CodeMapBound || m.Detail != 300 || m.Limit != 60_000 {
			t.Fatalf("%+v, %v", m, err)
		}
	}
	if took := time.Since(begun); took < 300*time.Millisecond {
		t.Errorf("they end after %v, want 300ms or more", took)
	}
}
