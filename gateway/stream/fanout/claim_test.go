package fanout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// source is a log of which the hub is brought what was asked for, and who came for what.
type source struct {
	t       *rapid.T
	hub     *Hub
	log     [][]Message // by partition
	asked   []map[string]int
	eras    [][]sourceEra
	claims  map[*sourceClaim]bool
	clients []*sourceClient
	now     time.Duration
}

type sourceEra struct {
	after  Position
	topics map[string]int
}

type sourceClaim struct {
	s      *source
	topics []string
}

var sourceTopics = []string{"t.a", "t.b", "t.c", "t.d"}

func (s *source) join(p topics.Pattern, _ topics.Filter) Claim {
	c := &sourceClaim{s: s}
	for _, topic := range sourceTopics {
		if p.Matches([]byte(topic)) {
			c.topics = append(c.topics, topic)
		}
	}
	s.claims[c] = true
	return c
}

func (c *sourceClaim) Leave() { delete(c.s.claims, c) }

func (c *sourceClaim) Size() int { return 100 }

func (c *sourceClaim) Since(p int, has Position) (at Position, known bool) {
	for _, e := range slices.Backward(c.s.eras[p]) {
		for _, topic := range c.topics {
			if e.topics[topic] == 0 {
				return at, known
			}
		}
		if at, known = e.after, true; !has.Before(at) {
			break
		}
	}
	return at, known
}

// sourceClient has one subscription.
type sourceClient struct {
	s    *source
	c    *Client
	sub  *Sub
	want topics.Pattern
	from []Position // what is behind is to come
	rewound, last, live,
	slow,
	lost bool // it is not told when a partition comes
	got []event
}

func (c *sourceClient) Buffered() int {
	if c.slow {
		return 1 << 20
	}
	return 0
}
func (*sourceClient) Close(error) {}

func (c *sourceClient) Live(uint32) { c.live = true }

func (c *sourceClient) Message(frame []byte, _ int, _ uint32) {
	m := Message{Partition: int(frame[5]), At: Position{binary.BigEndian.Uint64(frame[6:]), binary.BigEndian.Uint32(frame[14:])}}
	topic, _, _ := strings.Cut(string(frame[18:]), "=")
	m.Topic = []byte(topic)
	c.got = append(c.got, event{m: m})
}

func (c *sourceClient) Gap(_ uint32, g *Gap) {
	for _, r := range g.Ranges {
		c.got = append(c.got, event{gap: r})
	}
}

// What is brought changes all the time. Each subscription gets each message that it is for once and in order, or a gap of
// what has left the ring, as if everything were published.
func TestClaimsMissNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &source{t: t, claims: map[*sourceClaim]bool{}}
		parts := rapid.IntRange(1, 2).Draw(t, "partitions")
		var err error
		s.hub, err = New(Config{Lineage: 3, Partitions: parts, Encodings: []Encoding{testEncoding{'a'}}, RingBytes: 1 << 16,
			RingSlots: rapid.SampledFrom([]int{16, 1000}).Draw(t, "slots"), Join: s.join})
		if err != nil {
			t.Fatal(err)
		}
		s.log, s.asked, s.eras = make([][]Message, parts), make([]map[string]int, parts), make([][]sourceEra, parts)
		t.Repeat(map[string]func(*rapid.T){
			"entry": s.entry, "entry2": s.entry, "ask": s.ask, "subscribe": s.subscribe, "leave": s.leave, "read": s.read, "goOn": s.goOn, "slow": s.slow, "tick": s.tick, "": s.check,
		})
		s.finish(t)
	})
}

