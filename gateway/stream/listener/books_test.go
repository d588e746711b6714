package listener

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// plain frames a message as position and payload.
type plain struct{}

func (plain) Append(dst []byte, m *fanout.Message) ([]byte, int) {
	return fmt.Appendf(dst, "%s %s", m.At, m.Payload), 0
}

// reads is a client that takes everything.
type reads struct{ got []string }

func (r *reads) Buffered() int                         { return 0 }
func (r *reads) Message(frame []byte, _ int, _ uint32) { r.got = append(r.got, string(frame)) }
func (r *reads) Gap(uint32, *fanout.Gap)               {}
func (r *reads) Live(uint32)                           {}
func (r *reads) Close(error)                           {}

// TestBooksAreReadAgain: an answer that is older than a change is shown, and asked for again; one that is older than the
// answer before is not shown; the same book again is no message. Who resumes from a position gets none that may be older.
func TestBooksAreReadAgain(t *testing.T) {
	h, err := fanout.New(fanout.Config{Lineage: 3, Partitions: 1, Encodings: []fanout.Encoding{plain{}}, RingBytes: 4096, RingSlots: 16, Latest: Books})
	if err != nil {
		t.Fatal(err)
	}
	p := &partition{}
	b := newBooks(p)
	p.books = b
	k := &book{symbol: "IBM", group: "book.IBM"}
	b.all["IBM"] = k
	first, early, back := &reads{}, &reads{}, &reads{}
	subscribe := func(r *reads, resume *fanout.Token) {
		t.Helper()
		pattern, _ := topics.ParsePattern("book.IBM.L1")
		if _, err := h.Open(r, 0).Subscribe(fanout.Subscription{Pattern: pattern, Resume: resume}); err != nil {
			t.Fatal(err)
		}
	}
	touch := func(entry uint64) {
		h.Examined(0, fanout.Position{Seq: entry})
		b.touch(h, &batch{touched: []touch{{"OTHER", entry}, {"IBM", entry}}})
	}
	answer := func(seq uint64, bid int64) (again bool) {
		b.queue, k.queued = nil, false
		b.publish(h, k, &client.Book{Symbol: "IBM", Seq: seq, State: client.BookOpen, Bids: []client.BookLevel{{Price: bid, Qty: 1, Orders: 1}}})
		h.Tick(0)
		return len(b.queue) == 1
	}
	want := func(r *reads, at ...string) {
		t.Helper()
		list := []string{}
		for _, text := range r.got {
			pos, _, _ := strings.Cut(text, " ")
			list = append(list, pos)
		}
		if fmt.Sprint(list) != fmt.Sprint(at) {
			t.Fatalf("sent are the ladders %v, want %v", list, at)
		}
	}

	subscribe(first, nil)
	touch(5)
	if answer(5, 100) {
		t.Error("a book that is as it was read is asked for again")
	}
	want(first, "5")
	touch(9)
	if len(b.queue) != 1 {
		t.Fatal("a book that was touched is not asked for")
	}
	token := h.Token() // it has everything up to 9
	subscribe(early, &token)
	h.Tick(0)
	want(early)
	if !answer(8, 101) { // a replica that is behind
		t.Error("a book that was touched behind its answer is not asked for again")
	}
	want(first, "5", "8")
	subscribe(back, &token)
	want(back)
	if !answer(7, 99) || !answer(8, 101) {
		t.Error("an answer of before settles a later change")
	}
	want(first, "5", "8")
	want(back)
	if answer(10, 101) { // entry 9 changed nothing that is shown
		t.Error("a book that is as it was read is asked for again")
	}
	want(first, "5", "8")
	want(back, "8") // nothing has touched it since
	want(early, "8")
	b.touch(h, &batch{touchedAll: 12})
	if len(b.queue) != 1 || answer(12, 103) {
		t.Error("an entry that may change any book does not have it asked for once")
	}
	want(first, "5", "8", "12")
	want(back, "8", "12")
}

// TestWhatTouchesBooks: executions touch their symbol, entries that may change a state without one touch all books.
func TestWhatTouchesBooks(t *testing.T) {
	part := &client.FollowBatch{Through: client.Position{Seq: 9}, Executions: []client.Executed{
		{Execution: client.Execution{Entry: 3, N: 1}, Symbol: "IBM"}, {Execution: client.Execution{Entry: 4, N: 1}, Symbol: "IBM"}, {Execution: client.Execution{Entry: 6, N: 1}, Symbol: "OIL"}}}
	for kind, all := range map[order.Kind]bool{order.KindMarket: true, order.KindContinue: true, order.KindNoop: true, order.KindSessionOpen: false, order.KindGuard: false} {
		e := client.LogEntry{}
		e.Seq, e.Kind = 7, kind
		part.Entries = []client.LogEntry{e}
		var b batch
		b.fill(part, 0)
		if got := fmt.Sprint(b.touched); got != "[{IBM 4} {OIL 6}]" || (b.touchedAll == 7) != all {
			t.Errorf("kind %d: touched are %s and all by entry %d", kind, got, b.touchedAll)
		}
	}
}
