package replica

// A session that is opened when there is no room takes the place of another. Which one
// that may be is for the primary alone to say: the entry names the slot, and all
// replicas put the new session there. So who a client is need not be in the log. A new
// primary learns whose a session is when its client opens it again, as all do that come
// to it; until then its owner is not known.

// owners counts sessions by client, at the primary.
type owners struct {
	limit    int            // of one client
	sessions map[uint64]int // by client; those of owners not known are not in it
	known    int            // the sum of them
}

// set makes client the owner of a session; 0: not known.
func (o *owners) set(s *session, client uint64) {
	if s.client == client {
		return
	}
	if s.client != 0 {
		o.known--
		if o.sessions[s.client]--; o.sessions[s.client] == 0 {
			delete(o.sessions, s.client)
		}
	}
	if s.client = client; client != 0 {
		o.known++
		o.sessions[client]++
	}
}

// choose picks the slot for a new session of a client. Within what it may have, a free
// one. A client that has as many sessions as one may have, or, when there is no room,
// as many as its fair share, gives one of its own. One that has fewer gets the place of a
// session of the client that has the most: no client loses a session to another as long as
// it has no more than its share. Of a client's sessions the one goes that has been quiet
// for the longest part of the log, and none with entries under way.
func (t *sessionTable) choose(client, commit uint64) (slot uint32, evict, ok bool) {
	mine := t.owners.sessions[client]
	full := len(t.slots) >= t.limit
	switch {
	case client == 0 || mutant(mutEvictAnybody):
		if !full {
			return uint32(len(t.slots)), false, true
		}
		return t.quietest(commit, func(*session) bool { return true })
	case mine >= t.owners.limit || full && mine >= t.fairShare(client):
		return t.quietest(commit, func(s *session) bool { return s.client == client })
	case !full:
		return uint32(len(t.slots)), false, true
	}
	most := t.largest()
	return t.quietest(commit, func(s *session) bool { return s.client == most })
}

// fairShare is what each client may have when there is no room, with one that asks.
// Sessions whose owners are not known are one client's.
func (t *sessionTable) fairShare(client uint64) int {
	n := len(t.owners.sessions)
	if t.owners.sessions[client] == 0 {
		n++
	}
	if len(t.byID) > t.owners.known {
		n++
	}
	return max(1, t.limit/n)
}

// largest is the client with the most sessions.
func (t *sessionTable) largest() uint64 {
	most, sessions := uint64(0), len(t.byID)-t.owners.known
	for c, n := range t.owners.sessions { // in any order: the same for all
		if n > sessions || n == sessions && c > most {
			most, sessions = c, n
		}
	}
	return most
}

// quietest is the session whose last entry is oldest, of those that have no entries
// under way.
func (t *sessionTable) quietest(commit uint64, of func(*session) bool) (slot uint32, evict, ok bool) {
	best := -1
	for i := range t.slots {
		s := &t.slots[i]
		if (s.touched <= commit || mutant(mutEvictUnderWay)) && of(s) && (best < 0 || s.touched < t.slots[best].touched) {
			best = i
		}
	}
	return uint32(max(best, 0)), true, best >= 0
}
