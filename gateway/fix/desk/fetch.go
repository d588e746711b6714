package desk

import (
	"bytes"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fetch is a range of numbers whose reports are read from the log: for a ResendRequest, or
// because they were decided while there was no connection to the grid.
type fetch struct {
	request  uint64 // of the FixResend under way, 0: none
	from, to uint64 // to 0: nothing is fetched
	first    bool   // they were never sent
	landed   []*item
}

// page is a part of the log that was read for a ResendRequest.
type page struct {
	from, next uint64 // numbers from..next-1 were looked at
	entries    []byte // as FixResent has them
}

func (x *door) endFetch() {
	if x.fetch.request != 0 {
		delete(x.l.asking, x.fetch.request)
	}
	x.fetch = fetch{landed: x.fetch.landed}
}

// sendFetch asks for what is to be read.
func (x *door) sendFetch() {
	f := &x.fetch
	if f.to == 0 || f.request != 0 {
		return
	}
	f.request = x.l.next()
	x.l.asking[f.request] = x
	x.l.out = wire.AppendFixResend(x.l.out, x.l.id, &wire.FixResend{ReqID: f.request, Slot: x.slot, Generation: x.generation, Attempt: x.attempt, First: f.from, Through: f.to})
}

// Read implements fix.Store.
func (x *door) Read(_ fix.Now, n, to uint64) (at uint64, m fix.Sent, found fix.Found) {
	if p := &x.pages; n >= p.from && n < p.next {
		for rest := p.entries; len(rest) > 0; {
			number, entry, after := wire.NextResent(rest)
			if rest = after; number < n || number > to {
				continue
			}
			if m, _, ok := x.d.form.entry(x.version, x.l.id, x.slot, entry); ok {
				p.entries = rest // the next one is behind it
				p.from = number + 1
				return number, m, fix.FoundOne
			}
		}
		n = p.next
	}
	x.pages = page{}
	if n > to {
		return 0, m, fix.FoundNone
	}
	if f := &x.fetch; f.to == 0 {
		f.from, f.to = n, to
		x.l.mark(x)
	}
	return 0, m, fix.FoundLater
}

// resent is a part of the log.
func (x *door) resent(now fix.Now, m *wire.FixResent) {
	f := &x.fetch
	f.request = 0
	next := m.Next
	if next <= f.from { // nothing was looked at
		next = f.to + 1
	}
	if !f.first {
		x.pages = page{from: f.from, next: next, entries: bytes.Clone(m.Entries)}
		f.from, f.to = 0, 0
		x.l.mark(x)
		x.f.Continue(now)
		return
	}
	for rest := m.Entries; len(rest) > 0; {
		number, entry, after := wire.NextResent(rest)
		rest = after
		report, ref, ok := x.d.form.entry(x.version, x.l.id, x.slot, entry)
		if !ok || number <= x.sent {
			continue
		}
		x.skip(now, number)
		x.sent = number
		x.f.Numbered(now, number, report)
		x.land(now, ref)
	}
	x.skip(now, next)
	if f.from = next; f.from > f.to {
		*f = fetch{landed: f.landed}
		x.dropLanded()
	}
	x.l.mark(x)
}

// skip fills the numbers before next, which are of messages that are not sent.
func (x *door) skip(now fix.Now, next uint64) {
	if from := x.sent + 1; from < next {
		x.sent = next - 1
		x.f.Skipped(now, from, next)
	}
}

// land counts what was decided while there was no connection to the grid.
func (x *door) land(now fix.Now, seq uint64) {
	f := &x.fetch
	for n, i := range f.landed {
		if i.seq == seq {
			x.forget(i)
			x.d.answered(now, i, client.FateAccepted)
			f.landed = append(f.landed[:n], f.landed[n+1:]...)
			return
		}
	}
}

func (x *door) dropLanded() {
	for _, i := range x.fetch.landed {
		x.forget(i)
	}
	x.fetch.landed = nil
}
