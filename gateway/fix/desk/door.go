package desk

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// state of a door.
type state uint8

const (
	closed  state = iota // no connection of a counterparty wants it
	opening              // FixOpen is not answered
	open
	held // open, and to be bound to another connection to the grid
)

// door is a session at this gateway, for the time of a connection of its counterparty. It
// is its fix.Store.
type door struct {
	d       *Desk
	l       *line
	f       *fix.Session
	id      client.FixSession
	version fix.Version

	state   state
	marked  bool // in line.dirty
	logon   fix.Opening
	late    bool // the Logon's number is too low: it is opened to say so
	giveUp  int64
	request uint64 // of the FixOpen under way, 0: none
	retryAt int64

	target  bool   // it gets copies of the reports of sources
	sources []byte // as the grid is told them
	tooMany error  // why it cannot get them
	naming  bool   // the grid is to be told
	named   uint64 // by this FixStep, 0: none
	unnamed unnamed

	form                      uint8 // of the reports of the generation
	mode                      uint8 // in which its orders are cancelled when it is gone
	day                       uint32
	slot, generation, attempt uint32

	in    uint64 // the number expected next
	sent  uint64 // the last number that was given
	logOn bool   // the number after sent is there already: for the answer to the Logon
	base  uint64 // the last number that has an entry, or needs none

	items []*item // orders and refusals without an answer
	bytes int     // of them
	steps []fix.Sent
	under []fix.Sent // those whose numbers are asked for
	step  uint64     // by this FixStep, 0: none

	fetch fetch
	pages page
}

// item is an order, or a refusal by the gateway: what is behind it names it.
type item struct {
	seq     uint64
	payload []byte // of an order
	record  []byte // of a refusal by the gateway: its body in the log; nil: this is an order
	kind    byte   // MsgType of an order
	readAt  int64  // Mono
	asked   bool
	request uint64 // of the FixStep of a refusal
}

// maxItemBytes bounds the messages of a session that the grid has not answered.
const maxItemBytes = 1 << 20

// Bind implements fix.Store.
func (x *door) Bind(f *fix.Session) { x.f = f }

// Next implements fix.Store.
func (x *door) Next() (in, out uint64) { return x.in, x.sent + 1 }

// Received implements fix.Store.
func (x *door) Received(next uint64) { x.in = next }

// Busy implements fix.Store.
func (x *door) Busy() bool {
	most := x.d.cfg.MaxInFlight
	return len(x.items) >= most || x.bytes >= maxItemBytes || len(x.steps)+len(x.under) >= max(most, 16)
}

// openPatience is how long another gateway may hold a session: it asks its counterparty
// whether it is there, and the primary waits two seconds for its answer.
const openPatience = int64(3500e6)

// Open implements fix.Store.
func (x *door) Open(now fix.Now, o fix.Opening) {
	x.leave()
	x.state, x.logon, x.late, x.request = opening, o, false, 0
	x.day, x.giveUp, x.retryAt = dayOf(now.Wall), now.Mono+openPatience, 0
	x.l.mark(x)
}

// Closed implements fix.Store.
func (x *door) Closed() {
	if x.state == open {
		x.Here(false) // so another gateway need not wait
	}
	x.leave()
	x.state = closed
}

// leave forgets what was asked for.
func (x *door) leave() {
	if x.l.doors[x.slot] == x {
		delete(x.l.doors, x.slot)
	}
	if x.request != 0 {
		delete(x.l.asking, x.request)
	}
	if x.named != 0 {
		delete(x.l.asking, x.named)
	}
	x.naming, x.named, x.unnamed = false, 0, unnamed{}
	x.endFetch()
	x.dropLanded()
	for _, i := range x.items {
		x.forget(i)
	}
	x.items, x.steps, x.under, x.step, x.bytes, x.pages = nil, nil, nil, 0, 0, page{}
	x.logOn = false
}

func (x *door) forget(i *item) {
	if i.request != 0 {
		delete(x.l.asking, i.request)
	}
	if i.payload != nil {
		x.d.under--
		x.bytes -= len(i.payload)
	}
}

// Here implements fix.Store.
func (x *door) Here(here bool) {
	if x.state == open && x.l.road != nil {
		x.l.out = wire.AppendFixHere(x.l.out, x.l.id, &wire.FixHere{Slot: x.slot, Attempt: x.attempt, Here: here})
	}
}

// Take implements fix.Store.
func (x *door) Take(now fix.Now, m fix.Sent) {
	switch {
	case x.logOn: // the answer to the Logon, or a Logout in its place
		x.logOn = false
		x.sent++
		x.f.Numbered(now, x.sent, m)
		return
	case x.state != open && x.state != held:
		return
	}
	m.Body = bytes.Clone(m.Body)
	if m.Kept && m.Ref > x.last() && len(m.Body) <= order.MaxFixBody-64 {
		x.items = append(x.items, &item{seq: m.Ref, record: appendGatewayRefusal(nil, &m), readAt: now.Mono})
	} else {
		x.steps = append(x.steps, m)
	}
	x.l.mark(x)
}

// last returns the last number that is in the chain.
func (x *door) last() uint64 {
	if n := len(x.items); n > 0 {
		return x.items[n-1].seq
	}
	return x.base
}

// submit gives an order to the grid.
func (x *door) submit(kind byte, m *fix.Message) {
	i := &item{seq: m.Seq(), payload: bytes.Clone(m.Raw()), kind: kind, readAt: m.Now().Mono}
	x.items = append(x.items, i)
	x.bytes += len(i.payload)
	x.d.under++
	x.l.mark(x)
}

// waits reports whether something is asked for.
func (x *door) waits() bool {
	return x.request != 0 || x.step != 0 || x.named != 0 || x.fetch.request != 0 || len(x.items) > 0 && x.items[0].asked
}

