package queries

import (
	"slices"
	"sync"

	"github.com/ordergrid/ordergrid/client"
)

// flight keeps requests of one client under way, some of each partition at most.
type flight struct {
	most   int
	heard  func(client.Receipt)
	room   sync.Cond
	mu     sync.Mutex
	under  []int // way, by partition
	failed error // the first failure
}

func newFlight(partitions, most int, heard func(client.Receipt)) *flight {
	f := &flight{most: most, heard: heard, under: make([]int, partitions)}
	f.room.L = &f.mu
	return f
}

// begin waits while a partition has as many requests under way as it may, until half of them are answered, and counts one
// more. full is called before it waits. It returns what failed before.
func (f *flight) begin(partition int, full func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.under[partition] >= f.most {
		f.mu.Unlock()
		full()
		f.mu.Lock()
		for f.under[partition] > f.most/2 {
			f.room.Wait()
		}
	}
	f.under[partition]++
	return f.failed
}

// ended is the answer to a request of a partition.
func (f *flight) ended(partition int, r client.Receipt, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.under[partition]--; {
	case err == nil:
		f.heard(r)
	case f.failed == nil:
		f.failed = err
	}
	if n := f.under[partition]; n == f.most/2 || n == 0 {
		f.room.Broadcast()
	}
}

// land waits until nothing is under way, and returns what failed.
func (f *flight) land() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for slices.ContainsFunc(f.under, func(n int) bool { return n > 0 }) {
		f.room.Wait()
	}
	return f.failed
}
