package store

// Blocks of memory that a Store lends to its replica, for what it holds beside the log and needs as
// fast as orders come: executions of a partition that matches. Like the memory of the log they are
// outside the Go heap, and Prefault makes them present ahead, on another goroutine than the
// writer's. They are the store's until Close.

// LendBytes is the size of a block.
const LendBytes = 64 << 10

// lendStep is how much is mapped at once: enough for huge pages to be requested.
const lendStep = 4 << 20

// lender has the blocks that are present and not lent.
type lender struct {
	ready chan []byte // nil: nothing is lent
	most  int         // bytes, all together
	maps  [][]byte    // of the goroutine that calls Prefault
}

// Lendable returns what a store with Options.Lends lends at most: whole steps.
func Lendable(lends int64) int64 { return lends &^ (lendStep - 1) }

func (l *lender) open(lends int64) {
	if l.most = int(Lendable(lends)); l.most > 0 {
		l.ready = make(chan []byte, l.most/LendBytes)
	}
}

// Lend returns a block of LendBytes zero bytes that is present, or nil: there is none now. Writer only.
func (s *Store) Lend() []byte {
	select {
	case b := <-s.lends.ready:
		return b
	default:
		return nil
	}
}

// prefault makes that many bytes present that are not lent, up to what may be.
func (l *lender) prefault(ahead int) {
	for len(l.ready)*LendBytes < ahead && len(l.maps)*lendStep < l.most {
		m, err := mapMemory(lendStep)
		if err != nil {
			return // the replica takes its memory from the Go heap
		}
		populate(m)
		l.maps = append(l.maps, m)
		for ; len(m) > 0; m = m[LendBytes:] {
			l.ready <- m[:LendBytes:LendBytes] // there is room for all
		}
	}
}

func (l *lender) close() {
	for _, m := range l.maps {
		unmapMemory(m)
	}
	*l = lender{}
}
