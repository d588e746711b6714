package replica

import (
	"sort"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A report is a function of its entry, so what is sent again needs the entry of a number
// only. The index of that is derived: a replica that applies the entries has it, and one that does
// not has no entries to send. It is in no snapshot and no digest.

// fixPageSize is how many consecutive numbers a page covers.
const fixPageSize = 120

// fixPage has the entries of consecutive numbers.
type fixPage struct {
	first uint64              // number of the first place
	entry uint64              // that entries are counted from
	last  uint64              // the highest entry
	rise  [fixPageSize]uint32 // entry - this + 1; 0 for a number without an entry
}

// fixPages are those of one generation of a session, by rising numbers.
type fixPages []*fixPage

// noteFix notes which numbers the reports of an entry take, before it is applied.
func (r *Replica) noteFix(e *order.Entry, payload []byte) {
	x := &r.fix
	switch e.Kind {
	case order.KindExecute: // noteReports has them
		return
	case order.KindOrder:
		x.note(e.Session, r.live.Fix.At(e.Session).Out, e.Seq)
		return
	}
	for rest := payload; len(rest) > 0; {
		var rec order.FixRecord
		rest = order.NextFix(rest, &rec)
		switch {
		case rec.Op == order.FixRefusal:
			x.note(rec.Slot, r.live.Fix.At(rec.Slot).Out, e.Seq)
		case rec.Op == order.FixStep || rec.Op == order.FixLeave || rec.Op == order.FixLapse || int(rec.Slot) >= len(x.pages):
		case (rec.Op == order.FixRemove || rec.Generation != r.live.Fix.At(rec.Slot).Generation) && !mutant(mutFixPagesKept):
			x.pages[rec.Slot] = nil
		}
	}
}

func (x *fixSessions) note(slot uint32, number, entry uint64) {
	for int(slot) >= len(x.pages) {
		x.pages = append(x.pages, nil)
	}
	pages := x.pages[slot]
	if n := len(pages); n == 0 || number-pages[n-1].first >= fixPageSize || entry-pages[n-1].entry >= 1<<32-1 {
		pages = append(pages, &fixPage{first: number, entry: entry})
		x.pages[slot] = pages
	}
	p := pages[len(pages)-1]
	p.rise[number-p.first], p.last = uint32(entry-p.entry)+1, entry
}

// freedFix drops the pages that an entry was the last of.
func (x *fixSessions) freedFix(e *order.Entry, payload []byte) {
	if e.Kind.IsOrder() {
		x.drop(e.Session, e.Seq)
		return
	}
	for rest := payload; len(rest) > 0; {
		var rec order.FixRecord
		rest = order.NextFix(rest, &rec)
		x.drop(rec.Slot, e.Seq)
	}
}

func (x *fixSessions) drop(slot uint32, seq uint64) {
	if int(slot) >= len(x.pages) {
		return
	}
	pages := x.pages[slot]
	for len(pages) > 0 && pages[0].last <= seq {
		pages[0] = nil
		pages = pages[1:]
	}
	x.pages[slot] = pages
}

// from returns the first number from this one on that has an entry; 0, 0 for none.
func (x *fixSessions) from(slot uint32, number uint64) (at, entry uint64) {
	if int(slot) >= len(x.pages) {
		return 0, 0
	}
	pages := x.pages[slot]
	i := sort.Search(len(pages), func(i int) bool { return pages[i].first+fixPageSize > number })
	for ; i < len(pages); i++ {
		p := pages[i]
		for at := max(number, p.first); at < p.first+fixPageSize; at++ {
			if rise := p.rise[at-p.first]; rise != 0 {
				return at, p.entry + uint64(rise) - 1
			}
		}
	}
	return 0, 0
}

// fixResend answers with the committed entries of reports.
func (r *Replica) fixResend(conn uint64, frame []byte) error {
	var m wire.FixResend
	if err := wire.DecodeFixResend(frame, &m); err != nil {
		return err
	}
	if !r.admitsFix(conn, wire.TypeFixResend, m.ReqID, m.Slot, 0) {
		return nil
	}
	_, seat, code := r.seated(conn, m.Slot, m.Generation, m.Attempt)
	if code != 0 {
		r.reject(conn, wire.TypeFixResend, m.ReqID, m.Slot, code, 0, 0, "the FIX session is not open on this connection in this generation and attempt")
		return nil
	}
	end := min(m.Through+1, seat.next)
	reply := wire.FixResent{ReqID: m.ReqID, Next: max(m.First, end)}
	b, walk := r.resent[:0], copyWalk{}
	for at, seq := r.fix.from(m.Slot, m.First); seq != 0 && at < end; at, seq = r.fix.from(m.Slot, at+1) {
		entry := r.store.Get(seq) // nil for one that is freed
		if len(b) > 0 && len(b)+8+order.Padded(len(entry)) > wire.MaxFixResent {
			reply.Next = at
			break
		}
		if entry == nil {
			continue
		}
		if c := walk.as(&r.fix.copies, seq, m.Slot, at); c != nil {
			b = r.appendCopy(b, c)
			continue
		}
		switch f := r.executedAs(seq, m.Slot, at); {
		case f != nil:
			b = r.appendReport(b, seq, f)
		case r.execs == nil || order.Kind(entry[4]) == order.KindFix:
			b = append(le.AppendUint64(b, at), entry...)
			b = append(b, make([]byte, order.Padded(len(entry))-len(entry))...)
		}
	}
	r.resent, reply.Entries = b, b
	off := len(r.out.buf)
	r.out.buf = wire.AppendFixResent(r.out.buf, r.part, &reply)
	r.out.reply(conn, off, nil)
	return nil
}
