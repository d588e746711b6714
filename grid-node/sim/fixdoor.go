package sim

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

type doorState uint8

const (
	doorOpening doorState = iota // its FixOpen is not answered
	doorHeld                     // open, and to be bound to another connection
	doorOpen
)

// fixDoor is a session at a gateway, for one connection of the counterparty.
type fixDoor struct {
	g       *fixGateway
	party   *fixParty
	link    *fixLink
	logon   fixMsg
	state   doorState
	take    bool
	late    bool // its Logon is refused, as one whose number is too low
	request uint64
	since   int64 // when the oldest request was sent, 0: none waits
	retryAt int64

	slot, generation, attempt uint32
	mode                      uint8 // in which its session lapses

	copies, naming bool   // its session gets copies; the grid is to be told of which sources
	sources        []byte // of them
	named          uint64 // the request that tells it, 0: none

	in    uint64     // the number expected next
	sent  uint64     // the last number sent
	base  uint64     // the last number that has an entry, or needs none
	items []*fixItem // orders and refusals without an answer
	steps []fixMsg   // administrative messages that wait for numbers
	step  uint64     // request of those that have been asked for, 0: none
	under []fixMsg   // these

	askedAt int64 // a ResendRequest was asked for
	fetches []*fixFetch
}

// fixItem is an order, or a refusal of the session layer.
type fixItem struct {
	seq     uint64
	payload []byte // of an order, nil of a refusal
	request uint64 // of the FixStep of a refusal
	asked   bool
}

// fixFetch is a range of reports that is fetched from the log.
type fixFetch struct {
	request  uint64
	from, to uint64
	first    bool // they were never sent
}

func (d *fixDoor) w() *world { return d.g.x.w }

// id of the session.
func (p *fixParty) sid() (hi, lo uint64) { return 0xf1f1, uint64(p.id + 1) }

// open asks for the session.
func (d *fixDoor) open() {
	d.retryAt = d.w().now + 100*millisecond
	if d.g.conn == nil {
		return
	}
	d.request = d.g.request()
	m := wire.FixOpen{ReqID: d.request, Day: d.logon.day, Form: 5}
	m.IDHi, m.IDLo = d.party.sid()
	if mode, grace := d.party.lapses(); mode != order.LapseNever {
		m.Form, m.Mode, m.GraceMs = 6, uint8(mode), grace
	}
	if d.party.isTarget() {
		if m.Form = 7; d.copies {
			m.Flags |= wire.FixOpenCopies
		}
	}
	switch {
	case d.state == doorHeld:
		m.Held = d.attempt
	default:
		m.Seq, m.SentNs = d.logon.seq, d.logon.at
		if d.late {
			m.Seq = 0
			m.Flags |= wire.FixOpenLate
		}
		if d.logon.reset {
			m.Flags |= wire.FixOpenReset
		}
		if d.take {
			m.Flags |= wire.FixOpenTake
		}
	}
	d.touch()
	d.g.conn.send(wire.AppendFixOpen(nil, partition, &m))
}

// reconnected goes on over a new connection of the gateway.
func (d *fixDoor) reconnected() {
	if d.state == doorOpen {
		d.state = doorHeld
	}
	d.step, d.under, d.fetches, d.named = 0, nil, nil, 0
	d.open()
}

func (d *fixDoor) opened(m *wire.FixOpened) {
	held := d.state == doorHeld
	d.since = 0
	d.w().logf("%s has party %d: slot %d generation %d attempt %d in %d out %d", d.g.name, d.party.id, m.Slot, m.Generation, m.Attempt, m.In, m.Out)
	d.state, d.base = doorOpen, m.In-1
	d.slot, d.generation, d.attempt, d.mode = m.Slot, m.Generation, m.Attempt, m.Mode
	if d.late {
		d.g.over(d)
		d.link.close(0)
		return
	}
	if !held {
		d.in, d.sent, d.naming = m.In, m.Number, d.copies
		d.link.answer(fixMsg{kind: 'A', seq: m.Number})
		if d.logon.seq >= d.in {
			d.ask()
		}
		return
	}
	d.in = max(d.in, m.In)
	d.items = slices.DeleteFunc(d.items, func(i *fixItem) bool { return i.seq < m.In })
	for _, i := range d.items {
		i.asked = false
	}
	d.steps = nil // what they were for is asked for again
	d.askedAt = 0
	if m.Out-1 > d.sent {
		d.fetch(d.sent+1, m.Out-1, true)
		return
	}
	d.flush()
}

// receive handles a message in the order of numbers.
func (d *fixDoor) receive(m *fixMsg) {
	if d.state == doorOpening {
		return // sent before the answer to the Logon: it is asked for again
	}
	switch {
	case m.kind == '2':
		d.resend(m)
		if m.seq == d.in {
			d.in++
		}
		return
	case m.seq > d.in:
		if d.askedAt == 0 || d.w().now-d.askedAt > 200*millisecond {
			d.ask()
		}
		return
	case m.seq < d.in:
		return
	}
	d.in++
	switch m.kind {
	case '4':
		d.in = m.to
	case '1':
		d.steps = append(d.steps, fixMsg{kind: '0'})
	case '5':
		d.steps = append(d.steps, fixMsg{kind: '5'})
	case 'D':
		d.items = append(d.items, &fixItem{seq: m.seq, payload: m.payload})
	case 'X':
		d.items = append(d.items, &fixItem{seq: m.seq})
	}
	d.flush()
}

