package fanout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// ladders is a hub with latest messages, and what each client was sent of them.
type ladders struct {
	t       *rapid.T
	tb      testing.TB
	h       *Hub
	now     time.Duration
	latest  map[string]uint64 // by topic, the position
	sure    map[string]uint64 // by topic: its latest message is right up to here
	stale   map[string]bool   // by topic: another one will come
	asked   map[string]int
	readers []*reader
}

// reader is a connection with subscriptions to latest messages.
type reader struct {
	w        *ladders
	c        *Client
	buffered int
	got      map[uint32]map[string]uint64 // by subscription and topic
	from     map[uint32]uint64            // what it resumed from
	pattern  map[uint32]string
}

func (r *reader) Buffered() int { return r.buffered }

func (r *reader) Message(frame []byte, slot int, number uint32) {
	at, rest := binary.BigEndian.Uint64(frame[6:]), string(frame[18:])
	topic, text, _ := strings.Cut(rest, "=")
	switch before := r.got[number][topic]; {
	case slot != 1 || text != fmt.Sprint(at):
		r.w.t.Fatalf("frame %q is not that of a message", frame)
	case !pattern(r.w.tb, r.pattern[number]).Matches([]byte(topic)):
		r.w.t.Fatalf("subscription to %s got %s", r.pattern[number], topic)
	case at <= before:
		r.w.t.Fatalf("%s: %d was sent behind %d", topic, at, before)
	case before == 0 && at < r.from[number] && r.w.sure[topic] < r.from[number]:
		r.w.t.Fatalf("%s: resumed from %d, sent %d, which is known to be right up to %d only", topic, r.from[number], at, r.w.sure[topic])
	}
	r.got[number][topic] = at
	r.buffered += len(frame)
}

func (w *ladders) markGroup(g string, stale bool) { w.stale[g+".L1"], w.stale[g+".L2"] = stale, stale }

// surer: what no entry has touched is right up to where the log was read.
func (w *ladders) surer() {
	for topic := range w.latest {
		if !w.stale[topic] {
			w.sure[topic] = w.h.Last(0).Seq
		}
	}
}

func group0(topic string) string { g, _ := cutLast(topic); return g }

func (r *reader) Gap(uint32, *Gap) { r.w.t.Fatal("a gap was told") }
func (r *reader) Live(uint32)      { r.w.t.Fatal("live was told") }
func (r *reader) Close(err error)  { r.w.t.Fatal(err) }

