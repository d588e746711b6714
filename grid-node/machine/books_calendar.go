package machine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// calendar is what of the calendar of sessions was done, docs/adr/0106. The calendar itself is
// none of the log's: the primary knows what is due when, and an entry says that it was done. So
// whichever node is the primary next goes on behind it.
type calendar struct {
	text   []byte         // of source; nil: no calendar with a source was in use
	source *limits.Source // of the latest calendar
	done   []int64        // by book: when its last phase was due, Unix ns; nil before the first, 0 for none
}

// Scheduled reports whether an entry of the calendar was made.
func (b *Books) Scheduled() bool { return b.calendar.text != nil || b.calendar.done != nil }

// CalendarSource is that of the calendar in use, nil without.
func (b *Books) CalendarSource() *limits.Source { return b.calendar.source }

// Done returns when the last phase of a book was due that was done, Unix ns; 0 for none.
func (b *Books) Done(book uint16) int64 {
	if int(book) >= len(b.calendar.done) {
		return 0
	}
	return b.calendar.done[book]
}

// SourceOf reads the source of a calendar.
func SourceOf(text []byte) (*limits.Source, error) {
	s := &limits.Source{}
	err := json.Unmarshal(text, s)
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("source of a calendar: %w", err)
	}
	return s, nil
}

func (b *Books) checkScheduled(e *order.Entry, m *order.Market) error {
	fail := func(field string, v uint64, allowed string) error {
		return fmt.Errorf("entry %d: %s is %d, allowed: %s", e.Seq, field, v, allowed)
	}
	if m.Op == order.MarketCalendar {
		s, err := SourceOf(m.Symbol)
		if err == nil && !s.Supersedes(b.calendar.source) {
			err = fmt.Errorf("calendar of %v, allowed: later than %v", s, b.calendar.source)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.Seq, err)
		}
		return nil
	}
	at, s := int64(m.Values[4]), match.State(m.State)
	switch {
	case int(m.Book) >= len(b.instruments):
		return fail("book", uint64(m.Book), "one that is defined")
	case s != match.Open && s != match.Call && s != match.Closed:
		return fail("state", uint64(m.State), "0 closed, 1 call, 3 open")
	case m.Kind != 0 && match.OpKind(m.Kind) != match.SetState && match.OpKind(m.Kind) != match.Uncross:
		return fail("market operation", uint64(m.Kind), "0, 5, 6 by the calendar")
	case at <= 0 || at > e.TimeNs:
		return fail("due", uint64(at), fmt.Sprint("1..", e.TimeNs, ", the time of the entry"))
	case at <= b.Done(m.Book):
		return fail("due", uint64(at), fmt.Sprint("later than ", b.Done(m.Book), ", that of the phase before"))
	}
	return nil
}

// scheduled applies an entry of the calendar.
func (b *Books) scheduled(e *order.Entry, m *order.Market) {
	c := &b.calendar
	if m.Op == order.MarketCalendar {
		s, err := SourceOf(m.Symbol)
		if err != nil {
			panic(fmt.Sprintf("entry %d: %v", e.Seq, err)) // it passed Check
		}
		b.sum -= c.textSum()
		c.text, c.source = slices.Clone(m.Symbol), s
		b.sum += c.textSum()
		return
	}
	for len(c.done) <= int(m.Book) {
		c.done = append(c.done, 0)
	}
	b.sum -= doneSum(m.Book, c.done[m.Book])
	c.done[m.Book] = int64(m.Values[4])
	b.sum += doneSum(m.Book, c.done[m.Book])
	if m.Kind != 0 {
		b.do(&match.Op{Kind: match.OpKind(m.Kind), Time: e.TimeNs, ID: e.Seq, Book: m.Book, State: match.State(m.State), Price: int64(m.Values[0])}, nil)
	}
}

// sum is 0 before the first entry of the calendar.
func (c *calendar) sum() uint64 {
	sum := c.textSum()
	for book, at := range c.done {
		sum += doneSum(uint16(book), at)
	}
	return sum
}

func (c *calendar) textSum() uint64 {
	if c.text == nil {
		return 0
	}
	return mix(xxhash.Sum64(c.text), 1, 24)
}

func doneSum(book uint16, at int64) uint64 {
	if at == 0 {
		return 0
	}
	return mix(uint64(book), uint64(at), 25)
}

// appendCalendar appends what the head of a snapshot has of the calendar.
func (c *calendar) appendTo(dst []byte) []byte {
	dst = le.AppendUint64(appendText(dst, c.text), uint64(len(c.done)))
	for _, at := range c.done {
		dst = le.AppendUint64(dst, uint64(at))
	}
	return dst
}

// calendar reads that.
func (d *decoder) calendar(b *Books) {
	c := &b.calendar
	if text := d.text("calendar", order.MaxCalendarSource); d.err == nil && len(text) > 0 {
		s, err := SourceOf(text)
		if err != nil {
			d.fail("calendar", uint64(len(text)), err.Error())
			return
		}
		c.text, c.source = slices.Clone(text), s
	}
	n := d.u64("nDone")
	if d.err != nil || n > uint64(len(b.instruments)) {
		d.fail("nDone", n, "no more than there are instruments")
		return
	}
	for range n {
		c.done = append(c.done, int64(d.u64("done")))
	}
	if mutant(mutCalendarUnsnapshotted) {
		*c = calendar{}
	}
	b.sum += c.sum()
}
