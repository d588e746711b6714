package replica

// A session that is opened when there is no room takes the place of another. Which one
// that may be is for the primary alone to say: the entry names the slot, and all
// replicas put the new session there. So who a client is need not be in the log. A new
// primary learns whose a session is when its client opens it again, as all do that come
// to it; until then its owner is not known.

// seats has a seat per session slot, and counts sessions by client.
type seats struct {
	of       []seat
	sessions map[uint64]int // by client; those of owners not known are not in it
	known    int            // the sum of them
}

func (t *seats) at(slot uint32) *seat {
	for int(slot) >= len(t.of) {
		t.of = append(t.of, seat{})
	}
	return &t.of[slot]
}

// own makes client the owner of a session; 0: not known.
func (t *seats) own(slot uint32, client uint64) {
	s := t.at(slot)
	if s.client == client {
		return
	}
	if s.client != 0 {
		t.known--
		if t.sessions[s.client]--; t.sessions[s.client] == 0 {
			delete(t.sessions, s.client)
		}
	}
	if s.client = client; client != 0 {
		t.known++
		t.sessions[client]++
	}
}

// vacate is for a slot that gets a new session.
func (t *seats) vacate(slot uint32) {
	t.own(slot, 0)
	*t.at(slot) = seat{}
}

// forget is for a new primary: nobody has opened a session here yet, even on a
// connection from when this replica was the primary before, and what it will see
// first is not known.
func (t *seats) forget() {
	for slot := range t.of {
		t.own(uint32(slot), 0)
		s := &t.of[slot]
		s.expected = 0
		if !mutant(mutConnectionsKept) {
			s.conn, s.attempt = 0, 0
		}
	}
}

// chooseSlot picks the slot for a new session of a client. Within what it may have, a free
// one. A client that has as many sessions as one may have, or, when there is no room,
// as many as its fair share, gives one of its own. One that has fewer gets the place of a
// session of the client that has the most: no client loses a session to another as long as
// it has no more than its share. Of a client's sessions the one goes that has been quiet
// for the longest part of the log, and none with entries under way.
func (r *Replica) chooseSlot(client uint64) (slot uint32, evict, ok bool) {
	l, free := &r.opt.Limits, uint32(r.live.Sessions.Slots())
	mine := r.seats.sessions[client]
	full := int(free) >= l.Sessions
	switch {
	case client == 0 || mutant(mutEvictAnybody):
		if !full {
			return free, false, true
		}
		return r.quietest(func(*seat) bool { return true })
	case mine >= l.ClientSessions || full && mine >= r.fairShare(client):
		return r.quietest(func(s *seat) bool { return s.client == client })
	case !full:
		return free, false, true
	}
	most := r.largest()
	return r.quietest(func(s *seat) bool { return s.client == most })
}

// fairShare is what each client may have when there is no room, with one that asks.
// Sessions whose owners are not known are one client's.
func (r *Replica) fairShare(client uint64) int {
	n := len(r.seats.sessions)
	if r.seats.sessions[client] == 0 {
		n++
	}
	if r.live.Sessions.Open() > r.seats.known {
		n++
	}
	return max(1, r.opt.Limits.Sessions/n)
}

// largest is the client with the most sessions.
func (r *Replica) largest() uint64 {
	most, sessions := uint64(0), r.live.Sessions.Open()-r.seats.known
	for c, n := range r.seats.sessions { // in any order: the same for all
		if n > sessions || n == sessions && c > most {
			most, sessions = c, n
		}
	}
	return most
}

// quietest is the session whose last entry is oldest, of those that have no entries
// under way.
func (r *Replica) quietest(of func(*seat) bool) (slot uint32, evict, ok bool) {
	oldest := uint64(0)
	for i := range uint32(r.live.Sessions.Slots()) {
		s := r.live.Sessions.At(i)
		if (s.Touched <= r.commit || mutant(mutEvictUnderWay)) && of(r.seats.at(i)) && (!ok || s.Touched < oldest) {
			slot, oldest, ok = i, s.Touched, true
		}
	}
	return slot, true, ok
}
