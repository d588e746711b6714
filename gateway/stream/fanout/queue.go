package fanout

import (
	"fmt"
	"math"
)

// turn is how many messages of one subscription are sent before another one of the client gets its turn.
const turn = 16

// keepQueue is how long a queue may be to be kept when it is empty.
const keepQueue = 32

// room reports whether the client's connection takes so many bytes more. An empty one takes any message.
func (c *Client) room(size int) bool {
	b := c.out.Buffered()
	return b+size <= c.hub.cfg.Limits.Buffered || b == 0 && c.hub.roomForLarge(size)
}

// offer sends a message of the ring to a subscription, now or later.
func (h *Hub) offer(s *Sub, n uint64) {
	c, e := s.client, h.entry(n)
	size := h.size(c, e)
	if s.gap != nil {
		h.miss(s, e)
		return
	}
	if s.flush == 0 && int(s.first) == len(s.queue) && c.room(size) {
		h.send(s, e)
		return
	}
	if e.partial {
		clear(s.latest)
	} else if s.policy == Conflate {
		if i, waits := s.latest[string(h.ringOf(e).topic(e))]; waits {
			longer := size - h.size(c, h.entry(s.queue[i]))
			if longer > 0 && c.Queued()+longer > h.cfg.Limits.Queued {
				h.miss(s, e) // behind the one before, which is sent
				return
			}
			c.queued += int32(longer)
			s.queue[i] = n
			h.stats.Conflated++
			return
		}
	}
	if c.Queued()+size > h.cfg.Limits.Queued && (c.queued > 0 || e.partition != noPartition) {
		if s.policy == Disconnect {
			c.close(fmt.Errorf("%w: %d bytes wait for it, allowed: at most %d", ErrTooSlow, c.Queued()+size, h.cfg.Limits.Queued))
			return
		}
		h.miss(s, e)
		h.schedule(s)
		return
	}
	h.enqueue(s, n, size)
	h.schedule(s)
}

// size is what a message counts of the client's limits.
func (h *Hub) size(c *Client, e *entry) int {
	if f := e.frames[c.encoding].size; f > 0 {
		return int(f)
	}
	return e.end - e.start
}

func (h *Hub) enqueue(s *Sub, n uint64, size int) {
	b := s.ownBacklog()
	if b.first > keepQueue && 2*int(b.first) > len(b.queue) {
		b.queue = b.queue[:copy(b.queue, b.queue[b.first:])]
		for topic := range b.latest {
			b.latest[topic] -= int(b.first)
		}
		b.first = 0
	}
	if s.policy == Conflate {
		if b.latest == nil {
			b.latest = map[string]int{}
		}
		e := h.entry(n)
		b.latest[string(h.ringOf(e).topic(e))] = len(b.queue)
	}
	b.queue = append(b.queue, n)
	s.client.queued += int32(size)
	if s.at < 0 {
		s.at = int32(len(h.waiting))
		h.waiting = append(h.waiting, s)
	}
}

// schedule sees to it that a subscription with something to send is drained.
func (h *Hub) schedule(s *Sub) {
	switch {
	case s.ready || s.timed:
	case s.flush == 0:
		h.makeReady(s)
	default:
		flush, phase := int64(s.flush)*ms, int64(s.client.phase)*ms
		h.wheel.add(s, h.now-(h.now+phase)%flush+flush)
	}
}

// due is called when the interval of a subscription ends.
func (h *Hub) due(s *Sub) {
	s.timed = false
	if !s.gone {
		h.makeReady(s)
	}
}

func (h *Hub) makeReady(s *Sub) {
	c := s.client
	if !s.ready {
		s.ready = true
		c.ready = append(c.ready, s)
	}
	h.makeBusy(c)
}

func (h *Hub) makeBusy(c *Client) {
	if !c.busy {
		c.busy = true
		h.busy = append(h.busy, c)
	}
}

// drain sends what waits for a client while there is room, its subscriptions in turn.
func (h *Hub) drain(c *Client) {
	for len(c.ready) > 0 {
		s := c.ready[0]
		done, full := true, false
		if !s.gone {
			done, full = h.drainSub(s)
		}
		if c.gone {
			return
		}
		c.ready = c.ready[:copy(c.ready, c.ready[1:])]
		if !done {
			c.ready = append(c.ready, s)
		} else {
			s.ready = false
		}
		if full || !done && s.catch != nil { // one that resumes has done its share of this tick
			h.makeBusy(c)
			return
		}
	}
	c.ready = nil
}

