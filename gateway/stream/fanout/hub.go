// Package fanout sends each message to the subscriptions it is for, within bounds that one slow client cannot break.
//
// A Hub has a ring with the last messages, each framed once for each encoding in use. A subscription that cannot be served
// at once has a queue of references into the ring. What does not fit any more is handled by its policy: the latest message
// of a topic replaces the one before, or a gap is told exactly, or the client is disconnected. A subscription that resumes
// reads the ring from its position.
//
// Order holds for each subscription and partition (with Conflate: for each topic). The order among clients is drawn anew
// for each message.
//
// The package does no I/O, and has neither a clock nor goroutines: a Hub is for one goroutine, which tells it the time.
package fanout

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// MaxEncodings bounds Config.Encodings.
const MaxEncodings = 2

// DefaultRingBytes is Config.RingBytes where that is 0.
const DefaultRingBytes = 64 << 20

// Message is one message. Its bytes are copied by Publish.
type Message struct {
	Partition int
	At        Position
	Topic     []byte // see topics.CheckTopic
	Fields    []topics.Value
	Payload   []byte
	// Partial: it changes what messages before it made, of its topic or others, so that it stands for none of them. Under
	// Conflate nothing behind it takes the place of what is before it.
	Partial bool
}

// Encoding frames messages as clients of one protocol get them.
type Encoding interface {
	// Append appends the frame of a message. The number of a subscription is written to frame[slot:] for each one by
	// SetSubscription: it takes the same number of bytes for all, and the rest of the frame is the same for all.
	Append(dst []byte, m *Message) (frame []byte, slot int)
}

// Outlet is a client's connection. Its methods must not call the Hub.
type Outlet interface {
	// Buffered returns how many bytes the connection has not sent yet.
	Buffered() int
	// Message sends a frame to a subscription. It copies the frame.
	Message(frame []byte, slot int, number uint32)
	// Gap tells a subscription what it misses at this place.
	Gap(number uint32, g *Gap)
	// Live tells a subscription that it has got its last messages: what follows is new.
	Live(number uint32)
	// Close ends the connection. The Hub has forgotten the client already.
	Close(reason error)
}

// Config of a Hub. Zero fields take the default.
type Config struct {
	Lineage    uint32
	Partitions int // 1..MaxPartitions
	Encodings  []Encoding
	RingBytes  int // default DefaultRingBytes
	RingSlots  int // messages kept at most; default RingBytes / 256
	// Alloc returns memory of the rings, zeroed, aligned to 64 bytes, that lives as long as the hub is reachable; nil, or one
	// that returns nil: that of Go's heap, which the collector has as much again of in reserve.
	Alloc func(bytes int) []byte
	// Ahead starts to load what an outlet is about to need to send, without waiting; nil: nothing is.
	Ahead    func(Outlet)
	MaxTried int    // see topics.NewIndex
	Seed     uint64 // of the order among clients
	Limits   Limits
	// User are first tokens of topics of clients, see PublishUser; none: there are no such messages. UserBytes is what of
	// their messages is kept while subscriptions have to wait; default 16 MiB.
	User      []string
	UserBytes int
	// Latest is the first token of topics of which the latest message counts, see Keep; empty: there are none.
	Latest string
	// Series is the last token of those of them whose messages are changes, see Source; empty: there are none. Opened is
	// called when one gets its first subscription, and returns what it is of, and the partition; an error refuses it.
	// Closed is called when it has none any more. They must not call the Hub.
	Series string
	Opened func(topic string) (Source, int, error)
	Closed func(topic string)
	// Asked is called when a group of such topics (their begin, without the last token) gets its first subscription; an
	// error refuses it. Left is called when it has none any more. They must not call the Hub.
	Asked func(group string) error
	Left  func(group string)
	// Join is called with what each other subscription is for, where messages are brought for those that want them only;
	// nil: all messages are published. It must not call the Hub.
	Join func(topics.Pattern, topics.Filter) Claim
}

