package fanout

import (
	"fmt"
	"slices"
	"time"
)

// A series is a topic of Config.Latest whose last token is Config.Series. Its messages are changes of something that is too
// large to be sent with each of them: a subscription gets that in pages first, and between and behind them the changes of
// what it has. None can stand for another. A client that is so slow that changes it lacks are not held any more is told a
// gap, and begins with the first page again, or is disconnected, by its policy.
//
// Like latest messages, those of a series are not in the ring and have no part in tokens.

// Place is a place in what pages are of. Lower ones are before higher ones; the zero Place is before all.
type Place [3]uint64

// Source is what a series is of. It changes with Changed, and with Restarted.
type Source interface {
	// Page returns a message of what is behind a place, the place behind that, and whether nothing is behind it.
	Page(from Place) (payload []byte, to Place, last bool)
}

const (
	// pageSize is what a page is taken to need in a connection.
	pageSize = 8 << 10
	// pagesAhead of Limits.PageRate may be sent at once.
	pagesAhead = int64(100 * time.Millisecond)
	// seriesMost and seriesBytes of changes are held for those that are slow.
	seriesMost  = 4096
	seriesBytes = 512 << 10
)

// series is one, with its subscriptions.
type series struct {
	topic     string
	partition int
	source    Source
	ready     bool // there is something to be sent
	stale     bool // it may be behind the log
	at        Position
	subs      []*Sub
	changes   []seriesChange
	first     uint64 // number of changes[0]
	bytes     int
}

// seriesChange is one that is held.
type seriesChange struct {
	m     Message
	place Place
	frame [MaxEncodings][]byte
	slot  [MaxEncodings]int
}

// following is a subscription to a series.
type following struct {
	of      *series
	next    uint64   // the change to be looked at
	at      Position // of what it was sent last
	read    Place    // it has what is up to it
	begun   bool     // it was sent something
	whole   bool     // it has everything
	lost    bool     // it is to be told a gap, and to begin again
	owed    bool     // something waits for it
	resumed Position // it does not begin with what may be older
}

// isSeries reports whether a topic is a series.
func (h *Hub) isSeries(topic string) bool {
	_, last := cutLast(topic)
	return h.cfg.Series != "" && last == h.cfg.Series
}