// drainSub sends some of what waits for a subscription. done: nothing is left. full: there is no room for more.
func (h *Hub) drainSub(s *Sub) (done, full bool) {
	if s.catch != nil {
		return h.catchUp(s)
	}
	if s.group != nil {
		return h.drainKept(s)
	}
	if s.series != nil {
		return h.drainSeries(s)
	}
	c := s.client
	for range turn {
		if int(s.first) == len(s.queue) {
			h.clearQueue(s)
			if s.lost {
				s.lost = false
				s.ownGap().lose(Unknown)
			}
			if s.gap != nil {
				if !c.room(gapSize) {
					return false, true
				}
				h.tell(s, s.gap)
				s.gap = nil
				h.settle(s)
			}
			return true, false
		}
		e := h.entry(s.queue[s.first])
		size := h.size(c, e)
		if !c.room(size) {
			return false, true
		}
		if s.latest != nil {
			delete(s.latest, string(h.ringOf(e).topic(e)))
		}
		s.first++
		c.queued -= int32(size)
		h.send(s, e)
	}
	return false, false
}

// gapSize is about what a gap takes in the connection.
const gapSize = 256

func (h *Hub) tell(s *Sub, g *Gap) {
	h.stats.Gaps++
	s.client.out.Gap(s.number, g)
}

// send hands a message to the connection.
func (h *Hub) send(s *Sub, e *entry) {
	c := s.client
	h.stats.Delivered++
	h.tookLarge(c, h.size(c, e))
	if f := e.frames[c.encoding]; f.size > 0 {
		b := h.ringOf(e).bytes(e)[f.offset : f.offset+f.size]
		c.out.Message(b, int(f.slot), s.number)
		return
	}
	// No client wanted it in this encoding when it was published.
	m := h.ringOf(e).message(e, h.fields)
	h.fields = m.Fields
	h.sendMessage(s, &m)
}

func (h *Hub) sendMessage(s *Sub, m *Message) {
	b, slot := h.cfg.Encodings[s.client.encoding].Append(h.scratch[:0], m)
	h.scratch = b
	s.client.out.Message(b, slot, s.number)
}

// miss adds a message to the gap of a subscription.
func (h *Hub) miss(s *Sub, e *entry) {
	g := s.ownGap()
	h.stats.Dropped++
	if e.partition == noPartition {
		g.lose(1)
		return
	}
	g.add(Range{int(e.partition), e.before, e.at, 1})
}

// giveUp turns the queue of a subscription into a gap, or disconnects.
func (h *Hub) giveUp(s *Sub, why string) {
	if s.policy == Disconnect {
		s.client.close(fmt.Errorf("%w: %s", ErrTooSlow, why))
		return
	}
	b := s.ownBacklog()
	later := b.gap
	b.gap = nil
	for _, n := range b.queue[b.first:] {
		h.miss(s, h.entry(n))
	}
	if later != nil {
		g := s.ownGap()
		for _, r := range later.Ranges {
			g.add(r)
		}
		g.lose(later.User)
	}
	h.clearQueue(s)
	h.schedule(s)
}

// clearQueue empties the queue of a subscription.
func (h *Hub) clearQueue(s *Sub) {
	b := s.backlog
	if b == noBacklog {
		return
	}
	for _, n := range b.queue[b.first:] {
		s.client.queued -= int32(h.size(s.client, h.entry(n)))
	}
	b.first, b.latest = 0, nil
	if b.queue = b.queue[:0]; cap(b.queue) > keepQueue {
		b.queue = nil
	}
	h.settle(s)
	if s.at >= 0 {
		last := len(h.waiting) - 1
		h.waiting[s.at] = h.waiting[last]
		h.waiting[s.at].at = s.at
		h.waiting[last] = nil
		h.waiting, s.at = h.waiting[:last], -1
	}
}

// oldest returns the number of the oldest message that waits, of those of the ring with the mark, without it.
func (s *Sub) oldest(mark uint64) uint64 {
	oldest := uint64(math.MaxUint64)
	for _, n := range s.queue[s.first:] {
		if n&userBit != mark {
			continue
		}
		if oldest = min(oldest, n&^userBit); s.policy != Conflate {
			break
		}
	}
	return oldest
}
