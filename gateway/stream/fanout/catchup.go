package fanout

import (
	"fmt"

	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// catching is a subscription that reads the ring from its position.
type catching struct {
	next  uint64     // in the ring; what is before was looked at, or has left it
	at    []Position // of each partition: it has everything up to it
	hold  bool
	begun bool // what the ring does not have was told
	seek  int  // messages to go back by, before next is the first one: see Subscription.Last
	live  bool // to be told Outlet.Live
	// With a claim: from where on all that it is for was published, of each partition but those that are away.
	since []Position
	back  int // it begins with so many last messages, which are to be looked for elsewhere: Rewind
}

const (
	// share is how many messages of the ring one subscription looks at in a tick.
	share = 1024
	// shares of all subscriptions together: those that resume may not keep new messages from the others.
	shares = 8
)

// resume checks a token.
func (h *Hub) resume(t *Token) (*catching, error) {
	if t.Lineage != h.cfg.Lineage {
		return nil, fmt.Errorf("%w: lineage of the token is %d, allowed: %d; subscribe without a token", ErrLineage, t.Lineage, h.cfg.Lineage)
	}
	k := &catching{at: append([]Position(nil), h.last...)}
	for _, p := range t.At {
		if p.Partition < 0 || p.Partition >= len(h.last) {
			return nil, fmt.Errorf("%w: partition of the token is %d, allowed: 0 to %d", ErrLineage, p.Partition, len(h.last)-1)
		}
		if h.last[p.Partition].Seq < p.At.Seq {
			return nil, fmt.Errorf("%w: position of partition %d is %s, allowed: up to %s; try again", ErrAhead, p.Partition, p.At, h.last[p.Partition])
		}
		k.at[p.Partition] = p.At
	}
	return k, nil
}

// lastOf begins the way back to the last n messages of a subscription. What is before them it did not ask for.
func (h *Hub) lastOf(n int) *catching {
	return &catching{at: append([]Position(nil), h.last...), next: h.ring.head, begun: true, seek: n, live: true}
}

// seekBack looks for the first of the last messages, a share of the ring at a time.
func (h *Hub) seekBack(s *Sub) {
	k := s.catch
	for range share {
		if h.left == 0 {
			return
		}
		h.left--
		if k.seek == 0 || k.next <= h.ring.tail {
			k.seek = 0
			return
		}
		k.next--
		e := h.ring.entry(k.next)
		m := h.ring.message(e, h.fields)
		h.fields = m.Fields
		if s.isFor(&m) {
			k.seek--
		}
		k.at[e.partition] = e.before
	}
}

// Held reports whether a subscription waits for Release.
func (s *Sub) Held() bool { return s.catch != nil && s.catch.hold }

// Back returns how many last messages a subscription on hold begins with, which are to be looked for elsewhere, of those
// up to At.
func (s *Sub) Back() int {
	if !s.Held() {
		return 0
	}
	return s.catch.back
}

// At returns up to where a subscription has the messages of a partition, but for those that wait for its client.
func (s *Sub) At(partition int) Position {
	if s.catch != nil {
		return s.catch.at[partition]
	}
	for _, a := range s.places {
		if a.Partition == partition {
			return a.At
		}
	}
	return s.client.hub.last[partition]
}

// Rewind has a subscription on hold begin behind a position of each partition.
func (s *Sub) Rewind(at []Position) {
	if s.Held() {
		s.catch.back = 0
		copy(s.catch.at, at)
	}
}

// For returns what the subscription is for. It is for any goroutine.
func (s *Sub) For() (topics.Pattern, topics.Filter) {
	if s.filter == nil {
		return *s.pattern, topics.Filter{}
	}
	return *s.pattern, *s.filter
}

// Missing returns what a subscription that resumes lacks and the ring does not have.
func (s *Sub) Missing() []Range {
	if s.catch == nil {
		return nil
	}
	var g Gap
	for p, gone := range s.client.hub.evicted {
		if s.Away(p) {
			continue
		}
		if since := s.catch.since; since != nil && gone.Before(since[p]) {
			gone = since[p]
		}
		if s.catch.at[p].Before(gone) {
			g.add(Range{Partition: p, After: s.catch.at[p], Through: gone})
		}
	}
	return g.Ranges
}

// Feed gives a subscription on hold a message of Missing, which was read elsewhere; all messages of the partition, in order,
// the hub selects. It returns false when the client has no room now: the same message again, later.
func (s *Sub) Feed(m *Message) bool {
	if s.catch == nil || !s.catch.hold || !s.catch.at[m.Partition].Before(m.At) {
		return true
	}
	if s.isFor(m) {
		if !s.client.room(len(m.Topic) + len(m.Payload) + 64) {
			return false
		}
		s.client.hub.stats.Delivered++
		s.client.hub.sendMessage(s, m)
	}
	s.catch.at[m.Partition] = m.At
	return true
}

// Fed says that Feed got everything of a partition up to the position.
func (s *Sub) Fed(partition int, at Position) {
	if s.catch != nil && s.catch.hold && s.catch.at[partition].Before(at) {
		s.catch.at[partition] = at
	}
}

// Lost tells a subscription on hold that nothing up to the position can be had any more. It returns false when the client
// has no room now: the same again, later.
func (s *Sub) Lost(partition int, through Position) bool {
	if s.catch == nil || !s.catch.hold || !s.catch.at[partition].Before(through) {
		return true
	}
	if !s.client.room(gapSize) {
		return false
	}
	s.client.hub.tell(s, &Gap{Ranges: []Range{{Partition: partition, After: s.catch.at[partition], Through: through}}})
	s.catch.at[partition] = through
	return true
}

// Gone reports whether the subscription has ended.
func (s *Sub) Gone() bool { return s.gone }

// Release ends the hold. What is still missing is told as a gap; that of partitions that are away once it is known.
func (s *Sub) Release() {
	if s.catch != nil && s.catch.hold {
		s.catch.hold = false
		s.client.hub.makeReady(s)
	}
}

// catchUp reads the ring on. done: the subscription is up to date.
func (h *Hub) catchUp(s *Sub) (done, full bool) {
	c, k := s.client, s.catch
	if k.hold {
		return true, false
	}
	if k.seek > 0 {
		h.seekBack(s)
		return false, false
	}
	if !k.begun || k.next < h.ring.tail {
		if missing := s.Missing(); len(missing) > 0 {
			if s.policy == Disconnect && k.begun {
				c.close(fmt.Errorf("%w: what it resumes from left the ring", ErrTooSlow))
				return true, false
			}
			if !c.room(gapSize) {
				return false, true
			}
			h.tell(s, &Gap{Ranges: missing})
			for _, r := range missing {
				k.at[r.Partition] = r.Through
			}
		}
		k.next, k.begun = max(k.next, h.ring.tail), true
	}
	for range share {
		if k.next == h.ring.head {
			if k.live {
				if !c.room(gapSize) {
					return false, true
				}
				c.out.Live(s.number)
			}
			for i := range s.places {
				s.places[i].At = k.at[s.places[i].Partition]
			}
			s.catch = nil
			h.settle(s)
			return int(s.first) == len(s.queue) && s.gap == nil && !s.lost, false // messages of clients were not kept back
		}
		if h.left == 0 {
			return false, false
		}
		h.left--
		e := h.ring.entry(k.next)
		p := int(e.partition)
		if s.Away(p) {
			if since, known := s.arrives(p); known { // and Comes was not called: what it lacks is a gap
				k.since[p], k.begun = since, false
				return false, false
			}
			k.next++
			continue
		}
		if k.at[p].Before(e.at) {
			m := h.ring.message(e, h.fields)
			h.fields = m.Fields
			if s.isFor(&m) {
				if !c.room(h.size(c, e)) {
					return false, true
				}
				h.send(s, e)
			}
			k.at[p] = e.at
		}
		k.next++
	}
	return false, false
}
