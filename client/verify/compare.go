package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// comparison walks all replicas of a partition in step.
type comparison struct {
	p     *Partition
	feeds []*feed
	sink  *sinkFiles
	// replay is nil if the log is not to be matched again.
	replay *replayed

	hash     []uint64 // per replica: of its last entry
	began    []bool   // per replica: hash is known
	ids      []idSeq
	sessions map[uint32]*sessionSeqs
}

// idSeq is a ClOrdID by hash. 64 bits: among ten million orders two different
// ids share one with a probability of one to 370,000.
type idSeq struct{ hash, seq uint64 }

// sessionSeqs remembers which client numbers of a session the log has: all up to max-63 by the
// highest, the last 64 one by one. Numbers may be applied slightly out of order, never twice.
type sessionSeqs struct {
	max  uint64
	seen uint64 // bit i: max-i
}

func (c *comparison) run() {
	c.hash = make([]uint64, len(c.feeds))
	c.sessions = map[uint32]*sessionSeqs{}
	alive := make([]bool, len(c.feeds))
	for i := range c.feeds {
		alive[i] = c.p.Replicas[i].Error == ""
	}
	most := uint64(0)
	for i, f := range c.feeds {
		if alive[i] {
			most = max(most, f.limit)
		}
	}
	c.began = make([]bool, len(c.feeds))
	for seq := c.first(alive); seq <= most; seq++ {
		var reference *client.LogEntry
		from := 0
		for i, f := range c.feeds {
			if !alive[i] || seq > f.limit {
				continue
			}
			e := f.next()
			if e == nil {
				alive[i] = false
				c.ended(i, seq)
				continue
			}
			c.p.Replicas[i].Read++
			c.chain(i, e)
			if reference == nil {
				reference, from = e, i
			} else if !bytes.Equal(reference.Bytes, e.Bytes) {
				c.p.problem("entry %d differs: %s has %s, %s has %s", seq, c.p.Replicas[from].Address, describe(reference), c.p.Replicas[i].Address, describe(e))
			}
		}
		if reference == nil {
			break
		}
		if seq <= c.p.Common {
			c.account(reference)
		}
	}
	c.duplicates()
	c.p.setBehind()
}

// first is the first entry that all readable replicas have: some have freed more of the log than
// others. Entries before it are read and chained, not compared.
func (c *comparison) first(alive []bool) uint64 {
	first := uint64(1)
	for i, f := range c.feeds {
		if alive[i] {
			first = max(first, f.first())
		}
	}
	for i, f := range c.feeds {
		for alive[i] && f.first() < first && f.first() > 0 {
			c.chain(i, f.next())
			c.p.Replicas[i].Read++
		}
	}
	c.p.First = first
	c.p.Freed = first - 1
	return first
}

// ended: a replica's log stopped before the prefix it reported as committed.
func (c *comparison) ended(i int, seq uint64) {
	r := &c.p.Replicas[i]
	if err := c.feeds[i].err; err != nil {
		r.Error = fmt.Sprintf("from entry %d: %v", seq, err)
		if isLogError(err) {
			c.p.problem("%v", err)
		}
		return
	}
	c.p.problem("%s: the log ends before entry %d, committed was %d", r.Address, seq, r.Committed)
}

func (c *comparison) chain(i int, e *client.LogEntry) {
	known := c.began[i] || e.Seq == 1
	c.began[i] = true
	if known && e.PrevHash != c.hash[i] {
		c.p.problem("%s: entry %d: the hash chain is broken: prevHash is %016x, the entry before has %016x", c.p.Replicas[i].Address, e.Seq, e.PrevHash, c.hash[i])
	}
	c.hash[i] = order.Hash(e.Bytes)
}

// account counts one entry of the common prefix and passes it to the sink.
func (c *comparison) account(e *client.LogEntry) {
	hash := order.Hash(e.Bytes)
	c.p.Entries++
	c.p.Hash = fmt.Sprintf("%016x", hash)
	switch e.Kind {
	case order.KindOrder, order.KindExecute:
		c.p.Kinds.Orders++
		id := order.HashClOrdID(order.ClOrdID(e.Bytes))
		if order.IsFix(e.Bytes) { // its ClOrdID is unique within its session and day, and numbers may begin anew
			c.ids = append(c.ids, idSeq{id ^ (uint64(e.Session)+1|uint64(e.Bytes[55]>>1)<<32)*0x9e3779b97f4a7c15, e.Seq})
			break
		}
		c.ids = append(c.ids, idSeq{id, e.Seq})
		s := c.sessions[e.Session]
		if s == nil {
			s = &sessionSeqs{}
			c.sessions[e.Session] = s
		}
		if !s.add(e.ClientSeq) {
			c.p.problem("entry %d: order %d of session %d was applied before", e.Seq, e.ClientSeq, e.Session)
		}
	case order.KindSessionOpen:
		c.p.Kinds.Sessions++
		c.sessions[e.Session] = &sessionSeqs{}
	case order.KindCursor:
		c.p.Kinds.Cursors++
	case order.KindTruncate:
		c.p.Kinds.Truncates++
	case order.KindNoop:
		c.p.Kinds.Noops++
	}
	if c.replay != nil {
		c.replay.entry(e)
	}
	if c.sink != nil {
		c.sink.entry(e, hash)
	}
}

// add returns false if n was there.
func (s *sessionSeqs) add(n uint64) bool {
	if n > s.max {
		s.seen = s.seen<<(min(n-s.max, 64)) | 1
		s.max = n
		return true
	}
	back := s.max - n
	if back >= 64 {
		return true // too old to tell; duplicates by ClOrdID are still found
	}
	if s.seen>>back&1 == 1 {
		return false
	}
	s.seen |= 1 << back
	return true
}

func sortIDs(ids []idSeq) {
	slices.SortFunc(ids, func(a, b idSeq) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.seq, b.seq)) })
}

func (c *comparison) duplicates() {
	sortIDs(c.ids)
	for i := 1; i < len(c.ids); i++ {
		if c.ids[i].hash == c.ids[i-1].hash {
			c.p.problem("entries %d and %d are orders with the same ClOrdID (by its hash %016x)", c.ids[i-1].seq, c.ids[i].seq, c.ids[i].hash)
		}
	}
}

func describe(e *client.LogEntry) string {
	s := fmt.Sprintf("%s epoch %d hash %016x", e.Kind, e.Epoch, order.Hash(e.Bytes))
	if e.Kind.IsOrder() {
		s += fmt.Sprintf(" ClOrdID %.40q", order.ClOrdID(e.Bytes))
	}
	return s
}
