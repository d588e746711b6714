package fanout

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"pgregory.net/rapid"
)

// world is a hub and what a simple model knows: every message ever published, and what each stream was sent.
type world struct {
	t       *rapid.T
	hub     *Hub
	now     time.Duration
	history [][]Message // by partition
	clients []*testClient
	streams []*stream
	number  uint32
}

// testClient is a connection with room for a few messages.
type testClient struct {
	id       int
	w        *world
	c        *Client
	buffered int
	streams  map[uint32]*stream
	closed   error
}

// stream is a subscription through all its resumptions.
type stream struct {
	what   Subscription
	client *testClient // nil: not subscribed now
	sub    *Sub
	start  []Position
	known  []Position // what a client knows by itself: the end of what it was sent
	token  Token      // the hub's, some time ago
	events []event
	filter bool
	live   bool
	// Times that it was subscribed.
	sessions int
}

type event struct {
	m       Message // Topic nil: a gap
	gap     Range
	session int // of stream.sessions
}

// testEncoding frames a message as slot, partition, position and topic.
type testEncoding struct{ tag byte }

func (e testEncoding) Append(dst []byte, m *Message) ([]byte, int) {
	dst = append(dst, e.tag)
	slot := len(dst)
	dst = append(dst, 0, 0, 0, 0, byte(m.Partition))
	dst = binary.BigEndian.AppendUint64(dst, m.At.Seq)
	dst = binary.BigEndian.AppendUint32(dst, m.At.Index)
	return append(append(dst, m.Topic...), m.Payload...), slot
}

func (c *testClient) String() string { return fmt.Sprintf("client %d", c.id) }

func (s *stream) String() string { return fmt.Sprintf("subscription %d", s.what.Number) }

func (c *testClient) Buffered() int { return c.buffered }

func (c *testClient) Message(frame []byte, slot int, number uint32) {
	if frame[0] != 'a'+c.c.encoding || slot != 1 {
		c.w.t.Fatalf("frame %q has slot %d, client has encoding %d", frame, slot, c.c.encoding)
	}
	p, at := int(frame[5]), Position{binary.BigEndian.Uint64(frame[6:]), binary.BigEndian.Uint32(frame[14:])}
	c.buffered += len(frame)
	s := c.streams[number]
	for _, m := range c.w.history[p] {
		if m.At == at {
			if string(frame[18:]) != string(m.Topic)+string(m.Payload) {
				c.w.t.Fatalf("frame %q of p%d:%s, published was %s %s", frame, p, at, m.Topic, m.Payload)
			}
			s.events = append(s.events, event{m: m, session: s.sessions})
			s.known[p] = at
			return
		}
	}
	c.w.t.Fatalf("p%d:%s was never published", p, at)
}

func (c *testClient) Gap(number uint32, g *Gap) {
	c.buffered += gapSize
	s := c.streams[number]
	for _, r := range g.Ranges {
		s.events = append(s.events, event{gap: r})
		if s.known[r.Partition].Before(r.Through) {
			s.known[r.Partition] = r.Through
		}
	}
}

func (c *testClient) Live(number uint32) {
	if s := c.streams[number]; s.live || s.what.Last == 0 {
		c.w.t.Fatalf("%s is live, again or without being asked for", s)
	}
	c.streams[number].live = true
}

func (c *testClient) Close(reason error) {
	c.closed = reason
	for _, s := range c.streams {
		token := s.token
		if s.what.Policy != Conflate {
			token = s.ownToken()
		}
		s.what.Resume, s.what.Last, s.client, s.sub = &token, 0, nil, nil
	}
	clear(c.streams)
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t}
	parts := rapid.IntRange(1, 3).Draw(t, "partitions")
	hub, err := New(Config{Lineage: 3, Partitions: parts, Encodings: []Encoding{testEncoding{'a'}, testEncoding{'b'}},
		RingBytes: rapid.SampledFrom([]int{4096, 16384}).Draw(t, "ring"), RingSlots: rapid.SampledFrom([]int{16, 100}).Draw(t, "slots"),
		Seed: rapid.Uint64().Draw(t, "seed"), Limits: Limits{Buffered: 120, Queued: rapid.SampledFrom([]int{100, 400}).Draw(t, "queued")}})
	if err != nil {
		t.Fatal(err)
	}
	w.hub, w.history = hub, make([][]Message, parts)
	return w
}

func (w *world) publish(t *rapid.T) {
	p := rapid.IntRange(0, len(w.history)-1).Draw(t, "partition")
	at := w.hub.Last(p)
	if rapid.Bool().Draw(t, "same entry") && at.Seq > 0 {
		at.Index++
	} else {
		at = Position{at.Seq + rapid.Uint64Range(1, 3).Draw(t, "step"), 0}
	}
	m := Message{Partition: p, At: at, Topic: []byte(fmt.Sprintf("t%d.%s", p, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "topic"))),
		Fields: []topics.Value{topics.IntValue(rapid.Int64Range(0, 3).Draw(t, "field"))}, Payload: make([]byte, rapid.IntRange(0, 60).Draw(t, "payload")),
		Partial: rapid.IntRange(0, 4).Draw(t, "partial") == 0}
	w.history[p] = append(w.history[p], m)
	if err := w.hub.Publish(&m); err != nil {
		t.Fatal(err)
	}
}

