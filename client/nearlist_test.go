package client

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A list has as many bytes as it may; what was read longest ago goes first.
func TestNearList(t *testing.T) {
	var l nearList
	const cost = nearCost + 2*5 + 5
	l.init(10 * cost)
	key := func(i int) []byte { return fmt.Appendf(nil, "%05d", i) }
	dropped := uint64(0)
	for i := range 25 {
		dropped += l.put(Entry{Key: key(i), Value: []byte("12345"), Version: uint64(i + 1)})
		if i >= 3 && l.find(key(3)) == nil {
			t.Fatalf("key 3, which is read all the time, is gone behind %d", i)
		}
	}
	if len(l.by) != 10 || l.order.Len() != 10 || l.bytes != l.most || dropped != 15 || l.find(key(24)) == nil || l.find(key(14)) != nil {
		t.Errorf("%d entries, %d in order, %d of %d bytes, %d dropped", len(l.by), l.order.Len(), l.bytes, l.most, dropped)
	}
	if dropped = l.put(Entry{Key: key(3), Value: make([]byte, 4*nearCost)}); l.bytes > l.most || dropped == 0 || len(l.find(key(3)).Value) != 4*nearCost {
		t.Errorf("a longer value: %d of %d bytes, %d dropped", l.bytes, l.most, dropped)
	}
	l.put(Entry{Key: key(3), Value: make([]byte, l.most)})
	if l.find(key(3)) != nil || l.bytes < 0 || int(l.bytes) != len(l.by)*cost {
		t.Errorf("a value over the bound: %d bytes, %d entries", l.bytes, len(l.by))
	}
	l.clear()
	if l.bytes != 0 || l.order.Len() != 0 || l.find(key(24)) != nil {
		t.Error("it is not empty")
	}
}

// What a list counts is what it takes of the heap.
func TestNearListCost(t *testing.T) {
	for _, c := range []struct{ key, value int }{{12, 0}, {12, 8}, {40, 100}, {200, 30}, {20, 1000}, {20, 9000}} {
		n := 64_000
		if c.value > 500 {
			n = 8_000
		}
		key := make([]byte, c.key)
		var l nearList
		l.init(1 << 30)
		was := heap()
		for i := range n {
			copy(key, fmt.Appendf(nil, "%d", i))
			// As an answer has them: the value is behind the rest of its frame.
			frame := append([]byte(nil), make([]byte, wire.RegionGotFixed+c.value)...)
			l.put(Entry{Key: bytes.Clone(key), Value: frame[wire.RegionGotFixed:], Version: 1})
		}
		takes := int64(heap() - was)
		t.Logf("keys of %d bytes, values of %d: %d counted, %d taken, each", c.key, c.value, l.bytes/int64(n), takes/int64(n))
		if takes > l.bytes*115/100 || takes < l.bytes*8/10 {
			t.Errorf("keys of %d bytes, values of %d: %d bytes counted, %d taken, want 70%% to 110%% of that", c.key, c.value, l.bytes, takes)
		}
		runtime.KeepAlive(&l)
	}
}

// heap is what is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
