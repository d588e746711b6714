package replica

// pending remembers who waits for a prepared entry. It holds no pointers.
type pending struct {
	conn      uint64
	requestID uint64 // clientSeq, or reqID of an OpenSession
	slot      uint32
	size      uint32 // bytes in the log
	epoch     uint32 // of the entry
	kind      pendingKind
}

type pendingKind uint8

const (
	pendingNone   pendingKind = iota // nobody waits: a noop, a cursor, an entry of the primary before
	pendingSubmit                    // answered by Ack
	pendingOpen                      // answered by SessionOpened
)

// pendings is a ring over the entries that are prepared and not committed:
// entry seq has place seq & mask. Its size bounds them.
type pendings struct {
	ring  []pending
	mask  uint64
	bytes int
}

func (p *pendings) init(n int) {
	p.ring = make([]pending, n)
	p.mask = uint64(n - 1)
}

func (p *pendings) at(seq uint64) *pending { return &p.ring[seq&p.mask] }

func (p *pendings) put(seq uint64, e pending) {
	*p.at(seq) = e
	p.bytes += int(e.size)
}

// take removes what waits for seq.
func (p *pendings) take(seq uint64) pending {
	e := p.at(seq)
	v := *e
	*e = pending{}
	p.bytes -= int(v.size)
	return v
}

// clear forgets everything.
func (p *pendings) clear() {
	clear(p.ring)
	p.bytes = 0
}