// joinSeries adds a subscription to its series.
func (h *Hub) joinSeries(s *Sub, w *Subscription) error {
	topic := w.Pattern.String()
	name, _ := cutLast(topic)
	if err := h.checkLatest(name, w); err != nil {
		return err
	}
	if w.Policy == Conflate {
		return fmt.Errorf("policy of subscription %d to %.80q is conflate, allowed: drop (a slow client is told a gap, and begins again), disconnect", w.Number, topic)
	}
	n := 0
	for _, o := range s.client.subs {
		n += b2i(o.series != nil)
	}
	if n >= h.cfg.Limits.Series {
		return fmt.Errorf("%w: subscriptions to topics that end with %s are %d, allowed: at most %d", ErrLimit, h.cfg.Series, n+1, h.cfg.Limits.Series)
	}
	f := &following{}
	if w.Resume != nil {
		if _, err := h.resume(w.Resume); err != nil {
			return err
		}
	}
	x := h.series[topic]
	if x == nil {
		source, partition, err := h.cfg.Opened(topic)
		if err != nil {
			return err
		}
		x = &series{topic: topic, partition: partition, source: source}
		if h.series == nil {
			h.series = map[string]*series{}
		}
		h.series[topic] = x
	}
	if w.Resume != nil {
		for _, p := range w.Resume.At {
			if p.Partition == x.partition {
				f.resumed = p.At
			}
		}
	}
	f.of, f.next = x, x.head()
	s.special, s.policy = &special{series: f}, w.Policy
	x.subs = append(x.subs, s)
	h.followed++
	h.oweSeries(s)
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// leaveSeries takes a subscription out of its series; one without subscriptions is forgotten.
func (h *Hub) leaveSeries(s *Sub) {
	x := s.series.of
	h.followed--
	h.settleSeries(s)
	s.special = nothing
	i := slices.Index(x.subs, s)
	last := len(x.subs) - 1
	x.subs[i], x.subs[last] = x.subs[last], nil
	if x.subs = x.subs[:last]; last == 0 {
		delete(h.series, x.topic)
		h.cfg.Closed(x.topic)
	}
}

func (x *series) head() uint64 { return x.first + uint64(len(x.changes)) }

// oweSeries has a subscription drained when there is room.
func (h *Hub) oweSeries(s *Sub) {
	if !s.series.owed {
		s.series.owed = true
		h.owing++
	}
	h.schedule(s)
}

func (h *Hub) settleSeries(s *Sub) {
	if s.series.owed {
		s.series.owed = false
		h.owing--
	}
}

// Restarted says that the source of a series is another one from here on, as after a position: who has something of it is
// told a gap and begins again. stale: it may be older than what subscriptions resume from, until Reached says otherwise.
func (h *Hub) Restarted(topic string, at Position, stale bool) {
	x := h.series[topic]
	if x == nil {
		return
	}
	x.first, x.changes, x.bytes = x.head()+1, nil, 0 // who looks for one before has lost it
	x.ready, x.at, x.stale = true, at, stale
	for _, s := range x.subs {
		h.oweSeries(s)
	}
}

// Changed sends a change of what is at a place to the subscriptions that have that. The source has changed already.
// Positions rise. The bytes of the message are kept.
func (h *Hub) Changed(topic string, place Place, at Position, payload []byte) error {
	x := h.series[topic]
	h.stats.Published++
	switch {
	case x == nil:
		h.stats.Unwanted++
		return nil
	case !x.ready || !x.at.Before(at):
		return fmt.Errorf("fanout: a change of %.80q is at %s, allowed: behind %s, which it was restarted at or reached", topic, at, x.at)
	}
	x.at = at
	x.hold(seriesChange{place: place, m: Message{Partition: x.partition, At: at, Topic: []byte(topic), Payload: payload}})
	from := h.random.Uint64()
	for i := range x.subs { // who is first is drawn anew for each message
		s := x.subs[(uint64(i)+from%uint64(len(x.subs)))%uint64(len(x.subs))]
		if f := s.series; s.flush == 0 && !s.ready && f.whole && f.next == x.head()-1 && s.client.room(len(payload)+gapSize) {
			f.next++
			h.sendChange(s, &x.changes[len(x.changes)-1])
			continue
		}
		h.oweSeries(s)
	}
	return nil
}

// hold keeps a change for those that are slow, and forgets the older half if these are too many.
func (x *series) hold(c seriesChange) {
	x.changes = append(x.changes, c)
	x.bytes += len(c.m.Payload)
	if len(x.changes) <= seriesMost && x.bytes <= seriesBytes {
		return
	}
	gone := len(x.changes) / 2
	for i := range gone {
		x.bytes -= len(x.changes[i].m.Payload)
	}
	x.changes = append([]seriesChange(nil), x.changes[gone:]...)
	x.first += uint64(gone)
}

// Reached says that a series is as after a position, and whether it may be behind the log.
func (h *Hub) Reached(topic string, at Position, stale bool) {
	x := h.series[topic]
	if x == nil || !x.ready {
		return
	}
	if x.at.Before(at) {
		x.at = at
	}
	x.stale = stale
	for _, s := range x.subs {
		if !s.series.begun {
			h.oweSeries(s)
		}
	}
}

// Interrupted says that a series has no source until Restarted.
func (h *Hub) Interrupted(topic string) {
	if x := h.series[topic]; x != nil {
		x.ready = false
	}
}

// Behind says that a series is behind the log, until Reached says otherwise.
func (h *Hub) Behind(topic string) {
	if x := h.series[topic]; x != nil {
		x.stale = true
	}
}

// drainSeries sends some of what waits for a subscription. done: nothing is left now. full: there is no room for more.
func (h *Hub) drainSeries(s *Sub) (done, full bool) {
	f, c := s.series, s.client
	x := f.of
	if !x.ready || !f.begun && x.stale && x.at.Before(f.resumed) {
		h.settleSeries(s)
		return true, false // Restarted and Reached go on
	}
	if !f.begun {
		f.next = x.head()
	}
	if f.next < x.first && !f.lost {
		if s.policy == Disconnect {
			c.close(fmt.Errorf("%w: changes of %.80q that it lacks are not held any more", ErrTooSlow, x.topic))
			return true, false
		}
		f.lost = true
	}
	if f.lost {
		if !c.room(gapSize) {
			return false, true
		}
		h.tell(s, &Gap{Ranges: []Range{{Partition: x.partition, After: f.at, Through: x.at}}})
		*f = following{of: x, next: x.head(), at: f.at, begun: true, owed: f.owed}
	}
	for range turn {
		if f.next == x.head() {
			break
		}
		k := &x.changes[f.next-x.first]
		if f.whole || slices.Compare(k.place[:], f.read[:]) <= 0 {
			if !c.room(len(k.m.Payload) + gapSize) {
				return false, true
			}
			h.sendChange(s, k)
		}
		f.next++
	}
	switch {
	case f.next < x.head():
		return false, false
	case f.whole:
		h.settleSeries(s)
		return true, false
	case !c.room(pageSize):
		return false, true
	case c.paged > h.now+pagesAhead:
		h.waitForPage(s)
		return true, false
	}
	payload, to, last := x.source.Page(f.read)
	c.paged = max(c.paged, h.now) + int64(len(payload))*int64(time.Second)/int64(h.cfg.Limits.PageRate)
	f.read, f.whole, f.begun, f.at = to, last, true, x.at
	h.stats.Delivered++
	h.sendMessage(s, &Message{Partition: x.partition, At: x.at, Topic: []byte(x.topic), Payload: payload})
	return false, false
}

// waitForPage has a subscription drained when its client may be sent a page again.
func (h *Hub) waitForPage(s *Sub) {
	if !s.timed {
		h.wheel.add(s, s.client.paged-pagesAhead)
	}
}

// sendChange hands a change to the connection, framed once for each encoding.
func (h *Hub) sendChange(s *Sub, k *seriesChange) {
	e := s.client.encoding
	if k.frame[e] == nil {
		k.frame[e], k.slot[e] = h.cfg.Encodings[e].Append(nil, &k.m)
	}
	s.series.at = k.m.At
	h.stats.Delivered++
	s.client.out.Message(k.frame[e], k.slot[e], s.number)
}
