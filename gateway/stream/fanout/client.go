package fanout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// Policy is what happens to a subscription whose client is too slow.
type Policy uint8

const (
	// Drop leaves messages out and tells the gap.
	Drop Policy = iota
	// Conflate keeps the latest message of each topic while they wait. If that does not fit either, it drops.
	Conflate
	// Disconnect closes the client's connection.
	Disconnect
)

// MaxFlush bounds Subscription.Flush.
const MaxFlush = time.Minute

// MaxLast bounds Subscription.Last.
const MaxLast = 100_000

// Subscription is what a client asks for.
type Subscription struct {
	Number  uint32 // of the client's choice, not in use by another of its subscriptions
	Pattern topics.Pattern
	Filter  topics.Filter
	Policy  Policy
	Flush   time.Duration // messages are sent together that often; 0: at once
	Resume  *Token        // nil: new messages only, behind those of Last
	// Last begins with the last messages of the ring that match, so many at most, all partitions together; then
	// Outlet.Live is called. Not with Resume.
	Last int
	// Hold keeps the subscription from starting: the caller has missing messages read elsewhere, for Feed, and calls
	// Release.
	Hold bool
	// Here: of messages of clients only those that were published at this hub.
	Here bool
}

// Client is one connection.
type Client struct {
	hub      *Hub
	out      Outlet
	encoding int
	phase    int64  // of its flushes: those of one client are together, those of clients spread
	subs     []*Sub // by rising number
	ready    []*Sub // to drain
	queued   int    // bytes that wait
	indexed  int    // bytes of patterns and filters
	tried    int
	busy     bool // in Hub.busy
	gone     bool
}

// Sub is a subscription of a client.
type Sub struct {
	client *Client
	id     uint32 // in the index
	number uint32
	size   int32
	at     int32 // in Hub.waiting; -1: not there
	first  int32
	policy Policy
	ready  bool // in Client.ready
	timed  bool // in the wheel
	gone   bool
	tried  bool
	here   bool
	lost   bool // to be told that messages of clients are missing
	flush  int64
	due    int64
	queue  []uint64       // queue[first:] are numbers of the ring
	latest map[string]int // Conflate: by topic, the place in queue
	gap    *Gap           // behind the queue
	catch  *catching      // nil: it is up to date
	group  *group         // of latest messages; nil: it is to others
	tail   string         // last token of its pattern,
	owed   uint8          // which of them it is to be sent,
	has    uint8          // and which it was sent
	// Of one to latest messages what it resumed from; of others the partitions that are away, and where it is there.
	places  []PartitionPosition
	pattern topics.Pattern
	filter  topics.Filter
}

// Open adds a client that gets the encoding of the index.
func (h *Hub) Open(out Outlet, encoding int) *Client {
	h.clients++
	h.users[encoding]++
	return &Client{hub: h, out: out, encoding: encoding, phase: int64(h.random.Uint64()%uint64(MaxFlush/time.Millisecond)) * int64(time.Millisecond)}
}

// Close forgets a client. It does not call Outlet.Close.
func (c *Client) Close() {
	if c.gone {
		return
	}
	c.gone = true
	for _, s := range c.subs {
		c.hub.remove(s)
	}
	c.hub.users[c.encoding]--
	c.hub.clients--
	c.subs, c.ready = nil, nil
}

// close ends a client for a reason.
func (c *Client) close(reason error) {
	if !c.gone {
		c.Close()
		c.hub.stats.Disconnected++
		c.out.Close(reason)
	}
}

// Subscribe adds a subscription. With Resume, what is missing is what neither the ring nor Feed has: it is told as a gap.
func (c *Client) Subscribe(w Subscription) (*Sub, error) {
	h, l := c.hub, &c.hub.cfg.Limits
	s := &Sub{client: c, number: w.Number, policy: w.Policy, flush: int64(w.Flush), at: -1, pattern: w.Pattern, filter: w.Filter,
		size: int32(256 + len(w.Pattern.String()) + w.Filter.Size()), tried: w.Filter.Tried(), here: w.Here}
	latest := h.isLatest(w.Pattern)
	if latest && w.Resume != nil {
		s.size += int32(24 * len(w.Resume.At))
	}
	switch {
	case c.gone:
		return nil, fmt.Errorf("subscription %d: the client is closed", w.Number)
	case c.Subscription(w.Number) != nil:
		return nil, fmt.Errorf("subscription number is %d, which is in use, allowed: another number", w.Number)
	case len(c.subs) >= l.Subscriptions:
		return nil, fmt.Errorf("%w: subscriptions are %d, allowed: at most %d", ErrLimit, len(c.subs)+1, l.Subscriptions)
	case s.tried && c.tried >= l.Tried:
		return nil, fmt.Errorf("%w: subscriptions whose filter has neither equal nor in are %d, allowed: at most %d", ErrLimit, c.tried+1, l.Tried)
	case c.indexed+int(s.size) > l.IndexBytes:
		return nil, fmt.Errorf("%w: patterns and filters take %d bytes, allowed: at most %d", ErrLimit, c.indexed+int(s.size), l.IndexBytes)
	case w.Flush < 0 || w.Flush > MaxFlush || w.Flush%time.Millisecond != 0:
		return nil, fmt.Errorf("flush interval of subscription %d is %s, allowed: 0 to %s in whole milliseconds", w.Number, w.Flush, MaxFlush)
	case w.Last < 0 || w.Last > MaxLast || w.Last > 0 && w.Resume != nil:
		return nil, fmt.Errorf("subscription %d begins with its last %d messages, allowed: 0 to %d, and 0 with a token", w.Number, w.Last, MaxLast)
	case w.Policy > Disconnect:
		return nil, fmt.Errorf("policy of subscription %d is %d, allowed: Drop, Conflate, Disconnect", w.Number, w.Policy)
	}
	user := h.isUser(w.Pattern)
	if user && w.Last > 0 {
		return nil, fmt.Errorf("subscription %d to %.80q begins with its last %d messages, allowed: 0: those of clients are not kept", w.Number, w.Pattern, w.Last)
	}
	if user && w.Resume != nil {
		s.lost, w.Resume = true, nil
	}
	if latest {
		if err := h.joinLatest(s, &w); err != nil {
			return nil, err
		}
		c.add(s)
		return s, nil
	}
	if w.Resume != nil {
		var err error
		if s.catch, err = h.resume(w.Resume); err != nil {
			return nil, err
		}
		s.catch.hold = w.Hold
	} else if w.Last > 0 {
		s.catch = h.lastOf(w.Last)
	}
	if _, literal := w.Pattern.First(); !literal && w.Filter.Terms() > 0 {
		return nil, fmt.Errorf("pattern of subscription %d is %.80q, allowed: with a filter, one whose first token is neither * nor >", w.Number, w.Pattern)
	}
	if s.id = uint32(len(h.subs)); len(h.free) > 0 {
		s.id = h.free[len(h.free)-1]
	}
	if err := h.join(s, &w); err != nil {
		return nil, err
	}
	if len(h.free) > 0 {
		h.free, h.subs[s.id] = h.free[:len(h.free)-1], s
	} else {
		h.subs = append(h.subs, s)
	}
	c.add(s)
	if h.cfg.Join != nil && !user {
		h.claim(s)
	}
	if s.lost {
		h.schedule(s)
	}
	if s.catch != nil && !s.catch.hold {
		h.makeReady(s)
	}
	return s, nil
}

