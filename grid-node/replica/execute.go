package replica

import (
	"bytes"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A partition that matches, see docs/adr/0049 and 0055: an order is executed on every copy
// when it is stored, and nothing of it is committed, so nothing reported, before the copies
// of the ack set have made the same of it (agree.go). This file has the primary's entries.

// Execution makes a partition match. All members need it; the bounds of the first primary
// become those of the log.
type Execution struct {
	Orders int // that rest in the books of a partition; 65536
	Pages  int // of 64 prices in use; Orders
	Books  int // instruments; 256
	Work   int // counterparties of an order, and orders that one continue visits; 256
	// LogBytes bounds what is held of executions: beyond it orders are refused; 1 GiB. They
	// are freed with the log.
	LogBytes int64
	// Instruments that the primary defines as it begins, if the log has none of that symbol.
	Instruments []machine.Instrument
	// ApartBySession gives orders without tag 2362 the group of their session: they do not
	// trade with others of it. The group is in the entry, so replicas may differ here.
	ApartBySession bool
}

// maxWork keeps the output of an entry within one frame.
const maxWork = 512

func (x *Execution) fill() error {
	x.Orders = or(x.Orders, 1<<16)
	x.Pages = or(x.Pages, x.Orders)
	x.Books = or(x.Books, 256)
	x.Work = or(x.Work, 256)
	if x.LogBytes == 0 {
		x.LogBytes = 1 << 30
	}
	if x.Orders < 1 || x.Orders > machine.MaxResting || x.Pages < 1 || x.Pages > machine.MaxResting || x.Books < 1 || x.Books > machine.MaxBooks || x.Work < 1 || x.Work > maxWork || x.LogBytes < 1 {
		return fmt.Errorf("execution: orders %d, pages %d, books %d, work %d, logBytes %d, allowed: 1..%d, 1..%d, 1..%d, 1..%d, 1 or more",
			x.Orders, x.Pages, x.Books, x.Work, x.LogBytes, machine.MaxResting, machine.MaxResting, machine.MaxBooks, maxWork)
	}
	known := map[string]bool{}
	for i := range x.Instruments {
		in := &x.Instruments[i]
		if err := in.Validate(); err != nil {
			return fmt.Errorf("execution: %w", err)
		}
		if known[in.Symbol] || len(x.Instruments) > x.Books {
			return fmt.Errorf("execution: instrument %q of %d, allowed: each symbol once, at most %d", in.Symbol, len(x.Instruments), x.Books)
		}
		known[in.Symbol] = true
	}
	return nil
}

// execution is the state of a replica of a partition that matches, beside the log's.
type execution struct {
	defined        int // instruments of the options that were found in the log
	reports        *fixReports
	reported       []uint64          // scratch
	resent         []byte            // scratch
	pushes         []execOf          // scratch
	views          []bookView        // answers that wait until their entry is committed
	tapes          []bookTape        // of books that are read order by order
	instruction    order.Instruction // of the message at hand
	wants          bool              // the OpenSession at hand asks for executions
	execDifferedAt int64             // when a difference was last reported, 0 for never
	execDiffers    uint64            // the last entry that a difference was seen after, 0 for none
}

// beginExecution makes both states those of a partition that matches, if it does.
func (r *Replica) beginExecution() {
	if r.opt.Execution != nil {
		r.live.Match()
		r.base.Match()
		r.execs, r.reports = &execLog{}, &fixReports{}
		r.execs.lent(r.store.Lend)
		r.execs.begin(0, match.Position{})
	}
}

// executionDue reports whether this replica has entries of the exchange to make.
func (r *Replica) executionDue() bool {
	b := r.live.Books
	return r.role == RolePrimary && (!b.Ready() || b.Pending() || r.undefined() >= 0 || r.namesDue() || r.calendarDue())
}

// match prepares a machine, after Begin, for what the partition does.
func (r *Replica) match(m *machine.Machine) {
	if r.opt.Execution != nil {
		m.Match()
	}
	r.run(m)
}

// run gives a machine, after Begin, what runs functions.
func (r *Replica) run(m *machine.Machine) {
	if order.FunctionsBuilt && r.opt.Functions != nil {
		m.Run(r.opt.Functions.Code)
	}
}

// acceptExecute is accept in a partition that matches.
func (r *Replica) acceptExecute(conn uint64, m *wire.Submit, hint *Hint) {
	b := r.live.Books
	bad := func(err *order.Error) {
		r.reject(conn, wire.TypeSubmit, m.ClientSeq, m.Slot, wire.CodeBadFIX, err.Tag, 0, err.Error())
	}
	if err := r.layouts.Parse(m.Payload, &r.order); err != nil {
		bad(err)
		return
	}
	if r.awaitsVersion() {
		r.rejectVersion(conn, wire.TypeSubmit, m.ClientSeq, m.Slot)
		return
	}
	f := &r.order.Fields
	id := m.Payload[f.ClOrdIDOff:][:f.ClOrdIDLen]
	hash := r.hashed(hint, id)
	if r.duplicateExecute(conn, m, id, hash) {
		return
	}
	full := store.ErrCapacity{Used: r.execs.bytes() + r.reports.bytes(), Limit: r.opt.Execution.LogBytes}
	switch {
	case !b.Ready() || r.undefined() >= 0:
		r.rejectSubmit(conn, m, wire.CodeOverloaded, 0, "the instruments are being defined; retry")
		return
	case len(m.Payload) > order.MaxPayload-order.InstructionSize:
		r.rejectSubmit(conn, m, wire.CodeTooLarge, order.MaxPayload-order.InstructionSize, "the order is longer than the limit")
		return
	case full.Used+int64(b.MostRecords())*match.RecordBytes > full.Limit:
		r.rejectCapacity(conn, wire.TypeSubmit, m.ClientSeq, m.Slot, &full, fmt.Sprintf("executions that are held use %d of %d bytes; they are freed with the log", full.Used, full.Limit))
		return
	}
	msg := m.Payload
	if r.decides() && !mutant(mutExecuteUndecided) {
		d := r.decide(msg, &r.order)
		if d.Message == nil {
			r.rejectDecided(conn, m, d)
			return
		}
		switch msg = d.Message; {
		case len(msg) > order.MaxPayload-order.InstructionSize:
			r.rejectSubmit(conn, m, wire.CodeFunctionRefused, reasonOther, string(textTooLong))
			return
		case !bytes.Equal(msg, m.Payload):
			if err := r.layouts.Parse(msg, &r.order); err != nil {
				bad(err)
				return
			}
		}
	}
	terms := r.layouts.Terms(msg, &r.order)
	i := &r.instruction
	if err := b.ResolveTo(i, msg, &r.order, &terms, b.OwnerOf(m.Slot)); err != nil {
		bad(err)
		return
	}
	if r.opt.Execution.ApartBySession {
		if err := apart(i); err != nil {
			bad(err)
			return
		}
	}
	if r.live.Guard != nil {
		in := &b.Instruments()[i.Book]
		if why := r.limited(&machine.Offer{Session: m.Slot, Message: msg, Fields: f, Orig: i.Orig, Digits: [2]uint8{in.PriceDigits, in.QtyDigits}}); why != limits.None {
			r.rejectLimit(conn, m, why)
			return
		}
	}
	r.text = append(i.Append(r.text[:0]), msg...)
	var e order.Entry
	e.Kind, e.Session, e.ClientSeq = order.KindExecute, m.Slot, m.ClientSeq
	e.Fields.Instruct(f)
	if err := r.append(&e, r.text, hash, pending{conn: conn, requestID: m.ClientSeq, slot: m.Slot, kind: pendingSubmit}); err != nil {
		r.rejectAppend(conn, wire.TypeSubmit, m.ClientSeq, m.Slot, err)
	}
}

// ownGroup is the first of the groups of sessions: that of an owner is so much higher.
const ownGroup = 1 << 31

// apart gives an order without a group that of its owner.
func apart(i *order.Instruction) *order.Error {
	switch {
	case i.Op == order.InstructCancel:
	case i.Group >= ownGroup:
		return &order.Error{Tag: 2362, Reason: order.ReasonNumber, Value: fmt.Sprint(i.Group), Allowed: "a number from 1 to 2147483647, in a grid that keeps the orders of a session apart"}
	case i.Group == 0:
		i.Group = ownGroup | i.Owner
	}
	return nil
}

// duplicateExecute answers an order whose ClOrdID is that of an entry that is held, or of an
// order that rests.
func (r *Replica) duplicateExecute(conn uint64, m *wire.Submit, id []byte, hash uint32) bool {
	if at, dup := r.store.FindHinted(hash, id); dup {
		seq := order.Seq(r.store.At(at))
		if seq <= r.commit {
			r.rejectDuplicate(conn, m.ClientSeq, m.Slot, seq)
		} else {
			r.confirm(read{conn: conn, reqID: m.ClientSeq, slot: m.Slot, kind: readDuplicate, seq: seq, need: seq})
		}
		return true
	}
	seq, rests := r.live.Books.Find(id, 0)
	if rests { // its entry is freed, so it was committed
		r.rejectDuplicate(conn, m.ClientSeq, m.Slot, seq)
	}
	return rests
}

// undefined returns which instrument is to be defined next, -1 for none.
func (r *Replica) undefined() int {
	b, x := r.live.Books, r.opt.Execution
	if r.defined < len(x.Instruments) { // each is looked up until it is there
		for ; r.defined < len(x.Instruments); r.defined++ {
			if _, known := b.Book(x.Instruments[r.defined].Symbol); !known {
				return r.defined
			}
		}
	}
	return -1
}

// Trade gives a replica of a partition that matches all its instruments, those it has and
// further ones. As a primary it defines them with its next step, each in an entry.
func (r *Replica) Trade(list []machine.Instrument) {
	if r.opt.Execution != nil {
		r.opt.Execution.Instruments, r.defined, r.restTill = list, 0, 0
	}
}

// Traded returns how many of its instruments the log of the replica does not have, and the
// symbols of those that it has otherwise.
func (r *Replica) Traded() (missing int, differ []string) {
	if r.opt.Execution == nil {
		return 0, nil
	}
	b := r.live.Books
	for i := range r.opt.Execution.Instruments {
		in := &r.opt.Execution.Instruments[i]
		switch n, known := b.Book(in.Symbol); {
		case !known:
			missing++
		case b.Instruments()[n] != *in:
			differ = append(differ, in.Symbol)
		}
	}
	return missing, differ
}

// mayLogExecution reports whether an entry of the exchange may be logged now.
func (r *Replica) mayLogExecution() bool {
	return r.makesEntries() && !r.parking() && !r.closing() && !r.windowFull()
}

// logExecution appends what the exchange does by itself, as a primary: its bounds and its
// instruments at first, and one continue per wake-up while something is pending.
func (r *Replica) logExecution() {
	b, x := r.live.Books, r.opt.Execution
	if !b.Ready() {
		m := order.Market{Op: order.MarketConfig, Values: [5]uint64{uint64(x.Orders), uint64(x.Pages), uint64(x.Books), uint64(x.Work), r.self.Boot * 0x9e3779b97f4a7c15}}
		_ = r.logMarket(&m, pending{}) // else later
	}
	r.logNames()
	for b.Ready() {
		i := r.undefined()
		if i < 0 || len(b.Instruments()) == machine.MaxBooks || r.logMarket(ptr(x.Instruments[i].Market(uint16(len(b.Instruments())))), pending{}) != nil {
			break
		}
	}
	r.logLapses()
	if r.schedule.calendar != nil {
		r.logCalendar()
	}
	if b.Pending() && r.mayLogExecution() && (!mutant(mutContinueForgotten) || r.epoch == 1) {
		_ = r.append(&order.Entry{Kind: order.KindContinue}, nil, 0, pending{}) // a full store: later
	}
}

func ptr[T any](v T) *T { return &v }

// logMarket appends an entry of kind market, if one may be appended now and is valid.
func (r *Replica) logMarket(m *order.Market, by pending) error {
	if !r.mayLogExecution() {
		return fmt.Errorf("market operation %d: not now, allowed: by a primary with a place in its window; retry", m.Op)
	}
	e := order.Entry{Kind: order.KindMarket, TimeNs: r.now.Wall}
	r.text = m.Append(r.text[:0])
	if err := r.live.Check(&e, r.text); err != nil {
		return err
	}
	return r.append(&e, r.text, 0, by)
}

// Market makes the exchange do something on a book, or on all: set a state, uncross, set
// a band, cancel many. The caller flushes. It is refused where this replica is no primary
// that may make an entry now, and where no exchange can do it.
func (r *Replica) Market(now Time, op *match.Op, out *Outbox) error {
	if r.opt.Execution == nil || r.role != RolePrimary || r.primary.suspended {
		return fmt.Errorf("market operation: this replica is %s, allowed: the primary of a partition that matches", r.role)
	}
	r.now, r.out, r.restTill = now, out, 0
	defer func() { r.out = nil }()
	return r.logMarket(&order.Market{Op: order.MarketApply, Kind: uint8(op.Kind), Side: uint8(op.Side), State: uint8(op.State), Book: op.Book,
		Values: [5]uint64{uint64(op.Price), uint64(op.Stop), uint64(op.Until), uint64(op.Owner)}}, pending{})
}
