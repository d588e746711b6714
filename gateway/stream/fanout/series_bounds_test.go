package fanout

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// pages are so many of 4,000 bytes each.
type pages int

// Page implements Source.
func (n pages) Page(from Place) ([]byte, Place, bool) {
	return make([]byte, 4000), Place{from[0] + 1}, int(from[0]) == int(n)-1
}

// taker is a client that takes everything at once, or nothing.
type taker struct {
	reads       bool
	buffered    int
	bytes, gaps int
	messages    int
	closed      error
}

func (r *taker) Buffered() int { return r.buffered }
func (r *taker) Message(frame []byte, _ int, _ uint32) {
	r.messages++
	r.bytes += len(frame)
	if !r.reads {
		r.buffered += len(frame)
	}
}
func (r *taker) Gap(uint32, *Gap) {
	r.gaps++
	if !r.reads {
		r.buffered += gapSize
	}
}
func (r *taker) Live(uint32)        {}
func (r *taker) Close(reason error) { r.closed = reason }

func seriesHub(t *testing.T, limits Limits, source Source) *Hub {
	t.Helper()
	h, err := New(Config{Lineage: 3, Partitions: 1, Encodings: []Encoding{testEncoding{'a'}}, RingBytes: 4096, RingSlots: 16, Limits: limits, Latest: "book", Series: "L3",
		Opened: func(string) (Source, int, error) { return source, 0, nil }, Closed: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func followSeries(t *testing.T, c *Client, number uint32, topic string, policy Policy) *Sub {
	t.Helper()
	s, err := c.Subscribe(Subscription{Number: number, Pattern: pattern(t, topic), Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPagesHaveARate: a client that takes all it gets, and asks again and again, is sent pages at the rate, whatever its
// subscriptions are; another one is sent its own meanwhile.
func TestPagesHaveARate(t *testing.T) {
	const rate = 1 << 20
	h := seriesHub(t, Limits{PageRate: rate}, pages(1<<20))
	greedy, other := &taker{reads: true}, &taker{reads: true}
	g, o := h.Open(greedy, 0), h.Open(other, 0)
	for n := range uint32(4) {
		followSeries(t, g, n, fmt.Sprintf("book.S%d.L3", n), Drop)
	}
	followSeries(t, o, 1, "book.S0.L3", Drop)
	for n := range 4 {
		h.Restarted(fmt.Sprintf("book.S%d.L3", n), Position{Seq: 1}, false)
	}
	const seconds = 3
	for ms := range seconds * 1000 {
		if ms%50 == 0 { // a page each time, were there no rate
			g.Unsubscribe(0)
			followSeries(t, g, 0, "book.S0.L3", Drop)
		}
		h.Tick(time.Duration(ms) * time.Millisecond)
	}
	for name, r := range map[string]*taker{"the one that asks again": greedy, "the other": other} {
		if want := rate * seconds; r.bytes < want*9/10 || r.bytes > want*11/10+rate/5 {
			t.Errorf("%s got %d bytes in %d s, want about %d", name, r.bytes, seconds, want)
		}
	}
}

// TestWhoNeverReadsASeries: of a client that subscribes and takes nothing no more is in its connection than the bound, what is
// held of changes does not grow, and others get all.
func TestWhoNeverReadsASeries(t *testing.T) {
	const changes, buffered = 100_000, 10_000
	h := seriesHub(t, Limits{Buffered: buffered}, pages(3))
	const topic = "book.IBM.L3"
	slow, ended, other := &taker{}, &taker{}, &taker{reads: true}
	s, e, o := h.Open(slow, 0), h.Open(ended, 0), h.Open(other, 0)
	followSeries(t, s, 1, topic, Drop)
	followSeries(t, e, 1, topic, Disconnect)
	followSeries(t, o, 1, topic, Disconnect)
	h.Restarted(topic, Position{Seq: 1}, false)
	h.Tick(time.Second)
	most := 0
	for n := range changes {
		if err := h.Changed(topic, Place{1}, Position{Seq: 2 + uint64(n)}, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		h.Tick(time.Second + time.Duration(n)*time.Microsecond)
		most = max(most, len(h.series[topic].changes))
	}
	if slow.bytes > buffered || ended.bytes > buffered || most > seriesMost {
		t.Errorf("clients that take nothing were sent %d and %d bytes, %d changes are held, allowed: %d bytes and %d", slow.bytes, ended.bytes, most, buffered, seriesMost)
	}
	if slow.closed != nil || !errors.Is(ended.closed, ErrTooSlow) {
		t.Errorf("closed are the client with policy drop, %v, and the one with disconnect, %v", slow.closed, ended.closed)
	}
	if other.messages != 3+changes || other.gaps > 0 || other.closed != nil {
		t.Errorf("another client got %d messages and %d gaps, %v, want 3 pages and %d changes", other.messages, other.gaps, other.closed, changes)
	}
	slow.buffered, slow.reads = 0, true
	for range 10 {
		s.Writable()
		h.Tick(2 * time.Second)
	}
	if f := s.Subscription(1).series; !f.whole || slow.gaps < 1 || slow.gaps > 2 || f.of.head() != f.next {
		t.Errorf("the slow client reads again, and has %+v after %d gaps, want everything behind one, or two: the first while it did not read", f, slow.gaps)
	}
}

// TestSeriesOfOneClient: one client has so many at most, whatever their topics are.
func TestSeriesOfOneClient(t *testing.T) {
	h := seriesHub(t, Limits{}, pages(1))
	c := h.Open(&taker{reads: true}, 0)
	for n := range uint32(16) {
		followSeries(t, c, n, fmt.Sprintf("book.S%d.L3", n/2), Drop)
	}
	if _, err := c.Subscribe(Subscription{Number: 16, Pattern: pattern(t, "book.S0.L3")}); !errors.Is(err, ErrLimit) {
		t.Errorf("a subscription more: %v, want %v", err, ErrLimit)
	}
	followSeries(t, h.Open(&taker{}, 0), 16, "book.S0.L3", Drop)
	for _, c := range []struct {
		w    Subscription
		want string
	}{
		{Subscription{Pattern: pattern(t, "book.*.L3")}, "every token but the last named"},
		{Subscription{Pattern: pattern(t, "book.L3")}, "every token but the last named"},
		{Subscription{Pattern: pattern(t, "book.A.L3"), Policy: Conflate}, "allowed: drop"},
		{Subscription{Pattern: pattern(t, "book.A.L3"), Last: 1}, "allowed: neither"},
		{Subscription{Pattern: pattern(t, "book.A.L3"), Resume: &Token{Lineage: 4}}, ErrLineage.Error()},
		{Subscription{Pattern: pattern(t, "book.A.L3"), Resume: &Token{Lineage: 3, At: []PartitionPosition{{0, Position{Seq: 99}}}}}, ErrAhead.Error()},
		{Subscription{Pattern: pattern(t, "book.A.L3"), Resume: &Token{Lineage: 3, At: []PartitionPosition{{7, Position{}}}}}, "partition"},
	} {
		if _, err := h.Open(&taker{}, 0).Subscribe(c.w); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.w.Pattern, err, c.want)
		}
	}
	if n := len(h.series); n != 8 {
		t.Errorf("%d series are kept, want 8: those that are subscribed to", n)
	}
}
