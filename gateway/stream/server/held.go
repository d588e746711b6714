package server

import "github.com/ordergrid/ordergrid/gateway/stream/fanout"

// Held is a subscription that waits for messages which have left the ring, or are from before the server.
type Held struct {
	s   *Server
	sub *fanout.Sub
}

// Do runs f with the subscription, on the loop, and waits for it. It returns false when the subscription or the server has
// ended. f uses Missing, Feed, Lost, Fed and Release; the subscription stays on hold until Release.
func (h *Held) Do(f func(*fanout.Sub)) bool {
	gone := false
	ok := h.s.Do(func(*fanout.Hub) {
		if gone = h.sub.Gone(); !gone {
			f(h.sub)
		}
	})
	return ok && !gone
}

// history has what a subscription lacks read elsewhere, or releases it.
func (s *Server) history(sub *fanout.Sub) {
	if len(sub.Missing()) == 0 || s.cfg.History == nil {
		sub.Release()
		return
	}
	if !s.cfg.History(&Held{s, sub}) {
		sub.Release()
		return
	}
	s.stats.Histories++
}
