package fanout

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func users(t testing.TB, change func(*Config)) *Hub {
	t.Helper()
	cfg := Config{Lineage: 3, Partitions: 2, Encodings: []Encoding{testEncoding{'a'}}, User: []string{"user"}}
	if change != nil {
		change(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func tellUser(t testing.TB, h *Hub, topic, text string, here bool) {
	t.Helper()
	if err := h.PublishUser(&Message{Partition: NoPartition, Topic: []byte(topic), Payload: []byte(text)}, here); err != nil {
		t.Fatal(err)
	}
}

// userReader is a connection that takes so many bytes at a time as the test says.
type userReader struct {
	buffered int
	got      []string // topic and payload, or a gap
	closed   error
}

func (r *userReader) Buffered() int { return r.buffered }
func (r *userReader) Message(frame []byte, _ int, _ uint32) {
	r.buffered += len(frame)
	r.got = append(r.got, string(frame[18:]))
}
func (r *userReader) Gap(_ uint32, g *Gap) {
	text := fmt.Sprintf("gap user %d", g.User)
	for _, k := range g.Ranges {
		text += fmt.Sprintf(" p%d:%s..%s %d", k.Partition, k.After, k.Through, k.Count)
	}
	r.got = append(r.got, text)
}
func (r *userReader) Live(uint32)        {}
func (r *userReader) Close(reason error) { r.closed = reason }
func (r *userReader) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(r.got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(r.got, "\n"), strings.Join(want, "\n"))
	}
	r.got = nil
}

func join(t testing.TB, h *Hub, topics string, change func(*Subscription)) (*userReader, *Client, *Sub) {
	t.Helper()
	r := &userReader{}
	c := h.Open(r, 0)
	w := Subscription{Number: 1, Pattern: pattern(t, topics)}
	if change != nil {
		change(&w)
	}
	s, err := c.Subscribe(w)
	if err != nil {
		t.Fatal(err)
	}
	return r, c, s
}

// A message of a client goes to those it is for, takes no position, and is not there for those who come later.
func TestUserMessages(t *testing.T) {
	h := users(t, nil)
	all, _, s := join(t, h, ">", nil)
	news, _, _ := join(t, h, "user.news.*", nil)
	here, _, _ := join(t, h, "user.>", func(w *Subscription) { w.Here = true })
	orders, _, _ := join(t, h, "orders.>", nil)
	tellUser(t, h, "user.news.a", "1", true)
	publish(t, h, 0, 1, "orders.x")
	tellUser(t, h, "user.other", "2", false)
	late, _, _ := join(t, h, ">", func(w *Subscription) { w.Last = 100 })
	for ms := range 5 {
		h.Tick(time.Duration(ms+1) * time.Millisecond)
	}
	all.want(t, "user.news.a1", "orders.x=1", "user.other2")
	news.want(t, "user.news.a1")
	here.want(t, "user.news.a1")
	orders.want(t, "orders.x=1")
	late.want(t, "orders.x=1")
	if got := s.Token().String(); got != "3.p0:1,p1:0" {
		t.Errorf("token is %s", got)
	}
	if err := s.Send(&Message{Partition: NoPartition, Topic: []byte("inbox.a"), Payload: []byte("3")}); err != nil {
		t.Fatal(err)
	}
	all.want(t, "inbox.a3")
	news.want(t)
}

// One that comes back, and all when messages of elsewhere may be missing, are told so.
func TestUserMessagesMissedElsewhere(t *testing.T) {
	h := users(t, nil)
	token := h.Token()
	back, _, _ := join(t, h, "user.>", func(w *Subscription) { w.Resume, w.Hold = &token, true })
	orders, _, _ := join(t, h, "orders.>", nil)
	here, _, _ := join(t, h, "user.>", func(w *Subscription) { w.Here = true })
	slow, _, _ := join(t, h, ">", func(w *Subscription) { w.Flush = 10 * time.Millisecond })
	h.Tick(time.Millisecond)
	back.want(t, "gap user -1")
	h.LoseUser()
	publish(t, h, 0, 1, "orders.x")
	for ms := range 30 {
		h.Tick(time.Duration(ms+2) * time.Millisecond)
	}
	back.want(t, "gap user -1")
	orders.want(t, "orders.x=1")
	here.want(t)
	slow.want(t, "orders.x=1", "gap user -1") // no order is left out for it
	if _, err := h.Open(&userReader{}, 0).Subscribe(Subscription{Pattern: pattern(t, "user.a"), Last: 3}); err == nil || !strings.Contains(err.Error(), "allowed: 0") {
		t.Errorf("last of a topic of clients: %v", err)
	}
}

// Messages longer than what a connection may hold are in so many connections at a time as Limits.Large allows.
func TestLargeUserMessages(t *testing.T) {
	h := users(t, func(c *Config) { c.Limits = Limits{Buffered: 100, Queued: 200, Large: 2500}; c.UserBytes = 64 << 10 })
	var readers []*userReader
	var clients []*Client
	for range 5 {
		r, c, _ := join(t, h, "user.>", nil)
		readers, clients = append(readers, r), append(clients, c)
	}
	text := strings.Repeat("x", 1000)
	tellUser(t, h, "user.a", text, true)
	served := func() (n int) {
		for _, r := range readers {
			n += len(r.got)
		}
		return n
	}
	h.Tick(time.Millisecond)
	if n := served(); n != 2 {
		t.Fatalf("%d connections have the message, allowed: 2", n)
	}
	for ms := range 3 {
		for i, r := range readers {
			r.buffered = 0
			clients[i].Writable()
		}
		h.Tick(time.Duration(ms+2) * time.Millisecond)
	}
	if n := served(); n != 5 {
		t.Fatalf("%d connections got the message, want 5", n)
	}
	// Two that do not read hold the others up for a time, then they are closed.
	for _, r := range readers {
		r.got, r.buffered = nil, 0
	}
	h.Tick(10 * time.Millisecond)
	tellUser(t, h, "user.a", text, true)
	h.Tick(11 * time.Millisecond)
	h.Tick(20 * time.Second)
	h.Tick(20*time.Second + time.Millisecond)
	closed := 0
	for _, r := range readers {
		if r.closed != nil {
			closed++
		}
	}
	if closed != 2 || served() != 4 {
		t.Errorf("%d connections were closed and %d got the message, want 2 and 4", closed, served())
	}
}

// Whatever is published, read and lost: each subscription gets the messages of clients in the order they were published,
// and is told the number of those it did not get, in their place; and of the log it gets everything, or the gap.
func TestUserMessagesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, err := New(Config{Lineage: 3, Partitions: 1, Encodings: []Encoding{testEncoding{'a'}}, RingBytes: 4096, User: []string{"user"},
			UserBytes: rapid.SampledFrom([]int{1024, 8192}).Draw(t, "ring"), Seed: rapid.Uint64().Draw(t, "seed"),
			Limits: Limits{Buffered: rapid.SampledFrom([]int{60, 200}).Draw(t, "buffered"), Queued: rapid.SampledFrom([]int{100, 400}).Draw(t, "queued"), Large: 300}})
		if err != nil {
			t.Fatal(err)
		}
		type side struct {
			r     *userReader
			c     *Client
			s     *Sub
			after int // of the messages of clients when it came
		}
		sides := map[int]*side{}
		users, orders, now, next := 0, 0, time.Duration(0), 0
		t.Repeat(map[string]func(*rapid.T){
			"user": func(t *rapid.T) {
				users++
				payload := append(fmt.Appendf(nil, "%06d", users), bytes.Repeat([]byte{'x'}, rapid.SampledFrom([]int{0, 30, 90}).Draw(t, "size"))...)
				if err := h.PublishUser(&Message{Partition: NoPartition, Topic: []byte("user.a"), Payload: payload}, true); err != nil {
					t.Fatal(err)
				}
			},
			"order": func(t *rapid.T) {
				orders++
				if err := h.Publish(&Message{At: Position{Seq: uint64(orders)}, Topic: []byte("orders.a"), Payload: fmt.Appendf(nil, "%06d", orders)}); err != nil {
					t.Fatal(err)
				}
			},
			"come": func(t *rapid.T) {
				if len(sides) > 4 {
					return
				}
				r := &userReader{}
				k := &side{r: r, c: h.Open(r, 0), after: users}
				w := Subscription{Pattern: pattern2(t, rapid.SampledFrom([]string{"user.>", ">"}).Draw(t, "topics")), Flush: rapid.SampledFrom([]time.Duration{0, 3 * time.Millisecond}).Draw(t, "flush")}
				if rapid.Bool().Draw(t, "last") && w.Pattern.String() == ">" {
					w.Last = 5
				}
				if k.s, err = k.c.Subscribe(w); err != nil {
					t.Fatal(err)
				}
				sides[next] = k
				next++
			},
			"read": func(t *rapid.T) {
				if len(sides) == 0 {
					return
				}
				k := sides[rapid.SampledFrom(slices.Sorted(maps.Keys(sides))).Draw(t, "client")]
				k.r.buffered = 0
				k.c.Writable()
			},
			"tick": func(t *rapid.T) { now += time.Millisecond; h.Tick(now) },
			"": func(t *rapid.T) {
				for _, k := range sides {
					judgeUser(t, k.r, k.after)
					for _, n := range k.s.queue[k.s.first:] {
						if r := h.ringOf(h.entry(n)); n&^userBit < r.tail || n&^userBit >= r.head || n&userBit != r.mark {
							t.Fatalf("message %x waits, its ring has %d to %d", n, r.tail, r.head)
						}
					}
				}
			},
		})
		for range 3000 { // all read everything
			now += time.Millisecond
			for _, k := range sides {
				k.r.buffered = 0
				k.c.Writable()
			}
			h.Tick(now)
		}
		for _, k := range sides {
			if at := judgeUser(t, k.r, k.after); at != users && k.r.closed == nil {
				t.Fatalf("a client is at message %d of %d: %q", at, users, k.r.got)
			}
		}
	})
}

// judgeUser returns up to which message of clients what a reader got accounts for.
func judgeUser(t *rapid.T, r *userReader, after int) int {
	at := after
	for _, got := range r.got {
		var n int
		switch {
		case strings.HasPrefix(got, "gap user "):
			if _, err := fmt.Sscanf(got, "gap user %d", &n); err != nil || n < 0 {
				t.Fatalf("%s, %v", got, err)
			}
			at += n
		case strings.HasPrefix(got, "user.a"):
			if _, err := fmt.Sscanf(got[len("user.a"):][:6], "%d", &n); err != nil || n != at+1 {
				t.Fatalf("message %d behind %d, %v", n, at, err)
			}
			at = n
		}
	}
	return at
}
