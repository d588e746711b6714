package model

// Full health can be reached: from every state with a live in-sync member, without any
// further fault, there is a path to a state with both members in sync, all orders
// committed, and nothing in flight. (I13, as reachability: it does not claim that the path
// is taken.)

// edges are the steps without a fault, by the state they lead from.
type edges struct {
	first []uint32 // of each state, and of the one after the last
	list  []uint32
}

func (e *edges) next() {
	if e != nil {
		e.first = append(e.first, uint32(len(e.list)))
	}
}

func (e *edges) to(n uint32, a Action) {
	if e != nil && !a.fault() {
		e.list = append(e.list, n)
	}
}

func (e *edges) bytes() int64 {
	if e == nil {
		return 0
	}
	return int64(cap(e.first)+cap(e.list)) * 4
}

// allGone reports whether no in-sync member lives.
func (s *State) allGone() bool {
	for i := range s.Procs {
		if s.record().has(s.Procs[i].ID) {
			return false
		}
	}
	return true
}

// healthy reports whether all members are in sync and nothing is left to do.
func (m *Spec) healthy(s *State) bool {
	p := s.serving(s.Epoch)
	if p == nil || p.Suspended || p.Closed || p.Prop != None || p.Commit != p.Log.Len() {
		return false
	}
	n := uint8(1)
	for pod := range p.Peers {
		if q := s.proc(p.Peers[pod].ID); s.member(p, pod) && q != nil && q.Role == Backup && q.Epoch == s.Epoch && q.Log == p.Log {
			n++
			if !m.wanted(s, pod) {
				return false
			}
		}
	}
	return int(n) == m.copies() && m.wanted(s, podOf(p.ID))
}

// stuck counts the states that cannot return to full health.
func (r *search) stuck() uint32 {
	e := r.edges
	e.first = append(e.first, uint32(len(e.list)))
	good := make([]bool, r.t.n)
	for n := range r.t.n {
		s := r.t.at(n).unpack()
		good[n] = r.spec.healthy(&s) || s.allGone()
	}
	for changed := true; changed; {
		changed = false
		for n := r.t.n; n > 0; n-- {
			if i := n - 1; !good[i] && e.anyGood(i, good) {
				good[i], changed = true, true
			}
		}
	}
	bad := uint32(0)
	for n := range r.t.n {
		if !good[n] {
			bad++
			if bad == 1 {
				r.last, r.broken = r.t.parent(n), n
			}
		}
	}
	return bad
}

func (e *edges) anyGood(n uint32, good []bool) bool {
	for _, to := range e.list[e.first[n]:e.first[n+1]] {
		if good[to] {
			return true
		}
	}
	return false
}
