package server

import "github.com/ordergrid/ordergrid/gateway/stream/fanout"

// Held is a subscription that waits for messages which have left the ring, are from before the server, or were not brought
// while no subscription was for them.
type Held struct {
	s   *Server
	sub *fanout.Sub
}

// Do runs f with the subscription, on the loop, and waits for it. It returns false when the subscription or the server has
// ended. f uses Waits, Back, Rewind, Missing, Feed, Lost, Fed and Release; the subscription stays on hold until Release.
func (h *Held) Do(f func(*fanout.Sub)) bool {
	gone := false
	ok := h.s.Do(func(*fanout.Hub) {
		if gone = h.sub.Gone(); !gone {
			f(h.sub)
		}
	})
	return ok && !gone
}

// Here is Do on the loop, such as in Config.History.
func (h *Held) Here(f func(*fanout.Sub)) bool {
	if h.sub.Gone() {
		return false
	}
	f(h.sub)
	return true
}

// history has what a subscription lacks read elsewhere, or releases it.
func (s *Server) history(sub *fanout.Sub) {
	lacks := sub.Waits() || sub.Back() > 0 || len(sub.Missing()) > 0
	if !lacks || s.cfg.History == nil || !s.cfg.History(&Held{s, sub}) {
		sub.Release()
	}
}
