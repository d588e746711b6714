package replica

// pending is the request that waits for a prepared entry. It holds no pointers.
type pending struct {
	seq       uint64 // of the entry: the slot may belong to another one by now
	conn      uint64
	requestID uint64 // clientSeq, or reqID of an OpenSession
	slot      uint32
	size      uint32 // bytes in the log
	epoch     uint32 // of the entry
	kind      pendingKind
}

type pendingKind uint8

const (
	pendingNone   pendingKind = iota // no request: a noop, a cursor, an entry of the previous primary
	pendingSubmit                    // answered by Ack
	pendingOpen                      // answered by SessionOpened

	pendingFixOpen    // answered by FixOpened
	pendingFixSubmit  // answered by FixAck
	pendingFixDecided // answered by FixAck, with the message as functions changed it
	pendingFixRefusal // answered by FixAck
	pendingFixState   // answered by FixAck: a status request
	pendingFixStep    // answered by FixStepped
	pendingFixExecute // answered by FixReports
	pendingFixSources // answered by FixStepped

	pendingRegion // answered by RegionApplied
	pendingBatch  // answered by RegionBatched
	pendingInvoke // answered by Invoked
	pendingKill   // answered by KillDone
	pendingRekill // the same, and it was so before
	pendingMarket // answered by MarketDone
)

// pendings is a ring over the entries that are prepared and not committed: entry seq has
// slot seq & mask. Its size bounds them.
type pendings struct {
	ring  []pending
	mask  uint64
	bytes int
}

// windowFull reports whether there is no slot for another entry, of any kind, until one is
// committed.
func (r *Replica) windowFull() bool {
	last, _ := r.store.Last()
	return last-r.commit >= uint64(r.opt.Limits.InFlight)
}

func (p *pendings) init(n int) {
	p.ring = make([]pending, n)
	p.mask = uint64(n - 1)
}

func (p *pendings) at(seq uint64) *pending { return &p.ring[seq&p.mask] }

// put stores the request that waits for a new entry.
func (p *pendings) put(seq uint64, e pending) {
	e.seq = seq
	*p.at(seq) = e
	p.bytes += int(e.size)
}

// ask makes by the one that waits for an existing entry.
func (p *pendings) ask(seq uint64, by pending) {
	e := p.at(seq)
	if by.seq = seq; e.seq == seq {
		by.size = e.size
	}
	*e = by
}

// take removes the request that waits for seq.
func (p *pendings) take(seq uint64) pending {
	e := p.at(seq)
	if e.seq != seq {
		return pending{}
	}
	v := *e
	*e = pending{}
	p.bytes -= int(v.size)
	return v
}

// clear removes all requests.
func (p *pendings) clear() {
	clear(p.ring)
	p.bytes = 0
}