// Claim is what one subscription is for.
type Claim interface {
	// Since returns a position of a partition behind which all messages that the subscription is for are published: the
	// first, or any that is not behind has; false: that is not known yet, and then they are brought soon.
	Since(partition int, has Position) (Position, bool)
	// Size is how many bytes it takes, which count as those of patterns and filters.
	Size() int
	// Leave is called when the subscription has ended.
	Leave()
}

// Limits bound what one client can cost. Zero fields take the default.
type Limits struct {
	Subscriptions int // default 1,000
	Tried         int // of them with a filter that has no set of values; default 16
	IndexBytes    int // of patterns and filters; default 1 MiB
	Buffered      int // bytes in its connection above which messages wait; default 32 KiB
	Queued        int // bytes of messages that wait; default 256 KiB. One of a client may be longer
	Series        int // subscriptions to series; default 16
	PageRate      int // bytes of pages of series in a second; default 8 MiB
	// Large is how many bytes all clients together have in their connections of messages longer than Buffered; default
	// 64 MiB. One of them always goes.
	Large int
}

// maxLimit bounds what of one client is counted in bytes.
const maxLimit = 1 << 30

// Reasons passed to Outlet.Close, and errors of Subscribe.
var (
	ErrTooSlow = errors.New("the client reads too slowly")
	ErrLimit   = errors.New("over a limit of the client")
	ErrLineage = errors.New("the token is of another history")
	ErrAhead   = errors.New("the token is ahead of this server")
)

// Hub is all clients of one stream.
type Hub struct {
	cfg     Config
	ring    ring
	user    ring // of messages of clients
	index   *topics.Index
	subs    []*Sub // by number in the index; nil: free
	free    []uint32
	last    []Position // of each partition: everything up to it was published
	evicted []Position // of each partition: the last message that the ring does not have any more
	waiting []*Sub     // with a queue
	busy    []*Client  // with subscriptions that are ready
	wheel   wheel
	// backlogs are of no subscription.
	backlogs []*backlog
	now      int64
	users    [MaxEncodings]int // clients of each encoding
	random   rand.PCG
	hits     []uint32
	fields   []topics.Value
	scratch  []byte
	groups   map[string]*group // of latest messages
	series   map[string]*series
	claims   map[uint32]Claim // of subscriptions by number in the index, with Config.Join
	clients  int
	left     int // messages of the ring that subscriptions may look at before the next tick
	turn     int // who of the busy begins
	// Subscriptions to latest messages and series, and those of them for which something waits.
	followed, owing int
	// Messages longer than Limits.Buffered in connections, what they take, and whether one waits for others.
	larges     []large
	largeBytes int
	largeWaits bool
	stats      Stats
}

// Stats count since the start; Clients, Subscriptions and Waiting are gauges.
type Stats struct {
	Clients       int
	Subscriptions int
	Waiting       int    // subscriptions for which messages wait
	Published     uint64 // messages
	Unwanted      uint64 // of them for no subscription
	Delivered     uint64 // to a subscription each
	Conflated     uint64 // replaced by a later message of their topic
	Dropped       uint64 // told in a gap
	Gaps          uint64
	Disconnected  uint64 // clients, by ErrTooSlow
}

