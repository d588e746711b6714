package replica

// A session that is opened when all slots are taken replaces another. Only the primary
// decides which: the entry names the slot, and all replicas put the new session there. So
// client identities need not be in the log. A new primary learns the owner of a session
// when its client opens it again, as all its clients do; until then the owner is unknown.

// seats has a seat per session slot, and counts sessions by client.
type seats struct {
	of       []seat
	sessions map[uint64]int // by client; without those of unknown owners
	known    int            // the sum of them
}

func (t *seats) at(slot uint32) *seat {
	for int(slot) >= len(t.of) {
		t.of = append(t.of, seat{})
	}
	return &t.of[slot]
}

// own makes client the owner of a session; 0: unknown.
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

// vacate clears the owner of a slot that gets a new session.
func (t *seats) vacate(slot uint32) {
	t.own(slot, 0)
	*t.at(slot) = seat{}
}

// forget resets the owners on a new primary: no session has been opened here in this term,
// even on a connection from an earlier term as primary, and the next attempt is unknown.
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

// chooseSlot picks the slot for a new session of a client: a free one within its limit. A
// client at its limit, or, when all slots are taken, at its fair share, gives up one of
// its own. Below that it gets the slot of a session of the client with the most: no client
// loses a session to another while it has no more than its share. Of a client's sessions
// the one with the oldest last entry is replaced, and none with entries in flight.
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

// fairShare returns how many sessions each client may have when all slots are taken,
// counting the requesting one. Sessions of unknown owners count as one client's.
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

// largest returns the client with the most sessions.
func (r *Replica) largest() uint64 {
	most, sessions := uint64(0), r.live.Sessions.Open()-r.seats.known
	for c, n := range r.seats.sessions { // in any order: the result is the same
		if n > sessions || n == sessions && c > most {
			most, sessions = c, n
		}
	}
	return most
}

// quietest returns the session with the oldest last entry, of those without entries in
// flight.
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
