package fanout

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// Messages of clients come from no log: they have no position, and a client that was away does not get them later. They are in a ring
// of their own, which is made by the first of them, so that a client that publishes much takes no order out of the ring of
// orders. Subscriptions, queues, policies and bounds are those of all messages; what is left out is told as Gap.User.

// NoPartition is Message.Partition of a message of a client, which has no Position either.
const NoPartition = -1

const (
	// noPartition is that of its entry.
	noPartition = math.MaxUint32
	// userBit marks its number in queues.
	userBit = 1 << 63
	// mostOfUsers: a message takes at most that part of the ring.
	mostOfUsers = 4
	// largePatience is how long a message longer than Limits.Buffered may be in a connection while others wait for
	// Limits.Large.
	largePatience = 10 * time.Second
)

// Unknown is Gap.User where it is not known how many messages are missing.
const Unknown = -1

// lose adds n messages of clients to the gap, or Unknown.
func (g *Gap) lose(n int) {
	if n < 0 || g.User < 0 {
		g.User = Unknown
		return
	}
	g.User += n
}

// isUser reports whether a subscription is to topics of clients and no others.
func (h *Hub) isUser(p topics.Pattern) bool {
	first, literal := p.First()
	return literal && slices.Contains(h.cfg.User, first)
}

// mayBeUser reports whether topics of clients are among those of a pattern.
func (h *Hub) mayBeUser(p topics.Pattern) bool {
	_, literal := p.First()
	return len(h.cfg.User) > 0 && (!literal || h.isUser(p))
}

// PublishUser sends a message of a client, Message.Partition NoPartition, to all subscriptions it is for. here: it was
// published at this hub, and is for those with Subscription.Here too. Its bytes are copied.
func (h *Hub) PublishUser(m *Message, here bool) error {
	h.hits = h.index.Match(m.Topic, m.Fields, h.hits[:0])
	if len(h.hits) == 0 {
		return h.fitsUser(m)
	}
	n, err := h.keepUser(m)
	if err != nil {
		return err
	}
	h.shuffle(h.hits)
	for _, id := range h.hits {
		if s := h.subs[id]; s != nil && (here || !s.here) {
			h.offer(s, n)
		}
	}
	return nil
}

// Send is PublishUser to one subscription, whatever its pattern.
func (s *Sub) Send(m *Message) error {
	h := s.client.hub
	h.hits = append(h.hits[:0], s.id)
	n, err := h.keepUser(m)
	if err != nil {
		return err
	}
	if !s.gone { // keeping it may have ended a client that was too slow
		h.offer(s, n)
	}
	return nil
}

// LoseUser tells all subscriptions to which messages of clients come from elsewhere that some may be missing, it is not
// known how many.
func (h *Hub) LoseUser() {
	for _, s := range h.subs {
		if s == nil || s.here || !h.mayBeUser(*s.pattern) || s.client.gone {
			continue
		}
		s.lost = true
		h.schedule(s)
	}
}

// fitsUser refuses a message that the ring would not take.
func (h *Hub) fitsUser(m *Message) error {
	size, most := len(m.Topic)+len(m.Payload), h.cfg.UserBytes/mostOfUsers
	if size > most {
		return fmt.Errorf("%w: message of topic %.80q takes %d bytes, allowed: at most %d, a quarter of the ring", ErrLimit, m.Topic, size, most)
	}
	return nil
}

func (h *Hub) keepUser(m *Message) (uint64, error) {
	if len(h.cfg.User) == 0 || m.Partition != NoPartition {
		return 0, fmt.Errorf("fanout: partition of a message of a client is %d, allowed: NoPartition, with Config.User", m.Partition)
	}
	if err := h.fitsUser(m); err != nil {
		return 0, err
	}
	e := entry{partition: noPartition}
	b := h.build(&e, m)
	if len(b) > h.cfg.UserBytes/mostOfUsers { // its frames are made for each who gets it
		e.frames = [MaxEncodings]frame{}
		b = b[:int(e.topic+e.fields+e.payload)]
	}
	if h.user.arena == nil {
		h.user = newRing(h.cfg.UserBytes, max(16, h.cfg.UserBytes/256), h.cfg.Alloc)
		h.user.mark = userBit
	}
	return h.put(&h.user, e, b), nil
}

// entry returns a message by its number in a queue.
func (h *Hub) entry(n uint64) *entry {
	if n&userBit != 0 {
		return h.user.entry(n &^ userBit)
	}
	return h.ring.entry(n)
}

// ringOf returns where an entry is.
func (h *Hub) ringOf(e *entry) *ring {
	if e.partition == noPartition {
		return &h.user
	}
	return &h.ring
}

// large is a message longer than Limits.Buffered in a connection.
type large struct {
	c     *Client
	since int64
}

// roomForLarge reports whether a message longer than Limits.Buffered may be copied into a connection: all of them together
// are bounded.
func (h *Hub) roomForLarge(size int) bool {
	if h.largeBytes > 0 && h.largeBytes+size > h.cfg.Limits.Large {
		h.largeWaits = true
		return false
	}
	return true
}

// tookLarge counts one that was.
func (h *Hub) tookLarge(c *Client, size int) {
	if size > h.cfg.Limits.Buffered {
		h.largeBytes += size
		h.larges = append(h.larges, large{c, h.now})
	}
}

// settleLarges counts anew what connections have not sent yet, and closes those that are long about it while others wait.
func (h *Hub) settleLarges() {
	waits := h.largeWaits
	h.largeBytes, h.largeWaits = 0, false
	kept := h.larges[:0]
	for _, l := range h.larges {
		b := l.c.out.Buffered()
		switch {
		case l.c.gone || b <= h.cfg.Limits.Buffered:
		case waits && h.now-l.since > int64(largePatience):
			l.c.close(fmt.Errorf("%w: a message is in its connection for longer than %s, and others wait", ErrTooSlow, largePatience))
		default:
			h.largeBytes += b
			kept = append(kept, l)
		}
	}
	clear(h.larges[len(kept):])
	h.larges = kept
}