// TestLatestProperty: whatever is kept, stale, subscribed to and slow, positions of a topic rise for each subscription, one
// that resumes gets nothing that may be older than that, in the end each has the latest of all its topics, groups are asked
// for while they have subscriptions, and nothing waits then.
func TestLatestProperty(tb *testing.T) {
	rapid.Check(tb, func(t *rapid.T) {
		w := &ladders{t: t, tb: tb, latest: map[string]uint64{}, sure: map[string]uint64{}, stale: map[string]bool{}, asked: map[string]int{}}
		h, err := New(Config{Lineage: 3, Partitions: 1, Encodings: []Encoding{testEncoding{'a'}, testEncoding{'b'}}, RingBytes: 4096, RingSlots: 16, Limits: Limits{Buffered: 120}, Latest: "book",
			Asked: func(g string) error { w.asked[g]++; return nil }, Left: func(g string) { w.asked[g]-- }})
		if err != nil {
			t.Fatal(err)
		}
		w.h = h
		for range 3 {
			r := &reader{w: w, got: map[uint32]map[string]uint64{}, from: map[uint32]uint64{}, pattern: map[uint32]string{}}
			r.c = h.Open(r, rapid.IntRange(0, 1).Draw(t, "encoding"))
			w.readers = append(w.readers, r)
		}
		groups := rapid.SampledFrom([]string{"book.A", "book.B"})
		number := uint32(0)
		anyReader := func() *reader { return w.readers[rapid.IntRange(0, 2).Draw(t, "reader")] }
		t.Repeat(map[string]func(*rapid.T){
			"keep": func(t *rapid.T) {
				topic := groups.Draw(t, "group") + rapid.SampledFrom([]string{".L1", ".L2"}).Draw(t, "level")
				at := h.Last(0).Seq - min(h.Last(0).Seq, uint64(rapid.IntRange(0, 3).Draw(t, "behind")))
				if at <= w.latest[topic] {
					return
				}
				stale := rapid.Bool().Draw(t, "stale")
				if w.sure[topic] = h.Last(0).Seq; stale {
					w.sure[topic] = at
					h.Stale(group0(topic))
					w.markGroup(group0(topic), true)
				}
				w.stale[topic] = stale
				if h.groups[group0(topic)] != nil {
					w.latest[topic] = at
				}
				if err := h.Keep(&Message{At: Position{Seq: at}, Topic: []byte(topic), Payload: fmt.Appendf(nil, "=%d", at)}, stale); err != nil {
					t.Fatal(err)
				}
			},
			"log": func(*rapid.T) {
				h.Examined(0, Position{Seq: h.Last(0).Seq + 1})
				w.surer()
			},
			"stale": func(t *rapid.T) {
				g := groups.Draw(t, "group")
				w.markGroup(g, true)
				h.Stale(g)
			},
			"fresh": func(t *rapid.T) {
				g := groups.Draw(t, "group")
				w.markGroup(g, false)
				w.surer()
				h.Fresh(g)
			},
			"subscribe": func(t *rapid.T) {
				r := anyReader()
				number++
				p := groups.Draw(t, "group") + rapid.SampledFrom([]string{".L1", ".L2", ".*", ".>"}).Draw(t, "what")
				s := Subscription{Number: number, Pattern: pattern(w.tb, p), Flush: rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond}).Draw(t, "flush")}
				if rapid.Bool().Draw(t, "resume") {
					token := h.Token()
					s.Resume, s.Hold, r.from[number] = &token, true, h.Last(0).Seq
				}
				r.got[number], r.pattern[number] = map[string]uint64{}, p
				sub, err := r.c.Subscribe(s)
				if err != nil {
					t.Fatal(err)
				}
				sub.Release()
			},
			"unsubscribe": func(t *rapid.T) {
				r := anyReader()
				for n := range number + 1 {
					if r.c.Subscription(n) != nil {
						g := group0(r.pattern[n])
						r.c.Unsubscribe(n)
						delete(r.got, n)
						if h.groups[g] == nil {
							delete(w.latest, g+".L1")
							delete(w.latest, g+".L2")
						}
						return
					}
				}
			},
			"read": func(t *rapid.T) { r := anyReader(); r.buffered = 0; r.c.Writable() },
			"tick": func(*rapid.T) { w.now += 7 * time.Millisecond; h.Tick(w.now) },
		})
		for _, g := range []string{"book.A", "book.B"} {
			w.markGroup(g, false)
			w.surer()
			h.Fresh(g)
		}
		for range 100 {
			w.now += 7 * time.Millisecond
			h.Tick(w.now)
			for _, r := range w.readers {
				r.buffered = 0
			}
		}
		want := map[string]int{}
		for _, r := range w.readers {
			for n, got := range r.got {
				want[group0(r.pattern[n])] = 1
				for topic, at := range w.latest {
					if pattern(w.tb, r.pattern[n]).Matches([]byte(topic)) && got[topic] != at {
						t.Fatalf("subscription %d has %s at %d, latest is %d", n, topic, got[topic], at)
					}
				}
			}
		}
		for _, g := range []string{"book.A", "book.B"} {
			if w.asked[g] != want[g] {
				t.Errorf("%s is asked for %d times, want %d", g, w.asked[g], want[g])
			}
		}
		if s := h.Stats(); s.Waiting != 0 || !h.Idle() {
			t.Errorf("%d subscriptions wait", s.Waiting)
		}
		for _, r := range w.readers {
			r.c.Close()
		}
		if len(h.groups) != 0 || h.Stats().Subscriptions != 0 {
			t.Errorf("%d groups are left of clients that are gone", len(h.groups))
		}
	})
}

