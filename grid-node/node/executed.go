package node

import (
	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// executedTape makes the executions of a stream: records with the symbol, account and ClOrdID
// of their orders. The entries of those may be long before the one that is read, so for as
// long as a frame is filled the whole log is held, where it can be freed at all.
type executedTape struct {
	log     *feed.Reader
	tape    *replica.ExecTape
	frees   bool           // the log can be freed
	whole   bool           // all of it is held
	records []match.Record // of the entry that is read
	part    int            // executions of the next entry that were sent
	out     []byte         // those of the frame
	text    []byte         // one more
	symbol  []byte         // its symbol,
	record  []byte         // and its record
}

// newExecutedTape returns a tape from an entry on; on the loop.
func (p *partition) newExecutedTape(from uint64) *executedTape {
	tape, _ := p.replica.ExecTape(from) // it matches, as all partitions of the node
	frees := p.cfg.Retention == RetentionFreeDownstream
	return &executedTape{tape: tape, frees: frees, whole: !frees}
}

// holdWhole has the log keep all entries that there are; on the loop.
func (w *follower) holdWhole() {
	base, _ := w.inc.store.Base()
	w.log.Hold(base + 1)
	w.taken <- w.held
}

// needsWhole reports whether the log has to be held before entries are looked at.
func (w *follower) needsWhole() bool {
	return w.executed != nil && !w.executed.whole && !w.waits && w.sel.executions() && w.next <= w.log.Committed()
}

// holdFrom lets what is before an entry go.
func (w *follower) holdFrom(seq uint64) {
	w.log.Hold(seq)
	if x := w.executed; x != nil {
		x.whole = !x.frees
	}
}

// load reads what the next entry did, without passing over it.
func (x *executedTape) load() {
	t := *x.tape
	x.records = t.Next(x.records[:0])
}

// names returns which entry tells who a record is of.
func names(r *match.Record, entry uint64) uint64 {
	switch r.Kind {
	case match.Accepted, match.Rejected, match.CancelRejected, match.Replaced:
		return entry // the message
	}
	return r.Order
}

// isOrders reports whether a record is of an order, and not of a book.
func isOrders(k match.Kind) bool { return k >= match.Accepted && k <= match.Triggered }

// append makes text of a record of an entry; false: it is not selected.
func (x *executedTape) append(s *selection, entry []byte, n int) bool {
	r := &x.records[n]
	instruments := x.tape.Instruments()
	// A mass cancel is of no order and may be of all books: also one that is refused.
	if !isOrders(r.Kind) || r.OfSweep() || int(r.Book) >= len(instruments) {
		return false
	}
	in := &instruments[r.Book]
	if !s.mayTake(r.Kind, in.Symbol) {
		return false
	}
	e := wire.Executed{Entry: order.Seq(entry), N: uint32(n) + 1, TimeNs: order.Received(entry), PriceDigits: in.PriceDigits, QtyDigits: in.QtyDigits}
	x.symbol = append(x.symbol[:0], in.Symbol...)
	e.Symbol = x.symbol
	of := entry
	if seq := names(r, e.Entry); seq != e.Entry {
		of = x.log.Read(seq)
	}
	if of != nil && order.Kind(of[4]).IsOrder() {
		e.Account, e.ClOrdID = order.Account(of), order.ClOrdID(of)
	} else {
		e.Flags = wire.ExecutedUnknown
	}
	if !s.of(1<<r.Kind, e.Account, e.Symbol) {
		return false
	}
	x.record = r.AppendTo(x.record[:0])
	e.Record = x.record
	x.text = wire.AppendExecuted(x.text[:0], &e)
	return true
}

// selects reports whether the next entry has an execution that is selected.
func (x *executedTape) selects(s *selection, entry []byte) bool {
	x.load()
	for n := range x.records {
		if x.append(s, entry, n) {
			return true
		}
	}
	return false
}

// add puts what the next entry did into the frame, which has size bytes beside it, and passes
// over the entry. more: only the beginning fits, for it does so much that no frame has it
// all. false: none of it fits, and there is something in the frame already.
func (x *executedTape) add(s *selection, entry []byte, size, room int, first bool) (more, ok bool) {
	if !s.executions() {
		x.tape.Skip()
		return false, true
	}
	x.load()
	mark, from := len(x.out), x.part
	for n := from; n < len(x.records); n++ {
		if !x.append(s, entry, n) {
			continue
		}
		switch full := size+len(x.out)+len(x.text) > room; {
		case full && !first:
			x.out = x.out[:mark]
			return false, false
		case full && len(x.out) > 0:
			x.part = n
			return true, true
		}
		x.out = append(x.out, x.text...)
	}
	x.part = 0
	x.tape.Skip()
	return false, true
}
