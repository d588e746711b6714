package fanout

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// Of a topic that begins with Config.Latest only the latest message counts, and it is whole: a new subscription begins
// with it, and a slow one gets it when there is room, without those between. Such messages are not in the ring and have
// no part in tokens: who resumes gets the latest.
//
// A subscription to them names all tokens but the last. Those with the same begin are a group, which has what it keeps
// once for all of them.

// MostOfGroup bounds the topics of a group.
const MostOfGroup = 8

// group is subscriptions to the topics of one begin, and the latest message of each topic.
type group struct {
	name string
	subs []*Sub
	kept []kept
}

// kept is the latest message of a topic.
type kept struct {
	m     Message
	stale bool // another one will come: not for new subscriptions
	frame [MaxEncodings][]byte
	slot  [MaxEncodings]int
}

// isLatest reports whether a subscription is to topics of which the latest message counts.
func (h *Hub) isLatest(p topics.Pattern) bool {
	first, literal := p.First()
	return literal && h.cfg.Latest != "" && first == h.cfg.Latest
}

// joinLatest adds a subscription to its group.
func (h *Hub) joinLatest(s *Sub, w *Subscription) error {
	name, last := cutLast(w.Pattern.String())
	if err := h.checkLatest(name, w); err != nil {
		return err
	}
	if w.Policy == Disconnect {
		return fmt.Errorf("policy of subscription %d to %.80q is disconnect, allowed: none: a slow client gets the latest", w.Number, w.Pattern)
	}
	if w.Resume != nil {
		if _, err := h.resume(w.Resume); err != nil {
			return err
		}
	}
	g := h.groups[name]
	if g == nil {
		if h.cfg.Asked != nil {
			if err := h.cfg.Asked(name); err != nil {
				return err
			}
		}
		g = &group{name: name}
		if h.groups == nil {
			h.groups = map[string]*group{}
		}
		h.groups[name] = g
	}
	s.special, s.policy = &special{group: g, tail: last}, Conflate
	if w.Resume != nil {
		s.places = w.Resume.At
	}
	g.subs = append(g.subs, s)
	h.followed++
	for i := range g.kept {
		if !g.kept[i].stale && s.wantsKept(&g.kept[i].m) {
			h.owe(s, i)
		}
	}
	return nil
}

// checkLatest checks what is the same for latest messages and series.
func (h *Hub) checkLatest(name string, w *Subscription) error {
	switch {
	case name == "" || name == h.cfg.Latest || strings.ContainsAny(name, one+rest):
		return fmt.Errorf("topics of subscription %d are %.80q, allowed: within %s those with every token but the last named, like %s.ACME.*", w.Number, w.Pattern, h.cfg.Latest, h.cfg.Latest)
	case w.Last > 0 || w.Filter.Terms() > 0:
		return fmt.Errorf("subscription %d to %.80q has last or a filter, allowed: neither: it begins with what there is", w.Number, w.Pattern)
	}
	return nil
}

const (
	one  = "*"
	rest = ">"
)

// cutLast cuts a topic before its last token.
func cutLast(topic string) (name, last string) {
	if i := strings.LastIndexByte(topic, '.'); i > 0 {
		return topic[:i], topic[i+1:]
	}
	return "", topic
}

// leaveLatest takes a subscription out of its group; one without subscriptions is forgotten.
func (h *Hub) leaveLatest(s *Sub) {
	g := s.group
	for i := range g.subs {
		if g.subs[i] == s {
			last := len(g.subs) - 1
			g.subs[i], g.subs[last] = g.subs[last], nil
			g.subs = g.subs[:last]
			break
		}
	}
	h.followed--
	if s.owed != 0 {
		h.owing--
	}
	s.special = nothing
	if len(g.subs) == 0 {
		delete(h.groups, g.name)
		if h.cfg.Left != nil {
			h.cfg.Left(g.name)
		}
	}
}

func (s *Sub) wantsKept(m *Message) bool {
	_, last := cutLast(string(m.Topic))
	return s.tail == one || s.tail == rest || s.tail == last
}

// behind reports whether a message that is stale is older than what a subscription resumed from.
func (s *Sub) behind(k *kept) bool {
	for i := range s.places {
		if s.places[i].Partition == k.m.Partition {
			if len(s.places) > 1 {
				s.places = []PartitionPosition{s.places[i]} // a group is of one partition
			}
			return k.stale && k.m.At.Before(s.places[0].At)
		}
	}
	return false
}

