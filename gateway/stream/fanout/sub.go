package fanout

import "github.com/ordergrid/ordergrid/gateway/stream/topics"

// Sub is a subscription of a client.
type Sub struct {
	client   *Client
	pattern  *topics.Pattern // neither it nor the filter changes
	filter   *topics.Filter  // nil: everything
	*backlog                 // noBacklog: nothing waits
	*special                 // nothing: it has none of it
	id       uint32          // in the index
	number   uint32
	size     int32
	at       int32 // in Hub.waiting; -1: not there
	flush    uint32
	due      uint32 // ms of the hub's time, modulo 2^32
	policy   Policy
	ready    bool // in Client.ready
	timed    bool // in the wheel
	gone     bool
	here     bool
	lost     bool // to be told that messages of clients are missing
}

// backlog is what waits for a subscription.
type backlog struct {
	queue  []uint64       // queue[first:] are numbers of the ring
	latest map[string]int // Conflate: by topic, the place in queue
	gap    *Gap           // behind the queue
	first  int32
}

// special is what few subscriptions have, or for a short time.
type special struct {
	catch  *catching  // nil: it is up to date
	group  *group     // of latest messages; nil: it is to others
	series *following // nil: it is not to a series
	// Of one to latest messages what it resumed from; of others the partitions that are away, and where it is there.
	places []PartitionPosition
	tail   string // last token of its pattern,
	owed   uint8  // which of them it is to be sent,
	has    uint8  // and which it was sent
}

// noBacklog and nothing are of all subscriptions that have none. They are never written to.
var (
	noBacklog = &backlog{}
	nothing   = &special{}
)

// keepBacklogs is how many backlogs without anything in them a hub has for those that come.
const keepBacklogs = 1024

// ownBacklog returns the backlog of a subscription to write to; h.settle takes it back.
func (s *Sub) ownBacklog() *backlog {
	if s.backlog == noBacklog {
		h := s.client.hub
		if n := len(h.backlogs); n > 0 {
			s.backlog, h.backlogs = h.backlogs[n-1], h.backlogs[:n-1]
		} else {
			s.backlog = &backlog{}
		}
	}
	return s.backlog
}

// settle takes the backlog of a subscription back if nothing is in it, and what is special of it if there is nothing.
func (h *Hub) settle(s *Sub) {
	if b := s.backlog; b != noBacklog && len(b.queue) == 0 && b.gap == nil {
		if s.backlog = noBacklog; len(h.backlogs) < keepBacklogs {
			h.backlogs = append(h.backlogs, b)
		}
	}
	if k := s.special; k.catch == nil && k.group == nil && k.series == nil && len(k.places) == 0 {
		s.special = nothing
	}
}

// ownSpecial returns what is special of a subscription, to write to.
func (s *Sub) ownSpecial() *special {
	if s.special == nothing {
		s.special = &special{}
	}
	return s.special
}

// ownGap returns the gap of a subscription, which is new if it has none.
func (s *Sub) ownGap() *Gap {
	b := s.ownBacklog()
	if b.gap == nil {
		b.gap = &Gap{}
	}
	return b.gap
}

// isFor reports whether a subscription is for a message.
func (s *Sub) isFor(m *Message) bool {
	return s.pattern.Matches(m.Topic) && (s.filter == nil || s.filter.Matches(m.Fields))
}