// join puts a subscription into the index, with its claim.
func (h *Hub) join(s *Sub, w *Subscription) error {
	if h.cfg.Join == nil {
		return h.index.Add(s.id, w.Pattern, w.Filter)
	}
	claim := h.cfg.Join(w.Pattern, w.Filter)
	s.size += int32(claim.Size())
	err := error(nil)
	if n, most := s.client.indexed+int(s.size), h.cfg.Limits.IndexBytes; n > most {
		err = fmt.Errorf("%w: patterns, filters and what they select by take %d bytes, allowed: at most %d", ErrLimit, n, most)
	} else {
		err = h.index.Add(s.id, w.Pattern, w.Filter)
	}
	if err != nil {
		claim.Leave()
		return err
	}
	h.claims[s.id] = claim
	return nil
}

// add lists a subscription.
func (c *Client) add(s *Sub) {
	at, _ := c.find(s.number)
	c.subs = slices.Insert(c.subs, at, s)
	c.indexed += int(s.size)
	if s.tried {
		c.tried++
	}
}

// Unsubscribe ends a subscription and reports whether there was one. What waited for it is not sent.
func (c *Client) Unsubscribe(number uint32) bool {
	at, found := c.find(number)
	if !found {
		return false
	}
	s := c.subs[at]
	c.subs = slices.Delete(c.subs, at, at+1)
	c.hub.remove(s)
	c.indexed -= int(s.size)
	if s.tried {
		c.tried--
	}
	return true
}

// Subscription returns one by its number, nil if there is none.
func (c *Client) Subscription(number uint32) *Sub {
	if at, found := c.find(number); found {
		return c.subs[at]
	}
	return nil
}

func (c *Client) find(number uint32) (int, bool) {
	return slices.BinarySearchFunc(c.subs, number, func(s *Sub, n uint32) int { return cmp.Compare(s.number, n) })
}

// Queued returns how many bytes of messages wait for the client.
func (c *Client) Queued() int { return c.queued }

// Writable says that the client's connection has room again.
func (c *Client) Writable() {
	if !c.gone && len(c.ready) > 0 {
		c.hub.drain(c)
	}
}

// remove takes a subscription out of everything but its client.
func (h *Hub) remove(s *Sub) {
	if s.group != nil {
		h.leaveLatest(s)
		s.gone = true
		return
	}
	h.clearQueue(s)
	h.index.Remove(s.id)
	h.subs[s.id] = nil
	h.free = append(h.free, s.id)
	if h.cfg.Join != nil {
		h.claims[s.id].Leave()
		delete(h.claims, s.id)
	}
	s.gone, s.gap, s.catch, s.places = true, nil, nil, nil // the wheel and Client.ready pass over it
}

// Token returns where all partitions are.
func (h *Hub) Token() Token {
	t := Token{Lineage: h.cfg.Lineage, At: make([]PartitionPosition, len(h.last))}
	for p := range h.last {
		t.At[p] = PartitionPosition{p, h.last[p]}
	}
	return t
}

// Token returns what the subscription has been sent, for Subscription.Resume. After Conflate, resuming from it may send the
// latest message of a topic again.
func (s *Sub) Token() Token {
	h := s.client.hub
	at := append([]Position(nil), h.last...)
	down := func(p int, to Position) {
		if to.Before(at[p]) {
			at[p] = to
		}
	}
	if s.catch != nil {
		copy(at, s.catch.at)
	} else if s.group == nil {
		for _, a := range s.places {
			at[a.Partition] = a.At
		}
	}
	for _, n := range s.queue[s.first:] {
		if e := h.entry(n); e.partition != noPartition {
			down(int(e.partition), e.before)
		}
	}
	if s.gap != nil {
		for _, r := range s.gap.Ranges {
			down(r.Partition, r.After)
		}
	}
	t := Token{Lineage: h.cfg.Lineage, At: make([]PartitionPosition, len(at))}
	for p := range at {
		t.At[p] = PartitionPosition{p, at[p]}
	}
	return t
}
