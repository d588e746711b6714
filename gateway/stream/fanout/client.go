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

// Client is one connection. There are thousands, most of which have nothing to do: Client and Sub are as small as they can
// be, and what a subscription has while messages wait for it, or for a special kind of topics, is apart.
type Client struct {
	hub      *Hub
	out      Outlet
	subs     []*Sub // by rising number
	ready    []*Sub // to drain
	paged    int64  // the time until which its pages are enough, see Limits.PageRate
	queued   int32  // bytes that wait
	indexed  int32  // bytes of patterns and filters
	phase    uint32 // of its flushes, in ms: those of one client are together, those of clients spread
	encoding uint8
	busy     bool // in Hub.busy
	gone     bool
}

// Open adds a client that gets the encoding of the index.
func (h *Hub) Open(out Outlet, encoding int) *Client {
	h.clients++
	h.users[encoding]++
	return &Client{hub: h, out: out, encoding: uint8(encoding), phase: uint32(h.random.Uint64() % uint64(MaxFlush/time.Millisecond))}
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
	s := &Sub{client: c, number: w.Number, policy: w.Policy, flush: uint32(w.Flush / time.Millisecond), at: -1, backlog: noBacklog, special: nothing,
		size: int32(256 + len(w.Pattern.String()) + w.Filter.Size()), here: w.Here}
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
	case w.Filter.Tried() && c.tried() >= l.Tried:
		return nil, fmt.Errorf("%w: subscriptions whose filter has neither equal nor in are %d, allowed: at most %d", ErrLimit, c.tried()+1, l.Tried)
	case int(c.indexed+s.size) > l.IndexBytes:
		return nil, fmt.Errorf("%w: patterns and filters take %d bytes, allowed: at most %d", ErrLimit, c.indexed+s.size, l.IndexBytes)
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
	if w.Filter.Terms() > 0 {
		f := w.Filter
		s.filter = &f
	}
	if latest {
		p, err := w.Pattern, error(nil)
		if s.pattern = &p; h.isSeries(p.String()) {
			err = h.joinSeries(s, &w)
		} else {
			err = h.joinLatest(s, &w)
		}
		if err != nil {
			return nil, err
		}
		c.add(s)
		return s, nil
	}
	if w.Resume != nil {
		k, err := h.resume(w.Resume)
		if err != nil {
			return nil, err
		}
		k.hold = w.Hold
		s.ownSpecial().catch = k
	} else if w.Last > 0 {
		s.ownSpecial().catch = h.lastOf(w.Last)
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
	s.pattern = h.index.Shared(s.id)
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
	if n, most := int(s.client.indexed+s.size), h.cfg.Limits.IndexBytes; n > most {
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
	c.indexed += s.size
}

// tried returns how many subscriptions have a filter without a set of values.
func (c *Client) tried() (n int) {
	for _, s := range c.subs {
		n += b2i(s.filter != nil && s.filter.Tried())
	}
	return n
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
	c.indexed -= s.size
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
func (c *Client) Queued() int { return int(c.queued) }

// Writable says that the client's connection has room again.
func (c *Client) Writable() {
	if !c.gone && len(c.ready) > 0 {
		c.hub.drain(c)
	}
}

// remove takes a subscription out of everything but its client.
func (h *Hub) remove(s *Sub) {
	s.gone = true
	if s.series != nil {
		h.leaveSeries(s)
		return
	}
	if s.group != nil {
		h.leaveLatest(s)
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
	s.backlog, s.special = noBacklog, nothing // the wheel and Client.ready pass over it
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
