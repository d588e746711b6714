package listener

import (
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
)

// waiter is a subscription for what nodes have not been told of all partitions yet. Once waitMost is over it goes on without
// those that are away, and gets what it lacks of each when that comes.
type waiter struct {
	h     *server.Held
	since time.Time // it waits on hold; zero: it goes on without some
}

// waitMost is how long a subscription is on hold at most, for the nodes of all partitions to be told what it is for.
const waitMost = 2 * time.Second

// hold takes in a subscription that lacks something. It is on the loop. false: it is released; what it lacks of partitions
// that are away is a gap then.
func (w *wanted) hold(h *server.Held) bool {
	waits := false
	h.Here(func(s *fanout.Sub) { waits = s.Waits() })
	if !waits {
		return w.g.hold(h)
	}
	if len(w.waiting) >= maxHistories {
		w.waiting = slices.DeleteFunc(w.waiting, func(k waiter) bool { return !k.h.Here(func(*fanout.Sub) {}) })
	}
	if len(w.waiting) >= maxHistories {
		return false
	}
	w.waiting = append(w.waiting, waiter{h, time.Now()})
	w.lookIn(waitMost)
	return true
}

// began has those go on that a partition has come for. It is on the loop.
func (w *wanted) began(partition int) {
	w.each(func(k *waiter, s *fanout.Sub) {
		held := s.Comes(partition)
		if onHold := !k.since.IsZero(); held || onHold && !s.Waits() {
			w.goOn(k, s)
		}
	})
}

// look has those go on that have waited for long.
func (w *wanted) look() {
	w.looks = false
	now, first, late := time.Now(), time.Time{}, 0
	w.each(func(k *waiter, s *fanout.Sub) {
		switch {
		case k.since.IsZero():
		case now.Sub(k.since) >= waitMost:
			late++
			w.goOn(k, s)
		case first.IsZero() || k.since.Before(first):
			first = k.since
		}
	})
	if !first.IsZero() {
		w.lookIn(waitMost - now.Sub(first))
	}
	if late > 0 {
		w.g.l.log.Warn("subscriptions go on without partitions of which no node says what it sends", "subscriptions", late, "partitions", w.behind())
	}
}

// behind names the partitions that do not send yet what is wanted.
func (w *wanted) behind() (names []string) {
	for _, p := range w.g.parts {
		if n := len(p.eras); n == 0 || p.eras[n-1].by != w.present {
			names = append(names, p.id.String())
		}
	}
	return names
}

func (w *wanted) lookIn(d time.Duration) {
	if w.looks {
		return
	}
	w.looks = true
	time.AfterFunc(d, func() { w.g.server.Post(func(*fanout.Hub) { w.look() }) })
}

// goOn has a subscription on hold get its history, but for partitions that are away.
func (w *wanted) goOn(k *waiter, s *fanout.Sub) {
	k.since = time.Time{}
	if s.Back() == 0 && len(s.Missing()) == 0 || !w.g.hold(k.h) {
		s.Release()
	}
}

// each calls f for those that wait and have not ended, and keeps those for which a partition is away still.
func (w *wanted) each(f func(*waiter, *fanout.Sub)) {
	without := 0
	kept := w.waiting[:0]
	for _, k := range w.waiting {
		k.h.Here(func(s *fanout.Sub) {
			if f(&k, s); s.Waits() {
				kept = append(kept, k)
				if k.since.IsZero() {
					without++
				}
			}
		})
	}
	clear(w.waiting[len(kept):])
	w.waiting = kept
	w.g.l.metrics.incomplete.Store(uint64(without))
}