// entry commits one with some messages: those asked for are published.
func (s *source) entry(t *rapid.T) {
	p := rapid.IntRange(0, len(s.log)-1).Draw(t, "partition")
	seq := s.hub.Last(p).Seq + 1
	for n := range rapid.IntRange(0, 3).Draw(t, "messages") {
		m := Message{Partition: p, At: Position{seq, uint32(n)}, Topic: []byte(rapid.SampledFrom(sourceTopics).Draw(t, "topic")), Payload: []byte("=")}
		s.log[p] = append(s.log[p], m)
		if s.asked[p][string(m.Topic)] > 0 {
			if err := s.hub.Publish(&m); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.hub.Examined(p, Position{seq, math.MaxUint32})
}

// ask has a partition bring what is claimed now.
func (s *source) ask(t *rapid.T) {
	p := rapid.IntRange(0, len(s.log)-1).Draw(t, "partition")
	asked := map[string]int{}
	for c := range s.claims {
		for _, topic := range c.topics {
			asked[topic]++
		}
	}
	if s.asked[p] = asked; len(s.eras[p]) == 5 {
		s.eras[p] = slices.Delete(s.eras[p], 0, 1)
	}
	s.eras[p] = append(s.eras[p], sourceEra{s.hub.Last(p), asked})
	s.comes(p)
}

// comes tells those that went on without a partition, as the listener does.
func (s *source) comes(p int) {
	for _, k := range s.clients {
		if !k.lost {
			k.sub.Comes(p)
		}
	}
}

// slow has a client take nothing, or all again.
func (s *source) slow(t *rapid.T) {
	if len(s.clients) == 0 {
		return
	}
	k := rapid.SampledFrom(s.clients).Draw(t, "client")
	if k.slow = !k.slow; !k.slow {
		k.c.Writable()
	}
}

// goOn has those that wait go on without the partitions that are away. What the ring lacks is a gap.
func (s *source) goOn(t *rapid.T) {
	for _, k := range s.clients {
		if k.sub.Waits() && k.sub.Held() && k.sub.Back() == 0 {
			k.lost = k.lost || rapid.Bool().Draw(t, "lost")
			k.sub.Release()
		}
	}
}

func (s *source) subscribe(t *rapid.T) {
	if len(s.clients) > 6 {
		return
	}
	want := pattern2(t, rapid.SampledFrom([]string{"t.a", "t.b", "t.c", "t.*", "t.>", ">"}).Draw(t, "pattern"))
	k := &sourceClient{s: s, want: want}
	k.c = s.hub.Open(k, 0)
	w := Subscription{Number: 1, Pattern: want}
	k.from = slices.Clone(s.hub.last)
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		w.Resume, w.Hold = &Token{Lineage: 3}, true
		for p := range k.from {
			seq := rapid.Uint64Range(0, s.hub.Last(p).Seq).Draw(t, "seq")
			k.from[p] = Position{seq, rapid.SampledFrom([]uint32{0, 1, math.MaxUint32}).Draw(t, "index")}
			w.Resume.At = append(w.Resume.At, PartitionPosition{p, k.from[p]})
		}
	case 1:
		w.Last, k.last = rapid.IntRange(1, 5).Draw(t, "last"), true
	}
	var err error
	if k.sub, err = k.c.Subscribe(w); err != nil {
		t.Fatal(err)
	}
	s.clients = append(s.clients, k)
}

func pattern2(t *rapid.T, text string) topics.Pattern {
	p, err := topics.ParsePattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *source) leave(t *rapid.T) {
	if len(s.clients) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.clients)-1).Draw(t, "client")
	s.clients[i].c.Close()
	s.clients = slices.Delete(s.clients, i, i+1)
}

// read is what the listener does for one on hold: it looks for its last messages, and reads what it lacks.
func (s *source) read(t *rapid.T) {
	for _, k := range s.clients {
		if !k.sub.Held() || k.sub.Waits() || k.slow {
			continue
		}
		if n := k.sub.Back(); n > 0 {
			at := make([]Position, len(s.log))
			for p := range at {
				at[p] = k.sub.At(p)
				for i, left := len(s.log[p])-1, n; i >= 0 && left > 0; i-- {
					if m := &s.log[p][i]; !at[p].Before(m.At) && k.want.Matches(m.Topic) {
						at[p] = Position{m.At.Seq - 1, math.MaxUint32}
						left--
					}
				}
			}
			k.sub.Rewind(at)
			k.from, k.rewound = at, true
		}
		for missing := k.sub.Missing(); len(missing) > 0; missing = k.sub.Missing() {
			r := missing[0]
			for i := range s.log[r.Partition] {
				if m := &s.log[r.Partition][i]; m.At.Seq <= r.Through.Seq && k.want.Matches(m.Topic) && !k.sub.Feed(m) {
					t.Fatal("there is no room")
				}
			}
			k.sub.Fed(r.Partition, Position{r.Through.Seq, math.MaxUint32})
		}
		k.sub.Release()
	}
}

func (s *source) tick(*rapid.T) {
	s.now += time.Millisecond
	s.hub.Tick(s.now)
}

