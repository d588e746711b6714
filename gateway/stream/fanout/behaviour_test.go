package fanout

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// log is a connection that notes what it was sent.
type log struct {
	buffered int
	sent     []string
	order    *[]int // shared: which connection was sent something
	id       int
	reason   error
}

func (l *log) Buffered() int { return l.buffered }

func (l *log) Message(frame []byte, _ int, _ uint32) {
	l.sent = append(l.sent, string(frame[18:]))
	l.buffered += len(frame)
	if l.order != nil {
		*l.order = append(*l.order, l.id)
	}
}

func (l *log) Gap(_ uint32, g *Gap) {
	for _, r := range g.Ranges {
		l.sent = append(l.sent, fmt.Sprintf("gap p%d:%s..%s %d", r.Partition, r.After, r.Through, r.Count))
	}
}

func (l *log) Live(number uint32) { l.sent = append(l.sent, fmt.Sprintf("live %d", number)) }

func (l *log) Close(reason error) { l.reason = reason }

func small(t testing.TB, l Limits) *Hub {
	t.Helper()
	h, err := New(Config{Lineage: 3, Partitions: 2, Encodings: []Encoding{testEncoding{'a'}}, RingBytes: 1 << 16, RingSlots: 64, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func pattern(t testing.TB, text string) topics.Pattern {
	t.Helper()
	p, err := topics.ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func publish(t testing.TB, h *Hub, partition int, seq uint64, topic string) {
	t.Helper()
	if err := h.Publish(&Message{Partition: partition, At: Position{Seq: seq}, Topic: []byte(topic), Payload: []byte(fmt.Sprintf("=%d", seq))}); err != nil {
		t.Fatal(err)
	}
}

func sent(t *testing.T, l *log, want ...string) {
	t.Helper()
	if !slices.Equal(l.sent, want) {
		t.Errorf("sent\n%s\nwant\n%s", strings.Join(l.sent, "\n"), strings.Join(want, "\n"))
	}
	l.sent = nil
}

// A frame of t.a=1 has 23 bytes: one fits into the connection, two into the queue.
func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		want   []string
		reason error
	}{
		{Drop, []string{"t.a=1", "t.a=2", "t.b=3", "gap p0:3..6 3"}, nil},
		{Conflate, []string{"t.a=1", "t.a=6", "t.b=5"}, nil},
		{Disconnect, []string{"t.a=1"}, ErrTooSlow},
	} {
		h := small(t, Limits{Buffered: 30, Queued: 50})
		l := &log{}
		k := h.Open(l, 0)
		if _, err := k.Subscribe(Subscription{Number: 1, Pattern: pattern(t, "t.*"), Policy: c.policy}); err != nil {
			t.Fatal(err)
		}
		for seq, topic := range []string{"t.a", "t.a", "t.b", "t.a", "t.b", "t.a"} {
			publish(t, h, 0, uint64(seq+1), topic)
		}
		for range 6 {
			l.buffered = 0
			k.Writable()
		}
		if !errors.Is(l.reason, c.reason) {
			t.Errorf("policy %d: closed by %v, want %v", c.policy, l.reason, c.reason)
		}
		sent(t, l, c.want...)
		if c.reason == nil {
			if got := k.Subscription(1).Token().String(); got != "3.p0:6,p1:0" {
				t.Errorf("policy %d: token is %s", c.policy, got)
			}
		}
	}
}

// A partial message takes no place and gives none: what is behind it stays there. A whole one of its topic stands for it.
func TestPartialMessagesKeepTheirPlace(t *testing.T) {
	h := small(t, Limits{Buffered: 30, Queued: 1000})
	l := &log{}
	k := h.Open(l, 0)
	if _, err := k.Subscribe(Subscription{Number: 1, Pattern: pattern(t, "t.*"), Policy: Conflate}); err != nil {
		t.Fatal(err)
	}
	for i, topic := range []string{"t.a", "t.a", "t.b", "t.a/", "t.b", "t.a", "t.c", "t.%/", "t.a", "t.c", "t.a"} {
		name, partial := strings.CutSuffix(topic, "/")
		if err := h.Publish(&Message{At: Position{Seq: uint64(i + 1)}, Topic: []byte(name), Payload: fmt.Appendf(nil, "=%d", i+1), Partial: partial}); err != nil {
			t.Fatal(err)
		}
	}
	for range 11 {
		l.buffered = 0
		k.Writable()
	}
	sent(t, l, "t.a=1", "t.a=2", "t.b=3", "t.a=6", "t.b=5", "t.c=7", "t.%=8", "t.a=11", "t.c=10")
}

// A queue that is never empty does not grow, and the places of topics in it are still right.
func TestLatestInALongQueue(t *testing.T) {
	h, err := New(Config{Partitions: 1, Encodings: []Encoding{testEncoding{'a'}}, Limits: Limits{Buffered: 30}})
	if err != nil {
		t.Fatal(err)
	}
	l := &log{}
	k := h.Open(l, 0)
	s, err := k.Subscribe(Subscription{Number: 1, Pattern: pattern(t, "t.*"), Policy: Conflate})
	if err != nil {
		t.Fatal(err)
	}
	const topics = 100
	latest := map[int]uint64{}
	for seq := uint64(1); seq <= 10_000; seq++ {
		n := int(seq*seq+seq/7) % topics
		latest[n] = seq
		publish(t, h, 0, seq, fmt.Sprintf("t.%d", n))
		if seq%3 == 0 {
			l.buffered = 0
			k.Writable()
		}
		if len(s.queue) > 3*topics {
			t.Fatalf("the queue has %d places for %d topics", len(s.queue), topics)
		}
	}
	for int(s.first) < len(s.queue) {
		l.buffered = 0
		k.Writable()
	}
	last := map[string]uint64{}
	for _, text := range l.sent {
		topic, value, _ := strings.Cut(text, "=")
		seq, err := strconv.ParseUint(value, 10, 64)
		if err != nil || seq <= last[topic] {
			t.Fatalf("sent %s behind %d, %v", text, last[topic], err)
		}
		last[topic] = seq
	}
	for n, seq := range latest {
		if got := last[fmt.Sprintf("t.%d", n)]; got != seq {
			t.Errorf("of t.%d the last one sent is %d, want %d", n, got, seq)
		}
	}
}

func TestFlushSendsTogether(t *testing.T) {
	h := small(t, Limits{})
	l := &log{}
	k := h.Open(l, 0)
	s, err := k.Subscribe(Subscription{Number: 1, Pattern: pattern(t, "t.*"), Flush: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	now, flushed := time.Duration(0), []time.Duration(nil)
	for seq := uint64(1); seq <= 200; seq++ {
		publish(t, h, 0, seq, "t.a")
		if l.sent != nil {
			t.Fatal("sent before the interval ended")
		}
		if at := s.Token().At[0].At.Seq + 1; at > seq {
			t.Fatalf("token is at %d, message %d waits", at-1, seq)
		}
		now += time.Millisecond
		if h.Tick(now); l.sent != nil {
			flushed = append(flushed, now)
			l.sent, l.buffered = nil, 0
		}
	}
	if len(flushed) != 4 || flushed[1]-flushed[0] != 50*time.Millisecond || flushed[3]-flushed[2] != 50*time.Millisecond {
		t.Errorf("flushed at %v, want every 50 ms", flushed)
	}
}

func TestResume(t *testing.T) {
	h := small(t, Limits{})
	for seq := range uint64(100) { // the ring has 64
		publish(t, h, int(seq%2), seq+1, "t.a")
	}
	at := func(text string) *Token {
		token, err := ParseToken(text)
		if err != nil {
			t.Fatal(err)
		}
		return &token
	}
	l := &log{}
	k := h.Open(l, 0)
	for _, c := range []struct{ token, err string }{
		{"4.p0:17", "lineage of the token is 4, allowed: 3"},
		{"3.p0:101", "position of partition 0 is 101, allowed: up to 99"},
		{"3.p2:1", "partition of the token is 2, allowed: 0 to 1"},
	} {
		if _, err := k.Subscribe(Subscription{Number: 1, Pattern: pattern(t, ">"), Resume: at(c.token)}); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("token %s: %v, want %s", c.token, err, c.err)
		}
	}
	if _, err := k.Subscribe(Subscription{Number: 1, Pattern: pattern(t, ">"), Resume: at("3.p0:95,p1:98")}); err != nil {
		t.Fatal(err)
	}
	h.Tick(1)
	sent(t, l, "t.a=97", "t.a=99", "t.a=100")
	oldest := h.ring.entry(h.ring.tail).at.Seq
	if _, err := k.Subscribe(Subscription{Number: 2, Pattern: pattern(t, ">"), Resume: at("3.p0:7,p1:98")}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		h.Tick(1)
	}
	if want := fmt.Sprintf("gap p0:7..%d 0", (oldest-2)|1); l.sent[0] != want || l.sent[1] != fmt.Sprintf("t.a=%d", oldest|1) || l.sent[len(l.sent)-1] != "t.a=100" {
		t.Errorf("sent %v, want first %s", l.sent, want)
	}
}

func TestTokens(t *testing.T) {
	for _, text := range []string{"0", "3.p0:17,p1:9", "4294967295.p7:18446744073709551615.4294967295"} {
		if token, err := ParseToken(text); err != nil || token.String() != text {
			t.Errorf("%s is read as %s, %v", text, token, err)
		}
	}
	for _, text := range []string{"", ".", "3.", "x", "03", "3.p0", "3.p0:", "3.p1:1,p0:1", "3.p0:1,p0:1", "3.p0:1,", "3.q0:1", "3.p1024:1", "3.p0:1.0", "3.p0:-1", "3.p0:18446744073709551616"} {
		if token, err := ParseToken(text); err == nil || !strings.Contains(err.Error(), "allowed: LINEAGE.p") {
			t.Errorf("%q is read as %+v, %v", text, token, err)
		}
	}
}

func TestLimitsOfAClient(t *testing.T) {
	h := small(t, Limits{Subscriptions: 3, Tried: 1, IndexBytes: 1500})
	k := h.Open(&log{}, 0)
	min := "1"
	ranged, err := topics.ParseFilter([]topics.Field{{Name: "n", Type: topics.Int}}, []topics.Term{{Field: "n", Min: &min}})
	if err != nil {
		t.Fatal(err)
	}
	long := pattern(t, strings.Repeat("a", 190)+"."+strings.Repeat("b", 190))
	for i, c := range []struct {
		s    Subscription
		want string
	}{
		{Subscription{Number: 1, Pattern: pattern(t, "t.>"), Filter: ranged}, ""},
		{Subscription{Number: 1, Pattern: pattern(t, "t.>")}, "allowed: another number"},
		{Subscription{Number: 2, Pattern: pattern(t, "t.>"), Filter: ranged}, "neither equal nor in are 2, allowed: at most 1"},
		{Subscription{Number: 2, Pattern: pattern(t, ">"), Flush: time.Microsecond}, "is 1µs, allowed: 0 to 1m0s"},
		{Subscription{Number: 2, Pattern: long}, ""},
		{Subscription{Number: 3, Pattern: long}, "take 1725 bytes, allowed: at most 1500"},
		{Subscription{Number: 3, Pattern: pattern(t, "x")}, ""},
		{Subscription{Number: 4, Pattern: pattern(t, "x")}, "subscriptions are 4, allowed: at most 3"},
	} {
		if _, err := k.Subscribe(c.s); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d: %v, want %q", i, err, c.want)
		}
	}
	if !k.Unsubscribe(1) || k.Unsubscribe(1) {
		t.Error("Unsubscribe reports the wrong thing")
	}
	if _, err := k.Subscribe(Subscription{Number: 4, Pattern: pattern(t, "t.>"), Filter: ranged}); err != nil {
		t.Error("after one was ended:", err)
	}
	all := topics.Filter{}
	if all, err = topics.ParseFilter([]topics.Field{{Name: "n", Type: topics.Int}}, []topics.Term{{Field: "n", Equal: &min}}); err != nil {
		t.Fatal(err)
	}
	k.Unsubscribe(2)
	if _, err := k.Subscribe(Subscription{Number: 5, Pattern: pattern(t, "*.x"), Filter: all}); err == nil || !strings.Contains(err.Error(), "neither * nor >") {
		t.Error("a filter without a literal:", err)
	}
}

// Each of 8 clients is first, and last, about as often as the others.
func TestOrderAmongClientsIsFair(t *testing.T) {
	h := small(t, Limits{Buffered: 1 << 30})
	var order []int
	const clients, messages = 8, 8000
	for i := range clients {
		l := &log{order: &order, id: i}
		if _, err := h.Open(l, 0).Subscribe(Subscription{Number: 1, Pattern: pattern(t, "t.*")}); err != nil {
			t.Fatal(err)
		}
	}
	var rank [clients][clients]int // rank[client][place]
	for seq := range uint64(messages) {
		order = order[:0]
		publish(t, h, 0, seq+1, "t.a")
		for place, id := range order {
			rank[id][place]++
		}
	}
	// Each count is binomial with mean 1000 and standard deviation 30; the seed is fixed.
	for id := range rank {
		for place, n := range rank[id] {
			if n < 850 || n > 1150 {
				t.Errorf("client %d was at place %d %d times of %d, want about %d", id, place, n, messages, messages/clients)
			}
		}
	}
}

func TestPublishAllocsNothing(t *testing.T) {
	h, _ := benchHub(t, 100)
	m := benchMessage("A17")
	for range 100_000 { // the ring goes round
		m.At.Seq++
		if err := h.Publish(m); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(1000, func() {
		m.At.Seq++
		if err := h.Publish(m); err != nil {
			t.Fatal(err)
		}
	}); n != 0 || h.Stats().Delivered == 0 {
		t.Errorf("%v allocations a message, %d delivered", n, h.Stats().Delivered)
	}
}

// sink is a connection that counts.
type sink struct{ bytes int }

func (s *sink) Buffered() int                         { return 0 }
func (s *sink) Message(frame []byte, _ int, _ uint32) { s.bytes += len(frame) }
func (s *sink) Gap(uint32, *Gap)                      {}
func (*sink) Live(uint32)                             {}
func (s *sink) Close(error)                           {}

func benchHub(tb testing.TB, clients int) (*Hub, *sink) {
	tb.Helper()
	h, err := New(Config{Partitions: 1, Encodings: []Encoding{testEncoding{'a'}}, RingBytes: 16 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	out := &sink{}
	for i := range clients {
		k := h.Open(out, 0)
		for j := range 5 {
			if _, err := k.Subscribe(Subscription{Number: uint32(j), Pattern: pattern(tb, fmt.Sprintf("orders.A%d.*.*", (i*5+j)%100))}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return h, out
}

func benchMessage(account string) *Message {
	return &Message{Topic: []byte("orders." + account + ".ACME.buy"), Fields: []topics.Value{topics.TextValue([]byte(account)), topics.IntValue(5)}, Payload: make([]byte, 100)}
}

// Publish is what a message costs but for its bytes on the way: matching, the ring, references.
func BenchmarkPublish(b *testing.B) {
	for _, c := range []struct {
		clients int
		account string
	}{{1000, "none"}, {9000, "none"}, {100, "A17"}, {1000, "A17"}, {9000, "A17"}} {
		h, _ := benchHub(b, c.clients)
		m := benchMessage(c.account)
		b.Run(fmt.Sprintf("%s/clients=%d", c.account, c.clients), func(b *testing.B) {
			b.ReportAllocs()
			before := h.Stats().Delivered
			for b.Loop() {
				m.At.Seq++
				if err := h.Publish(m); err != nil {
					b.Fatal(err)
				}
			}
			if n := float64(h.Stats().Delivered - before); n > 0 {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/delivery")
			}
		})
	}
}

// A hub that begins in the middle of a log tells who comes from before that.
func TestResumeFromBeforeTheHub(t *testing.T) {
	h := small(t, Limits{})
	h.Begin(0, Position{Seq: 100})
	h.Begin(1, Position{Seq: 7})
	publish(t, h, 0, 101, "t.a")
	l := &log{}
	token, err := ParseToken("3.p0:50,p1:7")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Open(l, 0).Subscribe(Subscription{Number: 1, Pattern: pattern(t, "t.*"), Policy: Disconnect, Resume: &token}); err != nil {
		t.Fatal(err)
	}
	h.Tick(time.Millisecond)
	sent(t, l, "gap p0:50..100 0", "t.a=101")
}

// The last messages come first, then it is told that what follows is new. A ring with more than a share of messages takes
// several ticks.
func TestLastMessages(t *testing.T) {
	h, err := New(Config{Lineage: 3, Partitions: 2, Encodings: []Encoding{testEncoding{'a'}}, RingBytes: 1 << 20, RingSlots: 8192})
	if err != nil {
		t.Fatal(err)
	}
	for seq := range uint64(3 * share) {
		publish(t, h, int(seq%2), seq+1, "t."+string("abc"[seq%3]))
	}
	last := uint64(3 * share)
	l := &log{}
	k := h.Open(l, 0)
	if _, err := k.Subscribe(Subscription{Number: 1, Pattern: pattern(t, "t.b"), Last: 2}); err != nil {
		t.Fatal(err)
	}
	h.Tick(time.Millisecond)
	publish(t, h, 0, last+1, "t.b")
	h.Tick(2 * time.Millisecond)
	sent(t, l, fmt.Sprintf("t.b=%d", last-4), fmt.Sprintf("t.b=%d", last-1), fmt.Sprintf("t.b=%d", last+1), "live 1")
	publish(t, h, 0, last+2, "t.b")
	if _, err := k.Subscribe(Subscription{Number: 2, Pattern: pattern(t, "t.z"), Last: 9}); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		h.Tick(time.Duration(3+i) * time.Millisecond)
	}
	sent(t, l, fmt.Sprintf("t.b=%d", last+2), "live 2")
	if !h.Idle() {
		t.Error("nothing waits, and the hub is not idle")
	}
}

// Many that resume look at a bounded part of the ring in a tick, all together, and each has its turn.
func TestResumingIsBounded(t *testing.T) {
	h, err := New(Config{Lineage: 3, Partitions: 1, Encodings: []Encoding{testEncoding{'a'}}, RingBytes: 1 << 20, RingSlots: 8192})
	if err != nil {
		t.Fatal(err)
	}
	for seq := range uint64(share) {
		publish(t, h, 0, seq+1, "t.a")
	}
	const clients = 5 * shares
	logs := make([]log, clients)
	for i := range logs {
		if _, err := h.Open(&logs[i], 0).Subscribe(Subscription{Number: 1, Pattern: pattern(t, "t.b"), Last: 9}); err != nil {
			t.Fatal(err)
		}
	}
	live := func() (n int) {
		for i := range logs {
			n += len(logs[i].sent)
		}
		return n
	}
	for tick, before := 1, 0; live() < clients; tick++ {
		h.Tick(time.Duration(tick) * time.Millisecond)
		if n := live() - before; n > shares || tick > 3*clients {
			t.Fatalf("tick %d: %d looked at the whole ring, allowed: %d", tick, n, shares)
		}
		before = live()
	}
}