// ask sends a ResendRequest, once it has a number.
func (d *fixDoor) ask() {
	d.askedAt = d.w().now
	d.steps = append(d.steps, fixMsg{kind: '2'})
}

// resend answers a ResendRequest from the log.
func (d *fixDoor) resend(m *fixMsg) {
	if m.from <= d.sent && d.state == doorOpen {
		d.fetch(m.from, d.sent, false)
	}
}

func (d *fixDoor) fetch(from, to uint64, first bool) {
	f := &fixFetch{request: d.g.request(), from: from, to: to, first: first}
	d.fetches = append(d.fetches, f)
	d.sendFetch(f)
}

func (d *fixDoor) sendFetch(f *fixFetch) {
	if d.g.conn == nil {
		return
	}
	d.touch()
	d.g.conn.send(wire.AppendFixResend(nil, partition, &wire.FixResend{ReqID: f.request, Slot: d.slot, Generation: d.generation, Attempt: d.attempt, First: f.from, Through: f.to}))
}

func (d *fixDoor) asks(request uint64) *fixFetch {
	for _, f := range d.fetches {
		if f.request == request {
			return f
		}
	}
	return nil
}

// resent sends the reports of a part of a range, and gap fills for the other numbers.
func (d *fixDoor) resent(m *wire.FixResent) {
	f := d.asks(m.ReqID)
	d.since = 0
	at := f.from
	fill := func(to uint64) {
		if at < to {
			d.link.answer(fixMsg{kind: '4', seq: at, dup: true, to: to})
			at = to
		}
	}
	for rest := m.Entries; len(rest) > 0; {
		number, entry, after := wire.NextResent(rest)
		rest = after
		fill(number)
		r := reportOf(entry, d.slot)
		r.seq, r.dup = number, !f.first
		d.link.answer(r)
		at = number + 1
	}
	fill(m.Next)
	if f.first {
		d.sent = max(d.sent, m.Next-1)
	}
	if f.from = m.Next; f.from > f.to {
		d.fetches = slices.DeleteFunc(d.fetches, func(o *fixFetch) bool { return o == f })
		d.flush()
		return
	}
	d.sendFetch(f)
}

func (d *fixDoor) touch() {
	if d.since == 0 {
		d.since = d.w().now
	}
}

// waits returns how long the oldest request waits.
func (d *fixDoor) waits(now int64) int64 {
	if d.since == 0 {
		return 0
	}
	return now - d.since
}

// catchingUp reports whether reports that were never sent are fetched: what comes later waits.
func (d *fixDoor) catchingUp() bool {
	return slices.ContainsFunc(d.fetches, func(f *fixFetch) bool { return f.first })
}

// flush asks for what is to be asked for.
func (d *fixDoor) flush() {
	w := d.w()
	if d.g.conn == nil || w.now < d.retryAt {
		return
	}
	if d.state != doorOpen {
		d.open()
		return
	}
	d.nameSources()
	if d.catchingUp() {
		return
	}
	prev := d.base
	for _, i := range d.items {
		if !i.asked {
			i.asked = true
			d.submit(i, prev)
		}
		prev = i.seq
	}
	if len(d.steps) > 0 && d.step == 0 {
		n := min(len(d.steps), 200)
		d.step, d.under, d.steps = d.g.request(), d.steps[:n:n], d.steps[n:]
		op := order.FixStep
		if d.mode != 0 && slices.ContainsFunc(d.under, func(m fixMsg) bool { return m.kind == '5' }) {
			op = order.FixLeave
		}
		d.sendStep(d.step, wire.FixStepRecord{Op: uint8(op), Outs: uint8(n), In: d.in, Prev: prev})
	}
}

func (d *fixDoor) submit(i *fixItem, prev uint64) {
	if i.payload == nil {
		i.request = d.g.request()
		d.sendStep(i.request, wire.FixStepRecord{Op: uint8(order.FixRefusal), Outs: 1, In: i.seq + 1, Prev: prev, Body: fmt.Appendf(nil, "no %d", i.seq)})
		return
	}
	d.touch()
	d.g.conn.send(wire.AppendFixSubmit(nil, partition, &wire.FixSubmit{Seq: i.seq, Slot: d.slot, Generation: d.generation, Attempt: d.attempt, Prev: prev, Payload: i.payload}))
}

func (d *fixDoor) sendStep(request uint64, r wire.FixStepRecord) {
	d.touch()
	r.Slot, r.Generation, r.Attempt = d.slot, d.generation, d.attempt
	d.g.conn.send(wire.AppendFixStep(nil, partition, &wire.FixStep{ReqID: request, Records: []wire.FixStepRecord{r}}))
}

// stepping reports whether a request is a FixStep of this session.
func (d *fixDoor) stepping(request uint64) bool {
	return d.step == request || d.named == request || slices.ContainsFunc(d.items, func(i *fixItem) bool { return i.request == request && i.payload == nil })
}