// check: what a client got is what it is for, from where it began, without a hole but those told.
func (s *source) check(t *rapid.T) {
	for i, k := range s.clients {
		for p, log := range s.log {
			at := k.from[p]
			if k.last && !k.rewound { // from the ring: it begins with what it got first
				at = Position{}
				if n := slices.IndexFunc(k.got, func(e event) bool { return e.m.Topic != nil && e.m.Partition == p }); n >= 0 {
					at = Position{k.got[n].m.At.Seq - 1, math.MaxUint32}
					if k.got[n].m.At.Index > 0 {
						at = Position{k.got[n].m.At.Seq, k.got[n].m.At.Index - 1}
					}
				}
			}
			log = slices.DeleteFunc(slices.Clone(log), func(m Message) bool { return !at.Before(m.At) || !k.want.Matches(m.Topic) })
			for _, e := range k.got {
				switch {
				case e.m.Topic != nil && e.m.Partition == p:
					if len(log) == 0 || log[0].At != e.m.At {
						t.Fatalf("client %d (%s) got p%d:%s, want %v", i, k.want, p, e.m.At, at0(log))
					}
					log = log[1:]
				case e.m.Topic == nil && e.gap.Partition == p:
					for len(log) > 0 && e.gap.After.Before(log[0].At) && !e.gap.Through.Before(log[0].At) {
						log = log[1:]
					}
				}
			}
			if end := k.sub.Token().At[p].At; len(log) > 0 && !end.Before(log[0].At) && !(k.last && !k.rewound) {
				t.Fatalf("client %d (%s) is at p%d:%s and lacks %s", i, k.want, p, end, log[0].At)
			}
		}
	}
}

func at0(log []Message) string {
	if len(log) == 0 {
		return "nothing"
	}
	return log[0].At.String()
}

// finish: once all that is claimed is brought, no client waits, and all are at the end.
func (s *source) finish(t *rapid.T) {
	for p := range s.log {
		asked := map[string]int{}
		for c := range s.claims {
			for _, topic := range c.topics {
				asked[topic]++
			}
		}
		s.asked[p] = asked
		s.eras[p] = append(s.eras[p], sourceEra{s.hub.Last(p), asked})
		s.comes(p)
		for _, topic := range sourceTopics { // those that are lost see it by a message
			m := Message{Partition: p, At: Position{s.hub.Last(p).Seq + 1, 0}, Topic: []byte(topic), Payload: []byte("=")}
			if s.log[p] = append(s.log[p], m); asked[topic] > 0 {
				if err := s.hub.Publish(&m); err != nil {
					t.Fatal(err)
				}
			}
			s.hub.Examined(p, m.At)
		}
	}
	for _, k := range s.clients {
		k.slow = false
		k.c.Writable()
		if k.lost && k.sub.Held() {
			k.sub.Release()
		}
	}
	s.read(t)
	for range 100 {
		s.tick(t)
	}
	s.check(t)
	for i, k := range s.clients {
		for _, at := range k.sub.Token().At {
			if at.At != s.hub.Last(at.Partition) {
				t.Fatalf("client %d (%s) is at p%d:%s, the log at %s", i, k.want, at.Partition, at.At, s.hub.Last(at.Partition))
			}
		}
		if k.last && !k.live {
			t.Fatalf("client %d (%s) is not told that it is live", i, k.want)
		}
		if k.sub.catch != nil {
			t.Fatal(fmt.Sprint("client ", i, " still catches up"))
		}
	}
}

// largeClaim takes as many bytes as it says, and counts those that are there.
type largeClaim struct{ size, there *int }

func (c largeClaim) Size() int                              { return *c.size }
func (c largeClaim) Leave()                                 { *c.there-- }
func (largeClaim) Since(int, Position) (p Position, _ bool) { return p, true }

// What a claim takes counts as a subscription's, and one that is refused leaves nothing.
func TestClaimsAreBounded(t *testing.T) {
	size, there := 600, 0
	h, err := New(Config{Partitions: 1, Encodings: []Encoding{testEncoding{'a'}}, Limits: Limits{IndexBytes: 2000}, Join: func(topics.Pattern, topics.Filter) Claim {
		there++
		return largeClaim{&size, &there}
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := h.Open(&sourceClient{}, 0)
	want, err := topics.ParsePattern("t.a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		_, err = c.Subscribe(Subscription{Number: uint32(i), Pattern: want})
		if full := i == 2; errors.Is(err, ErrLimit) != full || there != min(i+1, 2) {
			t.Errorf("subscription %d: %v, and %d claims are there", i, err, there)
		}
	}
	if c.Unsubscribe(0); there != 1 || h.Stats().Subscriptions != 1 {
		t.Errorf("%d claims are there, of %d subscriptions", there, h.Stats().Subscriptions)
	}
	if _, err := c.Subscribe(Subscription{Number: 7, Pattern: want}); err != nil || there != 2 {
		t.Errorf("%v, and %d claims are there", err, there)
	}
}
