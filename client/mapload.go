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
}

// place chooses a copy and counts the slice there. Of equal ones it is the first, from the partition of the slice's
// number on. The address is "" where no copy is known to be in sync.
func (l *mapLoad) place(parts []PartitionInfo, slice int) (at wire.PartitionID, addr string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at = wire.PartitionID(slice % len(parts))
	least := math.MaxInt
	for i := range parts {
		p := &parts[(slice+i)%len(parts)]
		for _, m := range p.Members {
			if n := l.slices[m.Address]; m.InSync && m.Address != "" && n < least {
				at, addr, least = p.ID, m.Address, n
			}
		}
	}
	if addr != "" {
		l.slices[addr]++
	}
	return at, addr
}

// move counts a slice at another copy; "" is none.
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
	}
}
