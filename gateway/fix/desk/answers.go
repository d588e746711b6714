package desk

import (
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// frame handles a frame of the grid. An error ends the connection; sessions go on over
// the next one.
func (l *line) frame(now fix.Now, frame []byte) error {
	t := wire.FrameType(frame)
	if t != wire.TypePong {
		l.heardAt = now.Mono
	}
	switch t {
	case wire.TypeFixAck:
		var m wire.FixAck
		if err := wire.DecodeFixAck(frame, &m); err != nil {
			return err
		}
		if x := l.doors[m.Slot]; x != nil && x.state == open {
			x.acked(now, &m)
		}
	case wire.TypeFixReports:
		var m wire.FixReports
		if err := wire.DecodeFixReports(frame, &m); err != nil {
			return err
		}
		if x := l.doors[m.Slot]; x != nil && x.state == open && x.attempt == m.Attempt {
			x.reported(now, &m)
		}
	case wire.TypeFixStepped:
		return l.stepped(now, frame)
	case wire.TypeFixOpened:
		var m wire.FixOpened
		if err := wire.DecodeFixOpened(frame, &m); err != nil {
			return err
		}
		if x := l.answers(m.ReqID); x != nil && x.request == m.ReqID {
			return x.opened(now, &m)
		}
	case wire.TypeFixResent:
		var m wire.FixResent
		if err := wire.DecodeFixResent(frame, &m); err != nil {
			return err
		}
		if x := l.answers(m.ReqID); x != nil && x.fetch.request == m.ReqID {
			x.resent(now, &m)
		}
	case wire.TypeFixProbe:
		return l.probed(now, frame)
	case wire.TypeReject:
		var m wire.Reject
		if err := wire.DecodeReject(frame, &m); err != nil {
			return err
		}
		l.rejected(now, &m)
	case wire.TypeNotPrimary:
		return errNotPrimary
	case wire.TypeGoaway:
		var m wire.Goaway
		if err := wire.DecodeGoaway(frame, &m); err != nil {
			return err
		}
		return fmt.Errorf("the node ends the connection: %s", m.Text)
	}
	return nil
}

var errNotPrimary = errors.New("the node is not the primary any more")

// answers returns the door that a request was of, once.
func (l *line) answers(request uint64) *door {
	x := l.asking[request]
	delete(l.asking, request)
	return x
}

func (l *line) stepped(now fix.Now, frame []byte) error {
	var m wire.FixStepped
	if err := wire.DecodeFixStepped(frame, &m); err != nil {
		return err
	}
	delete(l.asking, m.ReqID)
	for i := range m.Records {
		n := &m.Records[i]
		if x := l.doors[n.Slot]; x != nil && x.state == open {
			x.stepped(now, &m, n)
		}
	}
	return nil
}

// opened is the answer to FixOpen: the session is this gateway's.
func (x *door) opened(now fix.Now, m *wire.FixOpened) error {
	again := x.state == held
	x.l.epoch = max(x.l.epoch, m.Epoch)
	x.state, x.request, x.base = open, 0, m.In-1
	if x.l.doors[x.slot] == x {
		delete(x.l.doors, x.slot)
	}
	x.slot, x.generation, x.attempt, x.day, x.form, x.mode = m.Slot, m.Generation, m.Attempt, m.Day, m.Form, m.Mode
	x.l.doors[x.slot] = x
	x.l.mark(x)
	if m.Form > form {
		x.lost(fmt.Errorf("its reports are of form %d, this gateway makes forms up to %d; allowed: a gateway of the newer release", m.Form, form))
		return nil
	}
	if again {
		x.rebound(m)
		return nil
	}
	if !x.late && (!x.cancelsAsAsked(m.Mode) || !x.getsCopies(now, m.Copies)) {
		return nil
	}
	x.in, x.sent, x.logOn = m.In, m.Number-1, true
	if !x.late && m.In == x.logon.Seq+1 {
		x.in = x.logon.Seq // the Logon's own number, which the session has not processed yet
	}
	x.f.Opened(now)
	return nil
}

// rebound goes on over another connection. What was decided meanwhile is sent first.
func (x *door) rebound(m *wire.FixOpened) {
	x.in = max(x.in, m.In)
	n := 0
	for n < len(x.items) && x.items[n].seq < m.In {
		n++
	}
	x.fetch.landed = append(x.fetch.landed, x.items[:n]...)
	x.items = x.items[n:]
	if m.Out-1 > x.sent {
		x.endFetch()
		x.fetch.from, x.fetch.to, x.fetch.first = x.sent+1, m.Out-1, true
		return
	}
	x.dropLanded()
}

// number reports whether a number is the next one. If it is not, another gateway is opening
// the session, and got what was between.
func (x *door) number(n uint64) bool {
	if n != x.sent+1 {
		x.lost(fmt.Errorf("the grid gives number %d, allowed: %d", n, x.sent+1))
		return false
	}
	x.sent = n
	return true
}

// take removes the first item, which is answered; nil if it is another one that is.
func (x *door) take(is func(*item) bool) *item {
	if len(x.items) == 0 || !is(x.items[0]) {
		x.lost(errors.New("the grid answers a message that it was not given next"))
		return nil
	}
	i := x.items[0]
	x.items[0] = nil
	x.items = x.items[1:]
	x.base = i.seq
	x.forget(i)
	return i
}

func (x *door) acked(now fix.Now, m *wire.FixAck) {
	i := x.take(func(i *item) bool { return i.seq == m.Seq && i.record == nil })
	if i == nil || !x.number(m.Number) {
		return
	}
	at := place{partition: x.l.id, seq: m.Entry, epoch: m.Epoch, timeNs: m.TimeNs}
	var report fix.Sent
	fate := client.FateAccepted
	switch {
	case m.Code == 0 && i.kind == 'H':
		report = x.d.form.refusal(x.version, at, m.Body)
	case m.Code != 0:
		report, fate = x.d.form.refusal(x.version, at, m.Body), client.FateRefused
	case len(m.Body) > 0: // functions changed the order
		report = x.d.form.order(x.version, at, m.Body)
	default:
		report = x.d.form.order(x.version, at, i.payload)
	}
	x.f.Numbered(now, m.Number, report)
	x.d.answered(now, i, fate)
}

// reported is what an entry did with orders of the session, in a grid that matches. While
// reports that were never sent are fetched, these are fetched with them.
func (x *door) reported(now fix.Now, m *wire.FixReports) {
	for rest := m.Entries; len(rest) > 0; {
		number, entry, after := wire.NextResent(rest)
		rest = after
		if f := &x.fetch; f.first && f.to != 0 {
			f.to = max(f.to, number)
			continue
		}
		report, ref, ok := x.d.form.entry(x.version, x.l.id, x.slot, entry)
		if !ok {
			x.lost(errors.New("the grid reports what this gateway does not know"))
			return
		}
		var answered *item
		if ref != 0 {
			if answered = x.take(func(i *item) bool { return i.seq == ref && i.record == nil }); answered == nil {
				return
			}
		}
		if !x.number(number) {
			return
		}
		x.f.Numbered(now, number, report)
		if answered != nil {
			fate := client.FateAccepted
			if report.Refused {
				fate = client.FateRefused
			}
			x.d.answered(now, answered, fate)
		}
	}
}

func (d *Desk) answered(now fix.Now, i *item, fate client.Fate) {
	if d.cfg.Answered != nil && i.payload != nil && i.kind != 'H' && i.kind != 'q' {
		d.cfg.Answered(i.kind, fate, now.Mono-i.readAt)
	}
}

// unknown counts orders without an answer when their session ends because the grid gives
// none.
func (x *door) unknown() {
	for _, i := range x.items {
		x.d.answered(fix.Now{Mono: i.readAt}, i, client.FateUnknown)
	}
}

func (x *door) stepped(now fix.Now, m *wire.FixStepped, n *wire.FixNumber) {
	switch {
	case n.Code == wire.CodeSessionMoved || n.Code == wire.CodeSessionUnknown:
		x.lost(errTaken)
		return
	case n.Code == 0 && x.named == m.ReqID && m.ReqID != 0:
		x.wereNamed(m.Entry)
		return
	case n.Code != 0:
		x.notNamed(m.ReqID, n.Code.String())
		x.unasked(m.ReqID)
		x.later(now)
		return
	case x.step == m.ReqID:
		under := x.under
		x.under, x.step = nil, 0
		x.l.mark(x)
		for i := range under {
			if !x.number(n.First + uint64(i)) {
				return
			}
			under[i].TimeNs = now.Wall
			x.f.Numbered(now, x.sent, under[i])
		}
		return
	}
	i := x.take(func(i *item) bool { return i.request == m.ReqID && i.record != nil })
	if i == nil || !x.number(n.First) {
		return
	}
	at := place{partition: x.l.id, seq: m.Entry, timeNs: m.TimeNs}
	x.f.Numbered(now, n.First, x.d.form.refusal(x.version, at, i.record))
	x.d.answered(now, i, client.FateRefused)
}

// unasked has what a FixStep asked for asked for again, and everything behind it.
func (x *door) unasked(request uint64) {
	if x.step == request {
		x.again()
	}
	if x.named == request {
		x.named = 0
	}
	for _, i := range x.items {
		if i.request == request {
			i.asked, i.request = false, 0
		}
	}
}

// later asks again in a moment.
func (x *door) later(now fix.Now) {
	x.retryAt = now.Mono + 10e6
	x.l.mark(x)
}

// lost ends the counterparty's connection without a message: there is no number for one.
func (x *door) lost(why error) {
	x.state = closed // so the grid is not told that it is free
	x.f.Lost(why)
}

func (l *line) rejected(now fix.Now, m *wire.Reject) {
	if m.ForType == wire.TypeFixSubmit {
		if x := l.doors[m.Slot]; x != nil && x.state == open {
			x.submitRejected(now, m)
		}
		return
	}
	if x := l.answers(m.RequestID); x != nil {
		switch {
		case m.ForType == wire.TypeFixOpen && x.request == m.RequestID:
			x.request = 0
			x.openRejected(now, m)
		case m.ForType == wire.TypeFixResend && x.fetch.request == m.RequestID:
			x.fetch.request = 0
			x.refused(now, m)
		case m.ForType == wire.TypeFixStep:
			x.notNamed(m.RequestID, refusal(m).Error())
			x.unasked(m.RequestID)
			x.refused(now, m)
		}
		return
	}
	for _, x := range l.doors { // of many sessions, and rare
		if x.step == m.RequestID && x.state == open {
			x.unasked(m.RequestID)
			x.refused(now, m)
		}
	}
}

// refused is a request of a session that is refused: for now, or because it is lost.
func (x *door) refused(now fix.Now, m *wire.Reject) {
	switch m.Code {
	case wire.CodeSessionMoved, wire.CodeSessionUnknown:
		x.lost(errTaken)
	case wire.CodeNotPermitted, wire.CodeUnsupported, wire.CodeStandby:
		x.lost(refusal(m))
	default:
		x.later(now)
	}
}

func refusal(m *wire.Reject) error { return fmt.Errorf("the grid refuses it (%s): %s", m.Code, m.Text) }

func (x *door) submitRejected(now fix.Now, m *wire.Reject) {
	if m.Code == wire.CodeSequenceGap && m.Detail >= m.RequestID {
		return // it was taken before
	}
	for _, i := range x.items {
		if i.seq != m.RequestID || i.record != nil {
			continue
		}
		if i.asked = false; m.Code == wire.CodeCapacity { // it is told: waiting would hold everything behind it
			i.record = order.AppendFixRefused(nil, uint16(m.Code), m.Tag, m.Detail, string(m.Text), i.payload)
		}
	}
	x.refused(now, m)
}

func (x *door) openRejected(now fix.Now, m *wire.Reject) {
	if x.state == held {
		switch m.Code {
		case wire.CodeSessionMoved, wire.CodeSessionUnknown, wire.CodeBadFIX:
			x.lost(errTaken)
		default:
			x.refused(now, m)
		}
		return
	}
	switch m.Code {
	case wire.CodeSequenceGap: // it is opened, to say in a Logout what is expected
		x.late = true
		x.l.mark(x)
	case wire.CodeSessionMoved:
		switch {
		case m.Tag == 52: // of a reset
			x.f.NotOpened(fix.LogonTime, refusal(m))
		case now.Mono >= x.giveUp:
			x.f.NotOpened(fix.LogonInUse, errors.New("it has a connection at another gateway, whose counterparty answers; allowed: one at a time"))
		default:
			x.retryAt = now.Mono + 20e6
			x.l.mark(x)
		}
	case wire.CodeBadFIX:
		x.f.NotOpened(fix.LogonTime, refusal(m))
	case wire.CodeNotPermitted, wire.CodeUnsupported, wire.CodeStandby:
		x.f.NotOpened(fix.LogonNoGrid, refusal(m))
	default:
		x.f.Waits(refusal(m))
		x.later(now)
	}
}
