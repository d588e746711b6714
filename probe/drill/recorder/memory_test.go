package recorder

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/race"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// ledger is n orders of two partitions, in two copies and one sink, with a fault in
// every tenth of the time and a read for every tenth order.
func ledger(n int) *history.History {
	const each = int64(time.Millisecond)
	h := &history.History{Replicas: 2, Partitions: []wire.PartitionID{0, 1}, Nodes: []history.Node{{Pod: "a"}}, Drill: &history.Drill{}}
	for p := range h.Partitions {
		s := history.Stream{ID: fixorder.ID{Run: 5, Probe: p}, Partition: h.Partitions[p], Node: -1, Sessions: 4, Orders: make([]load.Order, n/2)}
		log := make([]history.Entry, n/2)
		for i := range s.Orders {
			at := int64(i+1) * each
			s.Orders[i] = load.Order{T1: at, T2: at, T3: at + each/2, Seq: uint64(i + 1), Epoch: 1, Copies: 2, Fate: load.Acked, Thread: uint8(i % 4)}
			log[i] = history.Entry{Seq: uint64(i + 1), Epoch: 1, Lineage: 1, Hash: uint64(i+1) * 0x9e3779b97f4a7c15, Prev: uint64(i) * 0x9e3779b97f4a7c15, Stream: p, Index: int64(i)}
			if i%10 == 0 {
				h.Reads = append(h.Reads, history.Read{Call: at + each, Return: at + 2*each, Partition: s.Partition, Stream: p, Index: int64(i), Epoch: 1, Seq: uint64(i + 1), CommitSeq: uint64(i + 1)})
			}
		}
		log[0].Prev = 0
		h.Streams = append(h.Streams, s)
		clone := func() []history.Entry { return append([]history.Entry(nil), log...) }
		h.Logs = append(h.Logs, history.Log{Partition: s.Partition, Where: "a", InSync: true, Entries: clone()}, history.Log{Partition: s.Partition, Where: "b", InSync: true, Entries: clone()})
		h.Sinks = append(h.Sinks, history.Log{Partition: s.Partition, Where: "a", Entries: clone()})
	}
	for i := range int64(10) {
		at := int64(n/2) * each / 10 * i
		h.Reps = append(h.Reps, history.Rep{Number: int(i) + 1, Partitions: h.Partitions, Ready: at + each, From: at + 2*each, To: at + 3*each, Healed: at + 3*each, Served: at + 5*each, Redundant: at + int64(n/2)*each/10})
		h.Drill.Faults = append(h.Drill.Faults, history.Fault{Index: int(i), Step: api.Step{Type: "PodKill"}, Witness: api.Witness{State: api.Seen}})
	}
	return h
}

// The memory of an order, from the reading of the logs until the certificate is complete, is less
// than the reserved room.
func TestMemoryOfALedger(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("takes half a gigabyte, and counts memory: run it without -short and -race")
	}
	const orders = 600_000
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // so that only live memory is measured
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := &Recorder{cfg: Config{Dir: t.TempDir(), Say: t.Logf}, h: ledger(orders)}
	var peak atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	err := r.keep()
	close(stop)
	<-stopped
	if err != nil {
		t.Fatal(err)
	}
	// While the orders are copied from the traffic they exist twice.
	got, kept := int64(peak.Load()-before.HeapAlloc)/orders, int64(api.BytesPerOrder+api.BytesPerCopy*3)
	t.Logf("%d bytes per order, %d reserved", got, kept)
	if got > kept {
		t.Errorf("an order takes %d bytes at most, %d reserved", got, kept)
	}
}
