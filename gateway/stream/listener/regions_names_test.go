package listener

import (
	"sync"
	"testing"
)

// The reader of a log and those of histories learn names at the same time, of parts that need more or fewer of them: what
// one has learnt, another one does not take away.
func TestRegionNamesAreKept(t *testing.T) {
	all := []string{"a", "b", "c", "d"}
	n := &regionNames{}
	n.keep(all)
	n.keep(all[:2])
	if !n.knows(4) || n.of(3) != "d" {
		t.Fatal("a shorter list took names away")
	}
	n = &regionNames{}
	var learning sync.WaitGroup
	for k := range 64 {
		learning.Go(func() {
			count := k%len(all) + 1
			n.keep(all[:count:count])
			if got := n.of(uint16(count - 1)); got != all[count-1] {
				t.Errorf("number %d is %q, want %q", count-1, got, all[count-1])
			}
		})
	}
	learning.Wait()
}
