package fanout

import (
	"unsafe"

	"github.com/ordergrid/ordergrid/internal/prefetch"
)

// Thousands of clients, their subscriptions and a ring of messages are larger than caches. What is needed of several of them
// is asked for together, so that the processor waits once and not for one after the other.

// ahead is how many subscriptions are asked for together.
const ahead = 16

// touchHits starts to load the subscriptions that a message is for, then their clients and what waits for them.
func (h *Hub) touchHits(hits []uint32) {
	if len(hits) < 2 {
		return
	}
	var subs [ahead]*Sub
	n := 0
	for _, id := range hits[:min(len(hits), ahead)] {
		if s := h.subs[id]; s != nil {
			prefetch.Line(unsafe.Pointer(s))
			prefetch.Line(unsafe.Pointer(&s.flush))
			subs[n] = s
			n++
		}
	}
	touchClients(subs[:n])
	if h.cfg.Ahead == nil {
		return
	}
	at := subs[:0] // that are sent to at once
	for _, s := range subs[:n] {
		if s.flush == 0 {
			prefetch.Line(object(s.client.out))
			at = append(at, s)
		}
	}
	for _, s := range at {
		h.cfg.Ahead(s.client.out)
	}
}

// object is where an outlet lies.
func object(o Outlet) unsafe.Pointer { return (*[2]unsafe.Pointer)(unsafe.Pointer(&o))[1] }

// touchSubs is touchHits of subscriptions that are due.
func touchSubs(subs []*Sub) {
	for _, s := range subs {
		prefetch.Line(unsafe.Pointer(s))
		prefetch.Line(unsafe.Pointer(&s.flush))
	}
	touchClients(subs)
}

func touchClients(subs []*Sub) {
	for _, s := range subs {
		prefetch.Line(unsafe.Pointer(&s.client.queued))
		prefetch.Line(unsafe.Pointer(s.backlog))
	}
}

// touchBusy starts to load what the busy clients behind the one at a place, which is drained next, are about to be sent: the
// entries of the one after the next, and the frames of the next.
func (h *Hub) touchBusy(busy []*Client, at int) {
	if len(busy) < 3 {
		return
	}
	later, next := busy[(at+2)%len(busy)], busy[(at+1)%len(busy)]
	h.eachWaiting(later, func(e *entry) { prefetch.Line(unsafe.Pointer(e)) })
	if h.cfg.Ahead != nil {
		prefetch.Line(object(later.out))
		h.cfg.Ahead(next.out)
	}
	h.eachWaiting(next, func(e *entry) {
		b := h.ringOf(e).arena
		from := e.start + int(e.frames[next.encoding].offset)
		for to := min(from+int(e.frames[next.encoding].size), from+256); from < to; from += 64 {
			prefetch.Line(unsafe.Pointer(&b[from]))
		}
	})
}

// eachWaiting calls f with the first messages that wait for the first subscriptions of a client: one that does not read may
// have a thousand for which something waits, and is among the busy again and again.
func (h *Hub) eachWaiting(c *Client, f func(*entry)) {
	for _, s := range c.ready[:min(len(c.ready), ahead/2)] {
		b := s.backlog
		for _, n := range b.queue[b.first:min(len(b.queue), int(b.first)+ahead/4)] {
			f(h.entry(n))
		}
	}
}
