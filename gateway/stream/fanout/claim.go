package fanout

import (
	"math"
	"slices"
)

// claim has a new subscription wait for what is not brought for it yet: it is on hold then, as one that resumes.
func (h *Hub) claim(s *Sub) {
	has := h.last // a new one lacks nothing of before,
	switch {
	case s.catch != nil && s.catch.seek > 0: // one that goes back over the ring nothing of before that,
		has = h.evicted
	case s.catch != nil:
		has = s.catch.at
	}
	since, complete := make([]Position, len(has)), true
	for p := range since {
		var known bool
		if since[p], known = h.claims[s.id].Since(p, has[p]); !known {
			k := s.ownSpecial()
			k.places = append(k.places, PartitionPosition{Partition: p})
		}
		complete = complete && known && !has[p].Before(since[p])
	}
	switch {
	case complete:
		return
	case s.catch == nil:
		s.ownSpecial().catch = &catching{at: append([]Position(nil), h.last...), next: h.ring.head}
	case s.catch.seek > 0:
		s.catch = &catching{at: s.catch.at, back: s.catch.seek, live: true}
	}
	for i := range s.places {
		s.places[i].At = s.catch.at[s.places[i].Partition]
	}
	s.catch.hold, s.catch.since = true, since
}

// Away reports whether it is not known yet what a subscription lacks of a partition, so that it gets nothing of it.
func (s *Sub) Away(partition int) bool {
	return slices.ContainsFunc(s.places, func(a PartitionPosition) bool { return a.Partition == partition })
}

// Waits reports whether a partition is away. A subscription that is released meanwhile goes on without it, until Comes.
func (s *Sub) Waits() bool { return s.group == nil && len(s.places) > 0 }

// Comes has a subscription get a partition that was away, if it is known now what it lacks of it. It returns true if it has
// put the subscription on hold for that, as one that resumes from where it is.
func (s *Sub) Comes(partition int) (held bool) {
	at := s.At(partition)
	since, known := s.arrives(partition)
	if !known {
		return false
	}
	h, k := s.client.hub, s.catch
	if k == nil && !at.Before(since) && !at.Before(h.last[partition]) {
		return false // it lacks nothing
	}
	if k == nil {
		k = &catching{at: make([]Position, len(h.last)), since: make([]Position, len(h.last))}
		for p, t := range s.Token().At { // what waits is read from the ring again
			k.at[p] = t.At
		}
		k.at[partition] = at
		s.lost = s.lost || s.gap != nil && s.gap.User != 0 || s.oldest(userBit) != math.MaxUint64
		h.clearQueue(s)
		if s.gap != nil {
			s.gap = nil
			h.settle(s)
		}
		s.ownSpecial().catch = k
	}
	k.since[partition] = since
	if k.hold {
		return false
	}
	k.next, k.begun, k.hold = h.ring.tail, false, true
	return true
}

// arrives takes a partition out of those that are away, if it is known from where on all that the subscription is for is
// published.
func (s *Sub) arrives(partition int) (since Position, known bool) {
	i := slices.IndexFunc(s.places, func(a PartitionPosition) bool { return a.Partition == partition })
	if i < 0 {
		return Position{}, false
	}
	if since, known = s.client.hub.claims[s.id].Since(partition, s.At(partition)); known {
		if s.places = slices.Delete(s.places, i, i+1); len(s.places) == 0 {
			s.places = nil
			s.client.hub.settle(s)
		}
	}
	return since, known
}

// gets reports whether a subscription of which partitions are away gets a message of one now. If Comes was not called when
// it could be, what the subscription lacks is a gap.
func (h *Hub) gets(s *Sub, partition int) bool {
	if !s.Away(partition) {
		return true
	}
	at := s.At(partition)
	since, known := s.arrives(partition)
	if !known || !at.Before(since) {
		return known
	}
	lacks := Range{Partition: partition, After: at, Through: since}
	if s.gap == nil && int(s.first) == len(s.queue) && s.client.room(gapSize) {
		h.tell(s, &Gap{Ranges: []Range{lacks}})
		return true
	}
	s.ownGap().add(lacks)
	h.schedule(s)
	return true
}