// New returns a hub without clients.
func New(cfg Config) (*Hub, error) {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&cfg.RingBytes, DefaultRingBytes)
	def(&cfg.RingSlots, max(16, cfg.RingBytes/256))
	def(&cfg.Limits.Subscriptions, 1000)
	def(&cfg.Limits.Tried, 16)
	def(&cfg.Limits.IndexBytes, 1<<20)
	def(&cfg.Limits.Buffered, 32<<10)
	def(&cfg.Limits.Queued, 256<<10)
	def(&cfg.Limits.Series, 16)
	def(&cfg.Limits.PageRate, 8<<20)
	def(&cfg.Limits.Large, 64<<20)
	def(&cfg.UserBytes, 16<<20)
	switch {
	case cfg.Partitions < 1 || cfg.Partitions > MaxPartitions:
		return nil, fmt.Errorf("fanout: Partitions is %d, allowed: 1 to %d", cfg.Partitions, MaxPartitions)
	case len(cfg.Encodings) < 1 || len(cfg.Encodings) > MaxEncodings:
		return nil, fmt.Errorf("fanout: %d Encodings, allowed: 1 to %d", len(cfg.Encodings), MaxEncodings)
	case cfg.Limits.Queued > maxLimit || cfg.Limits.IndexBytes > maxLimit:
		return nil, fmt.Errorf("fanout: Limits.Queued is %d and IndexBytes %d, allowed: at most %d", cfg.Limits.Queued, cfg.Limits.IndexBytes, maxLimit)
	case len(cfg.User) > 0 && (cfg.UserBytes < 1024 || cfg.UserBytes > maxLimit):
		return nil, fmt.Errorf("fanout: UserBytes is %d, allowed: 1024 to %d", cfg.UserBytes, maxLimit)
	case cfg.RingBytes < 1024 || cfg.RingSlots < 16:
		return nil, fmt.Errorf("fanout: RingBytes is %d and RingSlots %d, allowed: at least 1024 and 16", cfg.RingBytes, cfg.RingSlots)
	}
	h := &Hub{cfg: cfg, ring: newRing(cfg.RingBytes, cfg.RingSlots, cfg.Alloc), index: topics.NewIndex(cfg.MaxTried),
		last: make([]Position, cfg.Partitions), evicted: make([]Position, cfg.Partitions), random: *rand.NewPCG(cfg.Seed, 22), claims: map[uint32]Claim{}}
	return h, nil
}

// Stats returns counters.
func (h *Hub) Stats() Stats {
	s := h.stats
	s.Clients, s.Subscriptions, s.Waiting = h.clients, h.index.Len()+h.followed, len(h.waiting)+h.owing
	return s
}

// Begin says up to where messages of a partition were published before the hub was made. It is for the start.
func (h *Hub) Begin(partition int, at Position) { h.last[partition], h.evicted[partition] = at, at }

// Examined says that up to the position there is no message that was not published, so that tokens get ahead where a
// partition has nothing to publish.
func (h *Hub) Examined(partition int, at Position) {
	if h.last[partition].Before(at) {
		h.last[partition] = at
	}
}

// Last returns up to where a partition was published.
func (h *Hub) Last(partition int) Position { return h.last[partition] }

// Publish sends a message to all subscriptions it is for. Positions of a partition rise. An error means that the message
// is not valid, and nothing was sent.
func (h *Hub) Publish(m *Message) error {
	switch {
	case m.Partition < 0 || m.Partition >= len(h.last):
		return fmt.Errorf("fanout: partition is %d, allowed: 0 to %d", m.Partition, len(h.last)-1)
	case !h.last[m.Partition].Before(m.At):
		return fmt.Errorf("fanout: position of partition %d is %s, allowed: behind %s", m.Partition, m.At, h.last[m.Partition])
	}
	h.hits = h.index.Match(m.Topic, m.Fields, h.hits[:0])
	n, err := h.keep(m)
	if err != nil {
		return err
	}
	h.stats.Published++
	if len(h.hits) == 0 {
		h.stats.Unwanted++
		return nil
	}
	h.shuffle(h.hits)
	h.touchHits(h.hits)
	for _, id := range h.hits {
		if s := h.subs[id]; s != nil && s.catch == nil && (len(s.places) == 0 || h.gets(s, m.Partition)) {
			h.offer(s, n)
		}
	}
	return nil
}

