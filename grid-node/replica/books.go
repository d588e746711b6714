package replica

import (
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A book is read as it is after the last entry that is stored, and the answer leaves when
// that entry is committed: then every copy in sync has executed it in the same way, and no
// copy cuts its log. Reading visits the levels that are asked for, and nothing else.

// bookView is an answer that waits.
type bookView struct {
	t           wire.Type // of the question
	conn, reqID uint64
	need        uint64 // the entry that has to be committed
	since       int64  // Mono
	frame       []byte
}

const (
	mostViews    = 64              // that wait; a further one is refused
	viewPatience = 5 * time.Second // for the entry to be committed
	tooManyViews = "too many answers about books wait for their entry to be committed; retry, slower"
)

// readBook answers a ReadBook, or has its answer wait.
func (r *Replica) readBook(conn uint64, frame []byte) error {
	var m wire.ReadBook
	if err := wire.DecodeReadBook(frame, &m); err != nil {
		return err
	}
	refuse := func(code wire.Code, text string) {
		r.reject(conn, wire.TypeReadBook, m.ReqID, 0, code, 0, 0, text)
	}
	if r.execs == nil {
		refuse(wire.CodeUnsupported, "the partition stores orders and does not match")
		return nil
	}
	if r.role != RolePrimary && r.role != RoleBackup {
		r.notPrimary(conn, wire.TypeReadBook, m.ReqID, 0)
		return nil
	}
	book, known := r.live.Books.Book(string(m.Symbol))
	switch {
	case !known:
		refuse(wire.CodeUnknownInstrument, fmt.Sprintf("symbol %q has no book in %s", m.Symbol, r.part))
		return nil
	case len(r.views) == mostViews:
		refuse(wire.CodeOverloaded, tooManyViews)
		return nil
	}
	last, hash := r.store.Last()
	answer := wire.AppendBookLevels(nil, r.part, r.levels(&m, book, last, hash))
	r.view(bookView{t: wire.TypeReadBook, conn: conn, reqID: m.ReqID, need: last, since: r.now.Mono, frame: answer}, mutant(mutBookUncommitted))
	return nil
}

// view sends an answer, or has it wait until its entry is committed.
func (r *Replica) view(v bookView, early bool) {
	if v.need <= r.commit || early {
		r.sendBook(&v)
		return
	}
	r.views = append(r.views, v)
}

// levels makes the answer.
func (r *Replica) levels(m *wire.ReadBook, book uint16, last, hash uint64) *wire.BookLevels {
	b := r.live.Books
	in, p := &b.Instruments()[book], b.Phase(book)
	a := &wire.BookLevels{ReqID: m.ReqID, Seq: last, Hash: hash, ExecSeq: b.Position().ExecSeq, Last: p.Last, Until: p.Until, Low: p.Low, High: p.Top,
		State: uint8(p.State), Book: book, PriceDigits: in.PriceDigits, QtyDigits: in.QtyDigits}
	if p.Traded {
		a.Flags = wire.BookTraded
	}
	var space [2 * wire.MostLevels]match.Level
	list := b.Depth(book, match.Buy, int(m.Depth), space[:0])
	a.Bids = uint16(len(list))
	list = b.Depth(book, match.Sell, int(m.Depth), list)
	a.Asks = uint16(len(list)) - a.Bids
	for i := range list {
		a.Levels = wire.AppendLevel(a.Levels, &wire.BookLevel{Price: list[i].Price, Qty: list[i].Qty, Orders: list[i].Count})
	}
	return a
}

func (r *Replica) sendBook(v *bookView) {
	off := len(r.out.buf)
	r.out.buf = append(r.out.buf, v.frame...)
	r.out.reply(v.conn, off, nil)
}

// answerBooks sends the answers whose entry is committed, and refuses those that cannot be.
func (r *Replica) answerBooks() {
	serves := r.role == RolePrimary || r.role == RoleBackup
	kept := r.views[:0]
	for i := range r.views {
		switch v := &r.views[i]; {
		case !serves:
			r.notPrimary(v.conn, v.t, v.reqID, 0)
		case v.need <= r.commit:
			r.sendBook(v)
		case r.now.Mono-v.since > int64(viewPatience):
			r.reject(v.conn, v.t, v.reqID, 0, wire.CodeOverloaded, 0, v.need-r.commit, fmt.Sprintf("entry %d was not committed within %v; retry", v.need, viewPatience))
		default:
			kept = append(kept, *v)
		}
	}
	clear(r.views[len(kept):])
	r.views = kept
	r.endTapes()
}

// market logs an operation of the exchange that a client asks for.
func (r *Replica) market(conn uint64, frame []byte) error {
	var m wire.Market
	if err := wire.DecodeMarket(frame, &m); err != nil {
		return err
	}
	refuse := func(code wire.Code, text string) {
		r.reject(conn, wire.TypeMarket, m.ReqID, 0, code, 0, 0, text)
	}
	switch {
	case r.execs == nil:
		refuse(wire.CodeUnsupported, "the partition stores orders and does not match")
		return nil
	case r.role != RolePrimary:
		r.notPrimary(conn, wire.TypeMarket, m.ReqID, 0)
		return nil
	case r.refusesClients(conn, wire.TypeMarket, m.ReqID, 0):
		return nil
	}
	book, known := r.live.Books.Book(string(m.Symbol))
	if !known {
		refuse(wire.CodeUnknownInstrument, fmt.Sprintf("symbol %q has no book in %s", m.Symbol, r.part))
		return nil
	}
	e := order.Market{Op: order.MarketApply, Kind: m.Op, State: m.State, Book: book, Values: [5]uint64{uint64(m.Price), uint64(m.Top), uint64(m.Until)}, Symbol: m.Reason}
	if err := r.logMarket(&e, pending{conn: conn, requestID: m.ReqID, kind: pendingMarket}); err != nil {
		refuse(wire.CodeOverloaded, err.Error())
	}
	return nil
}

// marketDone answers a Market whose entry is committed, by what it did.
func (r *Replica) marketDone(conn, reqID, seq uint64) {
	a := wire.MarketDone{ReqID: reqID, Seq: seq}
	payload := order.Payload(r.store.Get(seq))
	a.State = uint8(r.live.Books.Phase(order.MarketOf(payload).Book).State)
	first, n := r.execs.of(seq)
	for i := range n {
		switch rec := r.execs.records.at(first + i); {
		case rec.Kind == match.Rejected || rec.Kind == match.CancelRejected:
			a.Reason = uint8(rec.Reason)
		case rec.Kind == match.StateChanged && rec.Book == order.MarketOf(payload).Book:
			a.State = rec.Flags
		}
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendMarketDone(r.out.buf, r.part, &a)
	r.out.reply(conn, off, nil)
}
