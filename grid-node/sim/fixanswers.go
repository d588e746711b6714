package sim

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// takeItem removes an item and what it means for those behind it.
func (d *fixDoor) takeItem(is func(*fixItem) bool) *fixItem {
	i := slices.IndexFunc(d.items, is)
	if i < 0 {
		return nil
	}
	if i > 0 {
		d.w().violation("FIX", "%s gets the answer to number %d of party %d before that to %d", d.g.name, d.items[i].seq, d.party.id, d.items[0].seq)
	}
	item := d.items[i]
	d.items = slices.Delete(d.items, i, i+1)
	d.base = item.seq
	d.answered()
	return item
}

func (d *fixDoor) answered() {
	if d.since = 0; len(d.items) > 0 && d.items[0].asked || d.step != 0 || d.named != 0 {
		d.since = d.w().now
	}
}

// number sends the next message of the session: answers come in the order of numbers.
func (d *fixDoor) number(m fixMsg, n uint64) {
	if n != d.sent+1 {
		d.w().violation("FIX", "%s has sent number %d to party %d, and is given %d for the next", d.g.name, d.sent, d.party.id, n)
		return
	}
	d.sent, m.seq = n, n
	if m.kind == '2' {
		m.from = d.in
		d.askedAt = d.w().now
	}
	d.link.answer(m)
}

func (d *fixDoor) acked(m *wire.FixAck) {
	i := d.takeItem(func(i *fixItem) bool { return i.seq == m.Seq && i.payload != nil })
	if i == nil {
		d.w().violation("FIX", "%s gets an answer for number %d of party %d, which it did not submit", d.g.name, m.Seq, d.party.id)
		return
	}
	r := fixMsg{kind: '8', ref: m.Seq}
	switch {
	case bytes.Contains(i.payload, []byte(statusRequest)):
		r.key, r.body = "refused", fixReport(m.Entry, m.TimeNs, m.Body)
	case m.Code == 0 && len(m.Body) > 0: // functions changed it
		r.body = fixReport(m.Entry, m.TimeNs, m.Body)
	case m.Code == 0:
		r.body = fixReport(m.Entry, m.TimeNs, i.payload)
	default:
		r.key, r.body = "refused", fixReport(m.Entry, m.TimeNs, m.Body)
	}
	d.number(r, m.Number)
}

// reported is what an entry did with orders of the session. While reports that were never sent
// are fetched, these are fetched with them.
func (d *fixDoor) reported(m *wire.FixReports) {
	for rest := m.Entries; len(rest) > 0; {
		number, entry, after := wire.NextResent(rest)
		rest = after
		if i := slices.IndexFunc(d.fetches, func(f *fixFetch) bool { return f.first }); i >= 0 {
			d.fetches[i].to = max(d.fetches[i].to, number)
			continue
		}
		r := reportOf(entry, d.slot)
		if r.key == copyKey && !d.copies {
			d.w().violation("I55", "%s is sent a copy for party %d, whose session was opened as one that gets none", d.g.name, d.party.id)
		}
		if r.ref != 0 && d.takeItem(func(i *fixItem) bool { return i.seq == r.ref && i.payload != nil }) == nil {
			d.w().violation("FIX", "%s gets a report of number %d of party %d, which it did not submit", d.g.name, r.ref, d.party.id)
			return
		}
		d.number(r, number)
	}
}

func (d *fixDoor) stepped(m *wire.FixStepped, n *wire.FixNumber) {
	switch {
	case n.Code == wire.CodeSessionMoved || n.Code == wire.CodeSessionUnknown:
		d.end(0)
	case n.Code != 0:
		d.again(m.ReqID)
	case d.named == m.ReqID:
		d.naming, d.named = false, 0
		d.answered()
	case d.step == m.ReqID:
		for i := range d.under {
			d.number(d.under[i], n.First+uint64(i))
		}
		out := slices.ContainsFunc(d.under, func(m fixMsg) bool { return m.kind == '5' })
		if d.step, d.under = 0, nil; out {
			d.g.over(d)
			return
		}
		d.answered()
	default:
		if i := d.takeItem(func(i *fixItem) bool { return i.request == m.ReqID && i.payload == nil }); i != nil {
			d.number(fixMsg{kind: '8', ref: i.seq, key: "refused", body: fixReport(m.Entry, m.TimeNs, fmt.Appendf(nil, "no %d", i.seq))}, n.First)
		}
	}
}

// again asks once more for what a FixStep asked for, and for everything behind it.
func (d *fixDoor) again(request uint64) {
	if d.named == request {
		d.named = 0
	}
	if d.step == request {
		d.steps = append(d.under, d.steps...)
		d.step, d.under = 0, nil
	}
	if i := slices.IndexFunc(d.items, func(i *fixItem) bool { return i.request == request && i.payload == nil }); i >= 0 {
		d.items[i].asked = false
	}
	d.later()
}

func (d *fixDoor) later() { d.retryAt = d.w().now + 2*millisecond + d.g.x.rng.Int64N(20*millisecond) }

func (d *fixDoor) rejected(m *wire.Reject) {
	d.since = 0
	switch m.Code {
	case wire.CodeSessionMoved:
		if d.state == doorOpening && m.Tag != 52 { // the other one's counterparty is gone: this is it
			d.take = d.g.x.rng.IntN(20) == 0 // a person says so
			d.later()
			return
		}
		d.end(0)
	case wire.CodeSessionUnknown:
		d.end(0)
	case wire.CodeBadFIX: // of a day that is over
		d.end(0)
	case wire.CodeSequenceGap:
		if m.ForType == wire.TypeFixOpen {
			d.end(m.Detail)
			return
		}
		if m.Detail < m.RequestID {
			d.unasked(m.RequestID)
		}
	default:
		d.w().stats.FixHeld++
		if m.ForType == wire.TypeFixSubmit {
			d.unasked(m.RequestID)
			return
		}
		if f := d.asks(m.RequestID); f != nil {
			d.w().after(5*millisecond, func() {
				if d.asks(m.RequestID) == f {
					d.sendFetch(f)
				}
			})
			return
		}
		d.again(m.RequestID)
	}
}

func (d *fixDoor) unasked(seq uint64) {
	for _, i := range d.items {
		if i.seq == seq {
			i.asked = false
		}
	}
	d.later()
}

// end closes the counterparty's connection without a message: there is no number for one.
func (d *fixDoor) end(expects uint64) {
	d.w().logf("%s gives party %d up", d.g.name, d.party.id)
	d.g.drop(d)
	d.link.close(expects)
}