// Keep sends the latest message of a topic to those it is for, and keeps it for those to come, while there are
// subscriptions to its group. Positions of a topic rise. Its bytes are copied. stale: another one will come, see Stale.
func (h *Hub) Keep(m *Message, stale bool) error {
	if m.Partition < 0 || m.Partition >= len(h.last) {
		return fmt.Errorf("fanout: partition is %d, allowed: 0 to %d", m.Partition, len(h.last)-1)
	}
	name, _ := cutLast(string(m.Topic))
	h.stats.Published++
	g := h.groups[name]
	if g == nil {
		h.stats.Unwanted++
		return nil
	}
	n := 0
	for n < len(g.kept) && string(g.kept[n].m.Topic) != string(m.Topic) {
		n++
	}
	switch {
	case n == MostOfGroup:
		return fmt.Errorf("fanout: topic %.80q is one of more than %d of its group", m.Topic, MostOfGroup)
	case n == len(g.kept):
		g.kept = append(g.kept, kept{})
	case !g.kept[n].m.At.Before(m.At):
		return fmt.Errorf("fanout: position of topic %.80q is %s, allowed: behind %s", m.Topic, m.At, g.kept[n].m.At)
	}
	k := &g.kept[n]
	*k = kept{stale: stale, m: Message{Partition: m.Partition, At: m.At, Topic: append([]byte(nil), m.Topic...), Payload: append([]byte(nil), m.Payload...)}}
	from := h.random.Uint64()
	for i := range g.subs { // who is first is drawn anew for each message
		switch s := g.subs[(uint64(i)+from%uint64(len(g.subs)))%uint64(len(g.subs))]; {
		case !s.wantsKept(m):
		case s.behind(k):
			h.withhold(s, n)
		default:
			h.offerKept(s, n)
		}
	}
	return nil
}

// Stale says that further latest messages of a group will come: until then new subscriptions do not get those of before.
func (h *Hub) Stale(name string) {
	if g := h.groups[name]; g != nil {
		for i := range g.kept {
			g.kept[i].stale = true
		}
	}
}

// Fresh says that the latest messages of a group are as they should be. Subscriptions that were waiting for them get them.
func (h *Hub) Fresh(name string) {
	g := h.groups[name]
	if g == nil {
		return
	}
	for i := range g.kept {
		k := &g.kept[i]
		if !k.stale {
			continue
		}
		k.stale = false
		for _, s := range g.subs {
			if s.wantsKept(&k.m) && s.has&(1<<i) == 0 {
				h.owe(s, i)
			}
		}
	}
}

// offerKept sends a latest message now or later.
func (h *Hub) offerKept(s *Sub, n int) {
	if s.owed != 0 || s.flush != 0 || !s.client.room(len(s.group.kept[n].m.Payload)+gapSize) {
		if s.owed&(1<<n) != 0 {
			h.stats.Conflated++
		}
		h.owe(s, n)
		return
	}
	h.sendKept(s, n)
}

// owe has a latest message sent when there is room.
func (h *Hub) owe(s *Sub, n int) {
	if s.owed == 0 {
		h.owing++
	}
	s.owed |= 1 << n
	h.schedule(s)
}

// withhold has a subscription wait until a latest message is Fresh.
func (h *Hub) withhold(s *Sub, n int) {
	waits := s.owed != 0
	s.has &^= 1 << n
	if s.owed &^= 1 << n; waits && s.owed == 0 {
		h.owing--
	}
}

// drainKept sends what is owed. full: there is no room for more.
func (h *Hub) drainKept(s *Sub) (done, full bool) {
	for s.owed != 0 {
		n := bits.TrailingZeros8(s.owed)
		if !s.client.room(len(s.group.kept[n].m.Payload) + gapSize) {
			return false, true
		}
		if s.owed &^= 1 << n; s.owed == 0 {
			h.owing--
		}
		h.sendKept(s, n)
	}
	return true, false
}

// sendKept hands a latest message to the connection, framed once for each encoding.
func (h *Hub) sendKept(s *Sub, n int) {
	k, e := &s.group.kept[n], s.client.encoding
	if k.frame[e] == nil {
		b, slot := h.cfg.Encodings[e].Append(nil, &k.m)
		k.frame[e], k.slot[e] = b, slot
	}
	s.has |= 1 << n
	h.stats.Delivered++
	s.client.out.Message(k.frame[e], k.slot[e], s.number)
}
