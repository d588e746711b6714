package replica

import (
	"sort"
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Drop copies, see docs/adr/0089: a FIX session gets copies of the reports of others, its
// sources, which are in the log. A copy takes its number when the entry of the report is applied,
// on every copy of the partition, and leaves at its commit. What it is made of is that entry, so
// beside the log a replica has only which copy is of what. That is derived, in no log.

// fixCopies are the copies of the entries that are held, in the order of entries.
type fixCopies struct {
	list   deque[fixCopy]
	names  []copyName // of the sources of these copies
	known  map[string]uint32
	unused []uint32 // in names
}

// copyName is the name of a source, and how many copies have it.
type copyName struct {
	name   string
	copies uint64
}

// fixCopy is a copy of a report.
type fixCopy struct {
	seq, number uint64
	of          uint64 // of a report of an execution: which one, among all; else the record in its entry
	slot        uint32 // of the session that gets it
	name        uint32 // in names, of the source
	executed    bool
}

// fixCopyBytes is the memory of a fixCopy, and of its place among the numbers of its session.
const fixCopyBytes = int64(unsafe.Sizeof(fixCopy{})) + 8

func (x *fixCopies) none() bool { return x.list.first == x.list.next }

// bytes counts against the memory of the log: when that is full, orders are refused.
func (x *fixCopies) bytes() int64 { return int64(len(x.list.chunks)) * dequeChunk * fixCopyBytes }

// from returns the first copy of an entry from seq on.
func (x *fixCopies) from(seq uint64) uint64 {
	l := &x.list
	return l.first + uint64(sort.Search(int(l.next-l.first), func(i int) bool { return l.at(l.first+uint64(i)).seq >= seq }))
}

// copyWalk finds copies of an entry by rising numbers.
type copyWalk struct{ seq, at uint64 }

// as returns the copy of an entry that a session got under a number, nil for none.
func (w *copyWalk) as(x *fixCopies, seq uint64, slot uint32, number uint64) *fixCopy {
	if w.seq != seq {
		w.seq, w.at = seq, x.from(seq)
	}
	for ; w.at < x.list.next; w.at++ {
		switch c := x.list.at(w.at); {
		case c.seq != seq || c.slot == slot && c.number > number:
			return nil
		case c.slot == slot && c.number == number:
			return c
		}
	}
	return nil
}

// take counts a copy of a source, and returns the place of its name.
func (x *fixCopies) take(name string) uint32 {
	n, is := x.known[name]
	switch k := len(x.unused); {
	case is:
	case k > 0:
		n, x.unused = x.unused[k-1], x.unused[:k-1]
		x.names[n].name, x.known[name] = name, n
	default:
		if x.known == nil {
			x.known = map[string]uint32{}
		}
		n = uint32(len(x.names))
		x.names, x.known[name] = append(x.names, copyName{name: name}), n
	}
	x.names[n].copies++
	return n
}

// leave forgets a name with its last copy.
func (x *fixCopies) leave(n uint32) {
	m := &x.names[n]
	if m.copies--; m.copies == 0 {
		delete(x.known, m.name)
		m.name, x.unused = "", append(x.unused, n)
	}
}

// mostCopies returns the memory of the copies that an entry may have, in bytes: it is appended if
// that is there too, so the copies of entries that make many, such as continues, leave what freeing
// the log needs. Orders leave it twice, for a mass cancel when no more are taken.
func (r *Replica) mostCopies(e *order.Entry, payload []byte) int64 {
	targets := r.live.Fix.DropCopies()
	if targets == 0 || mutant(mutCopyUnreserved) {
		return 0
	}
	n := 0
	switch e.Kind {
	case order.KindOrder:
		n = 1
	case order.KindFix:
		if !order.IsLapse(payload) {
			n = len(payload) / order.FixRecordSize
		}
		fallthrough
	case order.KindMarket, order.KindContinue, order.KindGuard:
		if r.execs != nil {
			n += r.live.Books.MostRecords()
		}
	case order.KindExecute:
		n = 2 * r.live.Books.MostRecords()
	}
	l := &r.fix.copies.list
	more := n*targets - (len(l.chunks)*dequeChunk - int(l.next-l.origin))
	return int64((max(more, 0)+dequeChunk-1)/dequeChunk) * dequeChunk * fixCopyBytes
}

// noteCopies keeps the copies of the entry that was just applied.
func (r *Replica) noteCopies(seq uint64) {
	x := &r.fix.copies
	reports := uint64(0)
	if r.execs != nil {
		reports = r.reports.list.next - uint64(len(r.live.Books.Reports()))
	}
	list, held := r.live.Fix.Copied(), x.bytes()
	for i := range list {
		m := &list[i]
		c := fixCopy{seq: seq, number: m.Number, slot: m.Slot, name: x.take(m.Name), of: uint64(m.Record)}
		if m.Report >= 0 {
			c.of, c.executed = reports+uint64(m.Report), true
		}
		x.list.push(&c)
		r.fix.note(m.Slot, m.Number, seq)
	}
	r.store.Hold(x.bytes() - held)
	if mutant(mutCopyEarly) && r.role == RolePrimary {
		r.pushCopies(seq)
	}
}

// freeCopies frees those of the first entry that is held.
func (r *Replica) freeCopies(seq uint64) {
	x := &r.fix.copies
	to, held := x.from(seq+1), x.bytes()
	for i := x.list.first; i < to; i++ {
		c := x.list.at(i)
		r.fix.drop(c.slot, seq)
		x.leave(c.name)
	}
	x.list.freeTo(to)
	r.store.Hold(x.bytes() - held)
}

// copiesBehind returns how many numbers of a session are those of copies of entries behind seq.
func (r *Replica) copiesBehind(slot uint32, seq uint64) (n uint64) {
	x := &r.fix.copies
	for i := x.from(seq + 1); i < x.list.next; i++ {
		if x.list.at(i).slot == slot {
			n++
		}
	}
	return n
}

// pushCopies sends the copies of an entry that is committed now, to the gateways that have their
// sessions: behind all else that it gave numbers.
func (r *Replica) pushCopies(seq uint64) {
	x := &r.fix.copies
	at, to := x.list.at, x.from(seq+1)
	r.eachSession(x.from(seq), to, func(i uint64) uint32 { return at(i).slot }, func(slot uint32, list []uint64) {
		if r.counts(seq) {
			r.count.FixCopies += uint64(len(list))
		}
		r.tell(slot, list, func(dst []byte, i uint64) []byte { return r.appendCopy(dst, at(i)) })
		if mutant(mutCopyUncounted) {
			r.fix.at(slot).next -= uint64(len(list))
		}
	})
}

// appendCopy appends the number of a copy and what it is made of, as an entry of kind drop-copy.
func (r *Replica) appendCopy(dst []byte, c *fixCopy) []byte {
	entry := r.store.Get(c.seq)
	m := order.DropCopy{Op: order.DropCopyReport, Slot: c.slot, Name: []byte(r.fix.copies.names[c.name].name)}
	switch {
	case c.executed:
		m.Body = r.reportBody(entry, r.reports.list.at(c.of))
	case order.Kind(entry[4]) == order.KindOrder:
		m.Op, m.Body = order.DropCopyOrder, order.Payload(entry)
	default:
		n, rest := c.of, order.Payload(entry)
		for len(rest) > 0 {
			var rec order.FixRecord
			if rest = order.NextFix(rest, &rec); n == 0 {
				m.Body = rec.Body
				break
			}
			n--
		}
	}
	r.fix.taken = m.Append(r.fix.taken[:0])
	return appendMade(dst, c.number, order.KindDropCopy, entry, r.fix.taken)
}

// appendMade appends a number and an entry that is made for a frame, in the place of another one.
func appendMade(dst []byte, number uint64, kind order.Kind, of, payload []byte) []byte {
	e := order.Entry{Kind: kind, Seq: order.Seq(of), Epoch: order.EpochOf(of), TimeNs: order.Received(of), Size: uint32(order.HeaderSize + len(payload))}
	var head [order.HeaderSize]byte
	e.Put(head[:])
	dst = append(append(le.AppendUint64(dst, number), head[:]...), payload...)
	for len(dst)%8 != 0 {
		dst = append(dst, 0)
	}
	return dst
}
