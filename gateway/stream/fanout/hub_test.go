package fanout

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever happens, a subscription is sent each message that it is for once and in order, or a gap that covers it, and its
// token is true at any moment.
func TestEachMessageOnceOrInAGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		pick := func(t *rapid.T, subscribed bool) *stream {
			list := slices.DeleteFunc(slices.Clone(w.streams), func(s *stream) bool { return (s.client != nil) != subscribed })
			if len(list) == 0 {
				t.Skip("no such stream")
			}
			return rapid.SampledFrom(list).Draw(t, "stream")
		}
		t.Repeat(map[string]func(*rapid.T){
			"publish":  w.publish,
			"publish2": w.publish,
			"burst": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "messages") {
					w.publish(t)
				}
			},
			"examined": func(t *rapid.T) {
				p := rapid.IntRange(0, len(w.history)-1).Draw(t, "partition")
				at := w.hub.Last(p)
				w.hub.Examined(p, Position{at.Seq + rapid.Uint64Range(0, 3).Draw(t, "step"), 0})
			},
			"tick": func(t *rapid.T) {
				w.now += time.Duration(rapid.SampledFrom([]int{100_000, 1_000_000, 7_300_000, 5_000_000_000}).Draw(t, "ns"))
				w.hub.Tick(w.now)
			},
			"read": func(t *rapid.T) {
				c := w.pick(t)
				c.buffered = 0
				c.c.Writable()
			},
			"subscribe": func(t *rapid.T) {
				if len(w.streams) > 6 {
					return
				}
				w.subscribe(t)
			},
			"leave":  func(t *rapid.T) { w.leave(t, pick(t, true)) },
			"resume": func(t *rapid.T) { w.resume(t, pick(t, false)) },
			"close": func(t *rapid.T) {
				c := w.pick(t)
				for _, number := range slices.Sorted(maps.Keys(c.streams)) {
					w.leave(t, c.streams[number])
				}
				c.c.Close()
				c.closed = ErrLimit
			},
			"": w.check,
		})
		w.finish(t)
	})
}

// check holds the events of each stream against the history.
func (w *world) check(t *rapid.T) {
	waiting := 0
	for _, c := range w.clients {
		queued := 0
		for _, s := range c.streams {
			if s.client == c {
				for _, n := range s.sub.queue[s.sub.first:] {
					queued += w.hub.size(c.c, w.hub.ring.entry(n))
					if r := &w.hub.ring; n < r.tail || n < r.waits {
						t.Fatalf("message %d waits, the ring begins at %d, and queues at %d", n, r.tail, r.waits)
					}
				}
				if len(s.sub.queue) > int(s.sub.first) {
					waiting++
				}
			}
		}
		if queued != c.c.Queued() && c.closed == nil || queued > w.hub.cfg.Limits.Queued {
			t.Fatalf("%d bytes wait, counted are %d, allowed %d", queued, c.c.Queued(), w.hub.cfg.Limits.Queued)
		}
	}
	if waiting != len(w.hub.waiting) {
		t.Fatalf("%d subscriptions have a queue, the hub knows %d", waiting, len(w.hub.waiting))
	}
	for _, s := range w.streams {
		if s.what.Policy == Conflate {
			s.checkLatest(t, w)
			continue
		}
		upTo := slices.Clone(s.known)
		if s.sub != nil {
			for _, p := range s.sub.Token().At {
				upTo[p.Partition] = p.At
			}
		}
		s.checkOnce(t, w, upTo)
	}
}