func (w *world) client() *testClient {
	c := &testClient{id: len(w.clients), w: w, streams: map[uint32]*stream{}}
	c.c = w.hub.Open(c, rapid.IntRange(0, 1).Draw(w.t, "encoding"))
	w.clients = append(w.clients, c)
	return c
}

func (w *world) pick(t *rapid.T) *testClient {
	open := slices.DeleteFunc(slices.Clone(w.clients), func(c *testClient) bool { return c.closed != nil })
	if len(open) == 0 || len(open) < 3 && rapid.Bool().Draw(t, "new client") {
		return w.client()
	}
	return rapid.SampledFrom(open).Draw(t, "client")
}

func (w *world) subscribe(t *rapid.T) {
	w.number++
	p, err := topics.ParsePattern(rapid.SampledFrom([]string{">", "*.a", "t0.*", "t1.b", "t0.>"}).Draw(t, "pattern"))
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{what: Subscription{Number: w.number, Pattern: p, Policy: rapid.SampledFrom([]Policy{Drop, Conflate, Disconnect}).Draw(t, "policy"),
		Flush: rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond, 2 * time.Second}).Draw(t, "flush")}}
	if _, literal := p.First(); literal && rapid.Bool().Draw(t, "filtered") {
		min := "2"
		if s.what.Filter, err = topics.ParseFilter([]topics.Field{{Name: "n", Type: topics.Int}}, []topics.Term{{Field: "n", Min: &min}}); err != nil {
			t.Fatal(err)
		}
		s.filter = true
	}
	s.start = slices.Clone(w.hub.last)
	s.known = slices.Clone(s.start)
	w.streams = append(w.streams, s)
	s.what.Last = rapid.SampledFrom([]int{0, 0, 1, 5, 1000}).Draw(t, "last")
	w.attach(t, s)
	if s.what.Last > 0 {
		w.goBack(t, s)
	}
}

// goBack checks how far back a stream begins that asked for its last messages.
func (w *world) goBack(t *rapid.T, s *stream) {
	for s.sub.catch.seek > 0 {
		w.hub.left = share
		w.hub.seekBack(s.sub)
	}
	s.start = slices.Clone(s.sub.catch.at)
	s.known = slices.Clone(s.start)
	kept, given := 0, 0
	for p, history := range w.history {
		for i := range history {
			if s.wants(&history[i]) && w.hub.evicted[p].Before(history[i].At) {
				kept++
			}
			if s.wants(&history[i]) && s.start[p].Before(history[i].At) {
				given++
			}
		}
	}
	if given != min(kept, s.what.Last) {
		t.Fatalf("%s begins with %d messages, wanted are %d of %d", s, given, s.what.Last, kept)
	}
}

// attach subscribes a stream at a client, from its token if it has been subscribed before.
func (w *world) attach(t *rapid.T, s *stream) {
	c := w.pick(t)
	s.client = c
	s.sessions++
	c.streams[s.what.Number] = s
	var err error
	if s.sub, err = c.c.Subscribe(s.what); err != nil {
		t.Fatal(err)
	}
	s.token = s.sub.Token()
}

// leave ends a subscription and keeps a token: the hub's or what the client knows.
func (w *world) leave(t *rapid.T, s *stream) {
	token := s.sub.Token()
	if s.what.Policy != Conflate && rapid.Bool().Draw(t, "own token") {
		token = s.ownToken()
	}
	back, err := ParseToken(token.String())
	if err != nil {
		t.Fatal(err)
	}
	s.what.Resume, s.what.Last = &back, 0
	if !s.client.c.Unsubscribe(s.what.Number) {
		t.Fatalf("subscription %d is not there", s.what.Number)
	}
	delete(s.client.streams, s.what.Number)
	s.client, s.sub = nil, nil
}

func (s *stream) ownToken() Token {
	token := Token{Lineage: 3}
	for p, at := range s.known {
		token.At = append(token.At, PartitionPosition{p, at})
	}
	return token
}

// resume subscribes again, and sometimes feeds what the ring does not have from the history.
func (w *world) resume(t *rapid.T, s *stream) {
	s.what.Hold = rapid.Bool().Draw(t, "feed")
	w.attach(t, s)
	if !s.what.Hold {
		return
	}
	for _, r := range s.sub.Missing() {
		if rapid.Bool().Draw(t, "lost") && len(w.history[r.Partition]) > 0 {
			through := rapid.SampledFrom(w.history[r.Partition]).Draw(t, "up to").At
			if r.Through.Before(through) {
				through = r.Through
			}
			if !s.sub.Lost(r.Partition, through) {
				s.client.buffered = 0
				if !s.sub.Lost(r.Partition, through) {
					t.Fatal("an empty connection has no room for a gap")
				}
			}
		}
		for _, m := range w.history[r.Partition] {
			if !r.Through.Before(m.At) && !s.sub.Feed(&m) { // those that it has are passed over
				s.client.buffered = 0
				if !s.sub.Feed(&m) {
					t.Fatal("an empty connection has no room")
				}
			}
		}
		s.sub.Fed(r.Partition, r.Through)
	}
	s.sub.Release()
}

func (s *stream) wants(m *Message) bool {
	return s.what.Pattern.Matches(m.Topic) && (!s.filter || m.Fields[0].Num >= 2)
}
