package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// In the world match clients look at books, of any process.

// readBook asks for a book in place of an order, now and then.
func (r *reader) readBook() bool {
	rng := r.c.w.profile.match
	if rng == nil || rng.IntN(3) > 0 {
		return false
	}
	book := uint16(rng.IntN(len(matchInstruments)))
	r.books[r.c.reqID] = book
	r.conn.send(wire.AppendReadBook(nil, partition, &wire.ReadBook{ReqID: r.c.reqID, Depth: wire.MostLevels, Symbol: []byte(matchInstruments[book].Symbol)}))
	return true
}

// shownBook is a book that a process has shown.
type shownBook struct {
	book uint16
	wire.BookLevels
}

// checkBook: a book is shown as it is after a committed entry, on whose executions all
// members agree (I35). What it has is compared at the end.
func (w *world) checkBook(p *process, c *conn, frame []byte, lineage uint64) {
	r, ok := c.user.(*reader)
	if !ok || p.spoiled {
		return
	}
	var m wire.BookLevels
	if err := wire.DecodeBookLevels(frame, &m); err != nil {
		w.violation("wire", "%s: %v", p.name, err)
		return
	}
	book, asked := r.books[m.ReqID]
	if !asked {
		return // of a connection before
	}
	t := w.shown(lineage)
	if m.Seq > uint64(len(t.hashes)) || m.Seq > 0 && t.hashes[m.Seq-1] != m.Hash {
		w.violation("I35", "%s shows a book after entry %d, which is not committed", p.name, m.Seq)
		return
	}
	if x := w.check.executions[m.Hash]; x.at.ExecSeq != m.ExecSeq {
		w.violation("I35", "%s shows a book after %d records, entry %d ends with %d", p.name, m.ExecSeq, m.Seq, x.at.ExecSeq)
		return
	}
	w.checkAgreed(p, "shows a book", m.Seq)
	m.Levels = bytes.Clone(m.Levels)
	if w.check.books == nil {
		w.check.books = map[uint64][]shownBook{}
	}
	w.check.books[m.Hash] = append(w.check.books[m.Hash], shownBook{book, m})
	w.stats.Books++
}

// shows compares a book with what the judge has; "" if it is the same.
func (j *judge) shows(v *shownBook) string {
	if int(v.book) >= len(j.states) {
		return fmt.Sprintf("book %d is shown, and not defined", v.book)
	}
	if got := match.State(v.State); got != j.states[v.book] {
		return fmt.Sprintf("book %d is shown in state %d, it is in %d", v.book, got, j.states[v.book])
	}
	rest := v.Levels
	for _, side := range []match.Side{match.Buy, match.Sell} {
		n := int(v.Bids)
		if side == match.Sell {
			n = int(v.Asks)
		}
		want := j.levels(v.book, side)
		if len(want) > wire.MostLevels {
			want = want[:wire.MostLevels]
		}
		got := make([]wire.BookLevel, 0, n)
		for range n {
			got = append(got, wire.LevelOf(rest))
			rest = rest[wire.BookLevelSize:]
		}
		if !slices.Equal(got, want) {
			return fmt.Sprintf("side %d of book %d is shown as %+v, it is %+v", side, v.book, got, want)
		}
	}
	return ""
}

// levels adds up the orders that rest, the best price first.
func (j *judge) levels(book uint16, side match.Side) []wire.BookLevel {
	at := map[int64]wire.BookLevel{}
	for _, o := range j.orders {
		if o.book == book && o.side == side && o.rests {
			l := at[o.price]
			at[o.price] = wire.BookLevel{Price: o.price, Qty: l.Qty + o.leaves, Orders: l.Orders + 1}
		}
	}
	list := make([]wire.BookLevel, 0, len(at))
	for _, l := range at {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b wire.BookLevel) int {
		if side == match.Buy {
			a, b = b, a
		}
		return cmp.Compare(a.Price, b.Price)
	})
	return list
}
