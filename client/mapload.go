package client

import (
	"math"
	"sync"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// mapLoad is where the slices of a Map are. Those of no region may be computed at any copy in sync of any partition:
// each goes to the one that has the fewest of them, so that no node is without work while slices wait at another.
type mapLoad struct {
	mu     sync.Mutex
	slices map[string]int // by address
	done   map[string]int // of each address, which answer of all the last one was, from 1
	n      int            // answers
}

// place chooses a copy and counts the slice there. Of equal ones it is the one whose last answer is the oldest, which has
// computed its next one for longer, and then the first, from the partition of the slice's number on. The address is ""
// where no copy is known to be in sync.
func (l *mapLoad) place(parts []PartitionInfo, slice int) (at wire.PartitionID, addr string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at = wire.PartitionID(slice % len(parts))
	least := math.MaxInt
	for i := range parts {
		p := &parts[(slice+i)%len(parts)]
		for _, m := range p.Members {
			n := l.slices[m.Address]
			if m.InSync && m.Address != "" && (n < least || n == least && l.done[m.Address] < l.done[addr]) {
				at, addr, least = p.ID, m.Address, n
			}
		}
	}
	if addr != "" {
		l.slices[addr]++
	}
	return at, addr
}

// move counts a slice at another copy; to "" when it is there.
func (l *mapLoad) move(from, to string) {
	if from == to {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if from != "" {
		l.slices[from]--
	}
	if to != "" {
		l.slices[to]++
	} else {
		l.n++
		l.done[from] = l.n
	}
}