// flush asks for what is to be asked for; false: it has to be called again.
func (x *door) flush(now fix.Now) (done bool) {
	switch {
	case x.state == closed:
		return true
	case now.Mono < x.retryAt:
		return false
	case x.state != open:
		x.open(now)
		return true
	}
	x.nameSources()
	x.sendFetch()
	if x.fetch.first { // what comes later waits
		return true
	}
	prev := x.base
	for _, i := range x.items {
		if !i.asked {
			i.asked = true
			x.ask(i, prev)
		}
		prev = i.seq
	}
	if len(x.steps) > 0 && x.step == 0 {
		n := min(len(x.steps), 255)
		x.under, x.steps = x.steps[:n:n], x.steps[n:]
		op := order.FixStep
		if x.mode != 0 && slices.ContainsFunc(x.under, func(m fix.Sent) bool { return m.Left }) {
			op = order.FixLeave
		}
		x.l.records = append(x.l.records, x.record(op, uint8(n), x.in, prev, nil))
		x.step = 1 // line.step gives it its number
	}
	return true
}

// open asks for the session.
func (x *door) open(now fix.Now) {
	if x.request != 0 {
		return
	}
	if x.version == fix.FIXT11 && x.l.road.features&wire.FeatureFix50 == 0 {
		x.unknownVersion()
		return
	}
	if x.tooMany != nil && x.state == opening { // the grid is not asked, which would end another connection of the session
		x.f.NotOpened(fix.LogonNoGrid, x.tooMany)
		return
	}
	x.request = x.l.next()
	m := wire.FixOpen{ReqID: x.request, Epoch: x.l.epoch, IDHi: x.id[0], IDLo: x.id[1], Day: x.day, Form: formMass}
	if x.target {
		m.Form, m.Flags = formCopies, wire.FixOpenCopies
	}
	if mode, graceMs := x.cancels(); mode != order.LapseNever {
		m.Form, m.Mode, m.GraceMs = formLapse, uint8(mode), graceMs
	}
	if x.version == fix.FIXT11 {
		m.Flags |= wire.FixOpenFix50
	}
	if x.state == held {
		m.Held = x.attempt
	} else {
		m.SentNs = x.logon.SentNs
		if m.Seq = x.logon.Seq; x.late {
			m.Seq = 0
			m.Flags |= wire.FixOpenLate
		}
		if x.logon.Reset {
			m.Flags |= wire.FixOpenReset
		}
	}
	x.l.asking[x.request] = x
	x.l.out = wire.AppendFixOpen(x.l.out, x.l.id, &m)
}

// unknownVersion ends the connection of a session of FIX 5.0 SP2: the primary is of a release
// that does not know that.
func (x *door) unknownVersion() {
	err := fmt.Errorf("tag 8 (BeginString) is FIXT.1.1, and node %s is of a release that does not know FIX 5.0 SP2; allowed: FIX.4.2 and FIX.4.4 until all nodes are updated", x.l.road.address)
	if x.state == held {
		x.lost(err)
		return
	}
	x.f.NotOpened(fix.LogonNoGrid, err)
}

// cancels returns when the grid cancels orders of the session because it is gone.
func (x *door) cancels() (mode order.LapseMode, graceMs uint16) {
	p := x.f.Profile()
	switch p.CancelOnDisconnect {
	case fix.CancelOnLoss:
		mode = order.LapseOnLoss
	case fix.CancelOnLogout:
		mode = order.LapseOnLogout
	default:
		return order.LapseNever, 0
	}
	return mode, uint16(min(max(p.CancelGrace.Milliseconds(), 1), order.MaxGraceMs))
}

var errTaken = errors.New("another gateway has it")

// cancelsAsAsked refuses the logon if the mode that is in force is another one.
func (x *door) cancelsAsAsked(inForce uint8) bool {
	mode, _ := x.cancels()
	if uint8(mode) == inForce {
		return true
	}
	x.f.NotOpened(fix.LogonNoGrid, errors.New("cancelOnDisconnect is not in force: the node is of a release before; allowed: when all nodes are updated, or mode None"))
	return false
}

func (x *door) record(op order.FixOp, outs uint8, in, prev uint64, body []byte) wire.FixStepRecord {
	return wire.FixStepRecord{Slot: x.slot, Generation: x.generation, Attempt: x.attempt, Op: uint8(op), Outs: outs, In: in, Prev: prev, Body: body}
}

// ask gives an item to the grid.
func (x *door) ask(i *item, prev uint64) {
	l := x.l
	if i.record == nil {
		l.out = wire.AppendFixSubmit(l.out, l.id, &wire.FixSubmit{Seq: i.seq, Slot: x.slot, Generation: x.generation, Attempt: x.attempt, Epoch: l.epoch, Prev: prev, Payload: i.payload})
		return
	}
	i.request = l.next()
	l.asking[i.request] = x
	l.out = wire.AppendFixStep(l.out, l.id, &wire.FixStep{ReqID: i.request, Epoch: l.epoch, Records: []wire.FixStepRecord{x.record(order.FixRefusal, 1, i.seq+1, prev, i.record)}})
}

// cut is the end of the connection to the grid.
func (x *door) cut() {
	if x.state == open {
		x.state = held
	}
	x.request, x.retryAt, x.fetch.request, x.named = 0, 0, 0, 0
	x.again()
	for _, i := range x.items {
		i.asked, i.request = false, 0
	}
}

// again asks once more for the numbers that were asked for: if they were given, they are
// gap filled.
func (x *door) again() {
	x.steps = append(x.under, x.steps...)
	x.under, x.step = nil, 0
}