// checkOnce: what the stream was sent of each partition is the history up to there, in order, with gaps in their places.
func (s *stream) checkOnce(t *rapid.T, w *world, upTo []Position) {
	for p, history := range w.history {
		at := s.start[p]
		i := 0
		for i < len(history) && !at.Before(history[i].At) {
			i++
		}
		for _, e := range s.events {
			switch {
			case e.m.Topic != nil && e.m.Partition == p:
				for i < len(history) && history[i].At.Before(e.m.At) {
					if s.wants(&history[i]) {
						t.Fatalf("subscription %d misses p%d:%s before %s", s.what.Number, p, history[i].At, e.m.At)
					}
					i++
				}
				if i == len(history) || history[i].At != e.m.At || !s.wants(&history[i]) {
					t.Fatalf("subscription %d got p%d:%s twice, out of order or unasked", s.what.Number, p, e.m.At)
				}
				i++
			case e.m.Topic == nil && e.gap.Partition == p:
				count := uint64(0)
				for ; i < len(history) && !e.gap.Through.Before(history[i].At); i++ {
					switch covered := e.gap.After.Before(history[i].At); {
					case s.wants(&history[i]) && covered:
						count++
					case s.wants(&history[i]):
						t.Fatalf("subscription %d misses p%d:%s before the gap %+v", s.what.Number, p, history[i].At, e.gap)
					}
				}
				if e.gap.Count != 0 && e.gap.Count != count {
					t.Fatalf("subscription %d has gap %+v, of %d messages", s.what.Number, e.gap, count)
				}
			}
		}
		for ; i < len(history) && !upTo[p].Before(history[i].At); i++ {
			if s.wants(&history[i]) {
				t.Fatalf("subscription %d misses p%d:%s, its token is at %s", s.what.Number, p, history[i].At, upTo[p])
			}
		}
		if i > 0 && upTo[p].Before(history[i-1].At) && s.wants(&history[i-1]) {
			t.Fatalf("subscription %d got p%d:%s, its token is at %s", s.what.Number, p, history[i-1].At, upTo[p])
		}
	}
}

// checkOrder: no message took a place on the other side of a partial one.
func (s *stream) checkOrder(t *rapid.T) {
	type place struct{ session, partition int }
	last, partial := map[place]Position{}, map[place]Position{}
	for i := range s.events {
		e := &s.events[i]
		k := place{e.session, e.m.Partition}
		switch at := e.m.At; {
		case e.m.Topic == nil:
			continue
		case !partial[k].Before(at) || e.m.Partial && !last[k].Before(at):
			t.Fatalf("subscription %d got p%d:%s behind %s, and partial ones up to %s", s.what.Number, k.partition, at, last[k], partial[k])
		case e.m.Partial:
			partial[k] = at
			fallthrough
		case last[k].Before(at):
			last[k] = at
		}
	}
}

// checkLatest: the last message of each topic was sent, or is in a gap, or is behind the token.
func (s *stream) checkLatest(t *rapid.T, w *world) {
	s.checkOrder(t)
	if s.sub == nil {
		return
	}
	s.token = s.sub.Token()
	for _, pp := range s.token.At {
		p := pp.Partition
		last, sent := map[string]Position{}, map[string]Position{}
		for _, m := range w.history[p] {
			if s.wants(&m) && s.start[p].Before(m.At) {
				last[string(m.Topic)] = m.At
			}
		}
		for _, e := range s.events {
			if e.m.Topic != nil && e.m.Partition == p && sent[string(e.m.Topic)].Before(e.m.At) {
				sent[string(e.m.Topic)] = e.m.At
			}
		}
		for topic, at := range last {
			if !sent[topic].Before(at) || pp.At.Before(at) {
				continue
			}
			if !slices.ContainsFunc(s.events, func(e event) bool {
				return e.m.Topic == nil && e.gap.Partition == p && e.gap.After.Before(at) && !e.gap.Through.Before(at)
			}) {
				t.Fatalf("subscription %d misses p%d:%s of %s, the latest it got is %s", s.what.Number, p, at, topic, sent[topic])
			}
		}
	}
}

// finish lets all clients read: then nothing waits, and tokens are at the end.
func (w *world) finish(t *rapid.T) {
	for range 200 {
		w.now += 3 * time.Second
		w.hub.Tick(w.now)
		for _, c := range w.clients {
			if c.closed == nil {
				c.buffered = 0
				c.c.Writable()
			}
		}
	}
	w.check(t)
	if n := w.hub.Stats().Waiting; n != 0 {
		t.Fatalf("%d subscriptions wait, and all clients read", n)
	}
	for _, s := range w.streams {
		if s.sub == nil {
			continue
		}
		for _, p := range s.sub.Token().At {
			if p.At != w.hub.Last(p.Partition) {
				t.Fatalf("subscription %d: token is %s, published was up to p%d:%s", s.what.Number, s.sub.Token(), p.Partition, w.hub.Last(p.Partition))
			}
		}
	}
}
