package model

import mathbits "math/bits"

// A move: the record names the pods that should hold a copy, one fewer than there are, and
// the operator changes the list. The copies get there by joins, hand-overs and
// retirements. A change of the list changes the record's version, so earlier proposals
// cannot be accepted any more: they are proposed again, unless they were made because of
// the former list.

// copies that are wanted.
func (m *Spec) copies() int {
	if m.Moves > 0 {
		return int(m.Members) - 1
	}
	return int(m.Members)
}

// wanted reports whether a pod should hold a copy.
func (m *Spec) wanted(s *State, pod int) bool { return m.Moves == 0 || s.Wanted.has(pod) }

// move: the record names other pods.
func (m *Spec) move(was *State, emit emitter) {
	if was.Moves == m.Moves {
		return
	}
	for to := pods(1); to < 1<<m.Members; to++ {
		if to == was.Wanted || mathbits.OnesCount8(uint8(to)) != m.copies() {
			continue
		}
		s := *was
		s.Moves++
		s.Wanted, s.Puts = to, [maxPuts]Config{}
		for i := range s.Procs {
			switch p := &s.Procs[i]; {
			case p.Prop == None || p.Epoch != s.Epoch:
			case m.lapsed(&s, p) && m.Mutant != StalePlan:
				p.Prop, p.Of = None, 0
			default:
				s.put(p.Epoch, s.proposal(p))
			}
		}
		emit(Action{Kind: actMove, N: uint8(to)}, &s)
	}
}

// lapsed reports whether a proposal was made because of a former list.
func (m *Spec) lapsed(s *State, p *Proc) bool {
	of := mathbits.TrailingZeros8(uint8(p.Of))
	switch p.Prop {
	case HandOver:
		return !m.wanted(s, of) || m.wanted(s, podOf(p.ID))
	case Retire:
		return m.wanted(s, of)
	}
	return false
}

// letGo: with more copies in sync than wanted the primary removes one on a pod that the
// record does not name. A primary on such a pod hands over when all wanted copies are in
// sync elsewhere, and is removed by the next.
func (m *Spec) letGo(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if m.Moves == 0 || p.Role != Primary || p.Closed || p.Suspended || p.Prop != None || !was.allKnow(p) {
		return
	}
	members, named := 1, 0
	for pod, q := range p.Peers {
		switch {
		case was.member(p, pod):
			members++
			if m.wanted(was, pod) {
				named++
			}
		case q.Acks && m.Mutant == LearnerCounted:
			members++
		}
	}
	if m.Mutant == OldCopyFirst {
		members++
	}
	for pod := range p.Peers {
		switch {
		case !was.member(p, pod):
		case !m.wanted(was, pod) && members > m.copies():
			m.voluntary(was, i, Retire, pod, emit)
		case m.wanted(was, pod) && !m.wanted(was, podOf(p.ID)) && named >= m.copies():
			m.voluntary(was, i, HandOver, pod, emit)
		}
	}
}

// moveHolds: I19, for a change that is about to be accepted. A removal or hand-over
// follows the pods that the record names now, and never leaves fewer copies than wanted.
func (m *Spec) moveHolds(s *State, c Config) bool {
	if m.Moves == 0 {
		return true
	}
	for i := range s.Procs {
		p := &s.Procs[i]
		if p.Epoch != s.Epoch || p.Prop != Retire && p.Prop != HandOver || s.proposal(p) != c {
			continue
		}
		if m.lapsed(s, p) || p.Prop == Retire && c.size() < m.copies() {
			return false
		}
	}
	return true
}

// size returns how many are in sync.
func (c Config) size() int {
	n := 1
	for _, id := range c.Others {
		if id != 0 {
			n++
		}
	}
	return n
}
