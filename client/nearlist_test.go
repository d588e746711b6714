package client

import (
	"fmt"
	"testing"
)

// A list has as many bytes as it may; what was read longest ago goes first.
func TestNearList(t *testing.T) {
	var l nearList
	l.init(10 * (nearCost + 10))
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
	if l.find(key(3)) != nil || l.bytes < 0 || int(l.bytes) != len(l.by)*(nearCost+10) {
		t.Errorf("a value over the bound: %d bytes, %d entries", l.bytes, len(l.by))
	}
	l.clear()
	if l.bytes != 0 || l.order.Len() != 0 || l.find(key(24)) != nil {
		t.Error("it is not empty")
	}
}