// keep puts a message into the ring, framed if a subscription gets it.
func (h *Hub) keep(m *Message) (uint64, error) {
	e := entry{partition: uint32(m.Partition), at: m.At, before: h.last[m.Partition], partial: m.Partial}
	b := h.build(&e, m)
	if most := len(h.ring.arena) / 16; len(b) > most {
		return 0, fmt.Errorf("fanout: message of topic %.80q takes %d bytes, allowed: at most %d, a sixteenth of the ring", m.Topic, len(b), most)
	}
	h.last[m.Partition] = m.At
	return h.put(&h.ring, e, b), nil
}

// build makes the bytes of an entry, valid until the next call.
func (h *Hub) build(e *entry, m *Message) []byte {
	e.topic, e.payload = uint32(len(m.Topic)), uint32(len(m.Payload))
	b := append(h.scratch[:0], m.Topic...)
	b = appendFields(b, m.Fields)
	e.fields = uint32(len(b) - len(m.Topic))
	b = append(b, m.Payload...)
	if len(h.hits) > 0 {
		for i, enc := range h.cfg.Encodings {
			if h.users[i] == 0 {
				continue
			}
			from := len(b)
			var slot int
			b, slot = enc.Append(b, m)
			e.frames[i] = frame{uint32(from), uint32(len(b) - from), uint32(slot - from)}
		}
	}
	h.scratch = b
	return b
}

// put puts an entry with its bytes into a ring, and returns its number.
func (h *Hub) put(r *ring, e entry, b []byte) uint64 {
	start, blocked := r.place(len(b))
	for ; blocked; start, blocked = r.place(len(b)) {
		h.evict(r)
	}
	e.start, e.end = start, start+len(b)
	copy(r.arena[start:], b)
	return r.push(e)
}

// evict frees the oldest sixteenth of a ring. Queues that refer to it become gaps first, so that a queue only ever refers
// to what is there.
func (h *Hub) evict(r *ring) {
	to := r.tail + max(1, (r.head-r.tail)/16)
	if r.waits < to {
		h.giveUpBefore(r, to)
	}
	for ; r.tail < to; r.tail++ {
		if e := r.entry(r.tail); e.partition != noPartition {
			h.evicted[e.partition] = e.at
		}
	}
}

// giveUpBefore makes gaps of the queues that refer to a message of the ring before the number, and notes from where on others
// do.
func (h *Hub) giveUpBefore(r *ring, to uint64) {
	r.waits = r.head
	for i := len(h.waiting) - 1; i >= 0; i-- {
		if i >= len(h.waiting) {
			continue // a client that was closed takes its others with it
		}
		if oldest := h.waiting[i].oldest(r.mark); oldest < to {
			h.giveUp(h.waiting[i], "what waits for it left the ring")
		} else {
			r.waits = min(r.waits, oldest)
		}
	}
}

// shuffle draws an order.
func (h *Hub) shuffle(ids []uint32) {
	for i := len(ids) - 1; i > 0; i-- {
		j := int(uint64(uint32(h.random.Uint64())) * uint64(i+1) >> 32)
		ids[i], ids[j] = ids[j], ids[i]
	}
}

// Idle reports whether nothing waits for the time: then Tick may come late. Publish ends it.
func (h *Hub) Idle() bool { return len(h.busy) == 0 && h.wheel.count == 0 }

// Tick tells the time: it flushes subscriptions that are due, and goes on with those that resume. now never goes back.
func (h *Hub) Tick(now time.Duration) {
	h.now = int64(now)
	if len(h.larges) > 0 {
		h.settleLarges()
	}
	h.wheel.advance(h.now, h.due)
	busy := h.busy
	h.busy, h.left = nil, shares*share
	h.turn++
	for i := range busy {
		h.touchBusy(busy, i+h.turn)
		c := busy[(i+h.turn)%len(busy)]
		c.busy = false
		h.drain(c)
	}
	if h.busy == nil {
		clear(busy)
		h.busy = busy[:0]
	}
}