// TestLatestOwedThenBehind: a subscription that is owed a message, and resumed from a position behind that of the stale one
// which takes its place, waits for what comes then. It was sent the stale one.
func TestLatestOwedThenBehind(t *testing.T) {
	for _, sent := range []bool{false, true} {
		h := small(t, Limits{})
		h.cfg.Latest = "book"
		out := &log{}
		other, c := h.Open(&log{}, 0), h.Open(out, 0)
		if _, err := other.Subscribe(Subscription{Number: 1, Pattern: pattern(t, "book.A.*")}); err != nil {
			t.Fatal(err)
		}
		keep := func(at uint64, stale bool) {
			t.Helper()
			if err := h.Keep(&Message{At: Position{Seq: at}, Topic: []byte("book.A.L1"), Payload: fmt.Appendf(nil, "=%d", at)}, stale); err != nil {
				t.Fatal(err)
			}
		}
		keep(1, false)
		h.Examined(0, Position{Seq: 3})
		token := h.Token()
		sub, err := c.Subscribe(Subscription{Number: 2, Pattern: pattern(t, "book.A.L1"), Resume: &token, Hold: true})
		if err != nil {
			t.Fatal(err)
		}
		if sub.Release(); sent {
			h.Tick(time.Second)
		}
		keep(2, true)
		for i := range 10 {
			h.Tick(time.Duration(i+2) * time.Second)
		}
		if n := strings.Count(strings.Join(out.sent, " "), "=2"); n != 0 {
			t.Errorf("sent %v before: resumed from 3, sent the stale one of 2: %q", sent, out.sent)
		}
		h.Fresh("book.A")
		for i := range 10 {
			h.Tick(time.Duration(i+20) * time.Second)
		}
		if n := strings.Count(strings.Join(out.sent, " "), "=2"); n != 1 {
			t.Errorf("sent %v before: has the one of 2 %d times after it was fresh, want once: %q", sent, n, out.sent)
		}
	}
}

// TestLatestRefuses: what a subscription to latest messages cannot have is an error, and leaves nothing.
func TestLatestRefuses(t *testing.T) {
	h := small(t, Limits{})
	h.cfg.Latest, h.cfg.Asked = "book", func(g string) error {
		if g == "book.NO" {
			return errors.New("not traded")
		}
		return nil
	}
	c := h.Open(&log{}, 0)
	for _, w := range []Subscription{
		{Pattern: pattern(t, "book.>")}, {Pattern: pattern(t, "book.*.L1")}, {Pattern: pattern(t, "book")}, {Pattern: pattern(t, "book.A.L1"), Policy: Disconnect},
		{Pattern: pattern(t, "book.A.L1"), Last: 1}, {Pattern: pattern(t, "book.NO.L1")}, {Pattern: pattern(t, "book.A.L1"), Resume: &Token{Lineage: 4}},
	} {
		if _, err := c.Subscribe(w); err == nil {
			t.Errorf("%+v is taken", w)
		}
	}
	if len(h.groups) != 0 || h.Stats().Subscriptions != 0 {
		t.Errorf("%d groups, %d subscriptions are left", len(h.groups), h.Stats().Subscriptions)
	}
	if _, err := c.Subscribe(Subscription{Number: 1, Pattern: pattern(t, ">")}); err != nil {
		t.Fatal(err)
	}
	if err := h.Keep(&Message{At: Position{Seq: 1}, Topic: []byte("book.A.L1")}, false); err != nil || h.Stats().Delivered != 0 || h.Stats().Unwanted != 1 {
		t.Errorf("a message that no subscription to its topic wants: %v, %+v", err, h.Stats())
	}
}
