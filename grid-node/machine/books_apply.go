package machine

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// apply executes an entry; lineage is that of before.
func (b *Books) apply(e *order.Entry, payload []byte, lineage uint64) {
	b.out, b.cursors, b.reports, b.value = b.out[:0], b.cursors[:0], b.reports[:0], [2]uint64{}
	if b.tap != nil {
		b.tap.Changes = b.tap.Changes[:0]
	}
	switch e.Kind {
	case order.KindSessionOpen:
		b.owners.open(e.Session)
	case order.KindExecute:
		b.execute(e, payload)
		b.hintID(e.Seq + 1)
	case order.KindFix:
		if order.IsLapse(payload) {
			b.lapse(e, payload)
			return
		}
		b.massCancel(e, payload)
	case order.KindMarket:
		b.market(e, payload)
	case order.KindContinue:
		b.do(&match.Op{Kind: match.Continue, Time: e.TimeNs}, nil)
	case order.KindNoop:
		if lineage != 0 && le.Uint64(payload) != lineage && !mutant(mutLineageOpen) {
			b.haltAll(e.TimeNs)
		}
	}
}

// do applies an operation to the engine, and follows which orders rest. clOrdID is that of the
// message that asks for it, nil for none.
func (b *Books) do(op *match.Op, clOrdID []byte) {
	from, shown := len(b.out), len(b.Shown())
	b.out = b.engine.Apply(op, b.out)
	b.name(b.Shown()[shown:], op)
	for i := from; i < len(b.out); i++ {
		r := &b.out[i]
		if r.Owner >= fixOwner {
			b.report(op, i, clOrdID)
		}
		switch r.Kind {
		case match.Filled:
			if r.Leaves == 0 {
				b.resting.drop(r.Order)
			}
		case match.Cancelled:
			b.resting.drop(r.Order)
		case match.StateChanged, match.AuctionPrice:
			b.follow(r.Book)
		}
	}
}

// hintID starts to load where the next entry's order will be, by its id. The tables are larger than caches, and each order
// has a place of its own there.
func (b *Books) hintID(id uint64) {
	b.engine.HintFar(&match.Op{Kind: match.Cancel, Orig: id})
	b.resting.hintID(id)
}

// Hint starts to load where an order will be by its ClOrdID, of a session that is none of FIX. It is called an order or more
// ahead, and changes nothing; a partition that stores orders has no books.
func (b *Books) Hint(clOrdID []byte) {
	if b != nil && b.resting.rows != nil {
		b.resting.hintName(clOrdID)
	}
}

func (b *Books) execute(e *order.Entry, payload []byte) {
	clOrdID := payload[e.Fields.ClOrdIDOff:][:e.Fields.ClOrdIDLen]
	var i order.Instruction
	i.Read(payload)
	var op match.Op // field by field: as a whole it would be copied before what was just written is there
	op.Time, op.ID, op.Orig, op.Owner, op.Party, op.Group = e.TimeNs, e.Seq, i.Orig, i.Owner, b.party, i.Group
	op.Book, op.Price, op.Stop, op.Qty, op.Display = i.Book, i.Price, i.Stop, i.Qty, i.Display
	op.Side, op.Type, op.TIF, op.SMP = match.Side(i.Side), match.Type(i.Type), match.TIF(i.TIF), match.SMP(i.SMP)
	op.Post = i.Flags&order.InstructPost != 0
	switch i.Op {
	case order.InstructEnter:
		op.Kind = match.Enter
		b.do(&op, clOrdID)
		if b.engine.Entered() {
			b.resting.add(e.Seq, e.Seq, clOrdID, i.Owner, b.value)
		}
	case order.InstructCancel:
		op.Kind = match.Cancel
		b.do(&op, clOrdID)
	case order.InstructReplace:
		op.Kind = match.Replace
		b.replace(&op, clOrdID)
	}
}

// replace gives the order that rests the id of this entry, if the book does.
func (b *Books) replace(op *match.Op, clOrdID []byte) {
	first := b.resting.firstOf(op.Orig)
	b.value = b.resting.valueOf(op.Orig)
	b.do(op, clOrdID)
	if !slices.ContainsFunc(b.out, func(r match.Record) bool { return r.Kind == match.Replaced }) {
		return
	}
	b.resting.drop(op.Orig)
	if _, rests := b.engine.Find(op.ID); rests && !mutant(mutOldClOrdID) {
		b.resting.add(op.ID, first, clOrdID, op.Owner, b.value)
	}
}

func (b *Books) market(e *order.Entry, payload []byte) {
	m := order.MarketOf(payload)
	var err error
	switch m.Op {
	case order.MarketConfig:
		var c match.Config
		if c, err = configOf(&m); err == nil {
			err = b.configure(c)
		}
	case order.MarketDefine:
		i := instrumentOf(&m)
		if err = b.define(i); err == nil && i.State != match.Closed {
			b.do(&match.Op{Kind: match.SetState, Time: e.TimeNs, Book: m.Book, State: i.State}, nil)
		}
	case order.MarketCalendar, order.MarketScheduled:
		b.scheduled(e, &m)
	case order.MarketApply:
		b.do(&match.Op{
			Kind: match.OpKind(m.Kind), Time: e.TimeNs, ID: e.Seq, Book: m.Book, Side: match.Side(m.Side), State: match.State(m.State),
			Price: int64(m.Values[0]), Stop: int64(m.Values[1]), Until: int64(m.Values[2]), Owner: uint32(m.Values[3]),
		}, nil)
	}
	if err != nil { // memory: a copy that cannot execute what the others can is none
		panic(fmt.Sprintf("entry %d: %v", e.Seq, err))
	}
}

// haltAll halts every book that trades or collects orders: executions that were reported
// may be gone with the entries of the lineage before. Persons open them.
func (b *Books) haltAll(now int64) {
	for n := range b.instruments {
		b.do(&match.Op{Kind: match.SetState, Time: now, Book: uint16(n), State: match.Halted}, nil)
	}
}
