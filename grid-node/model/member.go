package model

// Changes of the configuration: proposers and conditions.

// takeOver: a backup that suspects its primary leaves the epoch, waits until its promise
// has expired, and proposes itself alone.
func (m *Spec) takeOver(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	may := p.Role == Backup || m.Mutant == LearnerTakesOver && p.Role == Learner && p.Epoch > 0
	cost := was.suspicion(p.Epoch, was.Config[p.Epoch].Primary)
	if !may || p.Prop != None || was.Faults+cost > m.Faults {
		return
	}
	s := *was
	p = &s.Procs[i]
	s.Faults += cost
	p.Role, p.Prop = Fenced, TakeOver
	for k := range s.Procs {
		q := &s.Procs[k]
		forgot := m.Mutant == LeaseForgotten && q.Epoch < p.Epoch // no message of it in this epoch
		if own := &q.Peers[podOf(p.ID)]; own.ID == p.ID && !forgot && m.Mutant != LeaseNotWaitedOut {
			own.Lease = false
		}
	}
	act := Action{Kind: actTakeOver, P: p.ID, N: cost, E: p.Epoch}
	s.put(p.Epoch, Config{Primary: p.ID})
	if m.Mutant == ServeBeforeAnswer {
		s.lead(p, p.Epoch+1, Config{Primary: p.ID})
	}
	emit(act, &s)
}

// shrink: a primary that suspects some members stops acknowledging and proposes the
// others.
func (m *Spec) shrink(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Prop != None || p.Closed {
		return
	}
	for drop := pods(1); drop < 1<<maxPods; drop++ {
		cost, ok := uint8(0), true
		for pod := range maxPods {
			if drop.has(pod) {
				ok = ok && was.member(p, pod)
				cost += was.suspicion(p.Epoch, p.Peers[pod].ID)
			}
		}
		if !ok || was.Faults+cost > m.Faults {
			continue
		}
		s := *was
		p := &s.Procs[i]
		s.Faults += cost
		p.Suspended = true
		s.propose(p, Shrink, drop)
		emit(Action{Kind: actShrink, P: p.ID, N: cost, E: p.Epoch, Next: s.proposal(p)}, &s)
	}
}

// suspicion is the cost of suspecting a process: a fault, if it is in this epoch and would
// answer. A process that is itself suspecting does not answer for long.
func (s *State) suspicion(epoch uint8, id ID) uint8 {
	q := s.proc(id)
	if q == nil || q.Epoch > epoch || q.Epoch == epoch && (q.Role == Fenced || q.Prop == Shrink) {
		return 0
	}
	return 1
}

// join: a learner registers. Its entries are kept if the primary has the same.
func (m *Spec) join(was *State, i int, emit emitter) {
	q := &was.Procs[i]
	if q.Role != Learner || q.Epoch == 0 {
		return
	}
	p := was.serving(q.Epoch)
	if p == nil || !m.place(was, p, q) {
		return
	}
	s := *was
	q, p = &s.Procs[i], s.proc(p.ID)
	act := Action{Kind: actJoin, P: q.ID, Q: p.ID, N: q.Log.Len()}
	if !q.Log.StartOf(p.Log) && !m.trustsLengths() || q.Log.Len() > p.Log.Len() {
		act.Kind = actDiscard
		s.restart(q)
		act.Next.Primary = q.ID
	} else {
		pod := podOf(q.ID)
		if p.Peers[pod].ID != q.ID {
			p.Peers[pod] = Peer{ID: q.ID}
			s.Acked[p.Epoch][pod] = 0
		}
		p.Peers[pod].Stored = q.Log.Len()
	}
	emit(act, &s)
}

// place reports whether a primary accepts a learner: one is missing, and no other process
// of its pod is a member or may be one by now. The learner it replaces is dead, by the
// pod's new process.
func (m *Spec) place(s *State, p, learner *Proc) bool {
	pod, n := podOf(learner.ID), uint8(1)
	for k := range p.Peers {
		if k != pod && p.Peers[k].ID != 0 {
			n++
		}
	}
	known := &p.Peers[pod]
	if known.ID == learner.ID { // it continues with a primary that stayed
		return !s.member(p, pod) && known.Stored < learner.Log.Len()
	}
	busy := known.ID != 0 && (s.member(p, pod) || p.Prop == Admit && p.Of.has(pod))
	return !busy && n < m.Members && m.wanted(s, pod)
}

// dropLearner: a learner that does not answer is dropped, unless it may be a member by
// now.
func (m *Spec) dropLearner(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary {
		return
	}
	for pod, q := range p.Peers {
		cost := was.suspicion(p.Epoch, q.ID)
		if !m.wanted(was, pod) {
			cost = 0 // it is released
		}
		if q.ID == 0 || was.member(p, pod) || p.Prop == Admit && p.Of.has(pod) || was.Faults+cost > m.Faults {
			continue
		}
		s := *was
		s.Faults += cost
		s.Procs[i].Peers[pod] = Peer{}
		emit(Action{Kind: actDropLearner, P: p.ID, Q: q.ID, N: cost}, &s)
	}
}

// enterAckSet: from here on commits wait for the learner.
func (m *Spec) enterAckSet(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Suspended {
		return
	}
	for pod, q := range p.Peers {
		if q.ID != 0 && !q.Acks && m.wanted(was, pod) {
			s := *was
			s.Procs[i].Peers[pod].Acks = true
			emit(Action{Kind: actEnterAckSet, P: p.ID, Q: q.ID}, &s)
		}
	}
}

// admit: a learner in the ack set that stores all committed entries is proposed. Entries
// the primary took over may have been committed by its predecessor.
func (m *Spec) admit(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Prop != None || p.Closed {
		return
	}
	for pod, q := range p.Peers {
		switch {
		case q.ID == 0 || was.member(p, pod) || !m.wanted(was, pod):
		case !q.Acks && m.Mutant != AdmitBeforeAckSet:
		case q.Stored < p.Commit || q.Stored < p.Floor && m.Mutant != AdmitBelowFloor:
		default:
			m.voluntary(was, i, Admit, pod, emit)
		}
	}
}

// close: a primary that learns that its hand-over was accepted takes no more orders, and
// stays primary until all its entries are committed.
func (m *Spec) close(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Closed || was.Epoch == p.Epoch || !was.handsOver(p.Epoch) {
		return
	}
	s := *was
	s.Procs[i].Closed, s.Procs[i].Prop, s.Procs[i].Of = true, None, 0
	emit(Action{Kind: actClose, P: p.ID, E: p.Epoch + 1}, &s)
}

// handsOver reports whether the change after an epoch is a hand-over.
func (s *State) handsOver(epoch uint8) bool {
	now, next := &s.Config[epoch], &s.Config[epoch+1]
	return next.Primary != 0 && now.Primary != 0 && next.Primary != now.Primary && next.has(now.Primary)
}

// holds reports whether a process may not adopt the next epoch yet. In a hand-over the
// primary of the old epoch first commits all its entries, or a member that it waits for is
// dead; the others wait for the primary, while it lives.
func (m *Spec) holds(s *State, p *Proc) bool {
	if p.Epoch == 0 || !s.handsOver(p.Epoch) || m.Mutant == HandOverUnheld || m.Mutant == LeaseInHandOver {
		return false
	}
	c := &s.Config[p.Epoch]
	if p.Role == Primary && p.ID == c.Primary {
		return m.Mutant != HandOverUndrained && (!p.Closed || p.Log.Len() != p.Commit && !s.memberGone(p))
	}
	former := s.proc(c.Primary)
	return former != nil && former.Epoch == p.Epoch && p.Role != Fenced
}

// memberGone reports whether a member of a primary's epoch will no longer acknowledge in
// it.
func (s *State) memberGone(p *Proc) bool {
	for pod := range p.Peers {
		if q := s.proc(p.Peers[pod].ID); s.member(p, pod) && (q == nil || q.Epoch > p.Epoch || q.Role == Fenced) {
			return true
		}
	}
	return false
}

// allKnow reports whether every member has answered a primary in its epoch: one that had
// not could skip it, and would not wait in a hand-over after it.
func (s *State) allKnow(p *Proc) bool {
	for pod := range p.Peers {
		if s.member(p, pod) && s.Acked[p.Epoch][pod] == 0 {
			return false
		}
	}
	return true
}

// handOver: a member is proposed as the primary, while the present one serves: every
// member has what is committed in this epoch.
func (m *Spec) handOver(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Closed || p.Prop != None || was.HandOvers == m.HandOvers || !was.allKnow(p) {
		return
	}
	for pod := range p.Peers {
		if was.member(p, pod) {
			s := *was
			s.HandOvers++
			m.voluntary(&s, i, HandOver, pod, emit)
		}
	}
}

// retire: a stopping member is removed while it still acknowledges, and is waited for
// until that is decided.
func (m *Spec) retire(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Closed || p.Prop != None || was.Retires == m.Retires {
		return
	}
	for pod := range p.Peers {
		if was.member(p, pod) {
			s := *was
			s.Retires++
			m.voluntary(&s, i, Retire, pod, emit)
		}
	}
}

func (m *Spec) voluntary(was *State, i int, why Purpose, pod int, emit emitter) {
	s := *was
	p := &s.Procs[i]
	s.propose(p, why, 1<<pod)
	emit(Action{Kind: actPropose, P: p.ID, N: uint8(why), E: p.Epoch, Next: s.proposal(p)}, &s)
}

func (s *State) propose(p *Proc, why Purpose, of pods) {
	p.Prop, p.Of = why, of
	s.put(p.Epoch, s.proposal(p))
}

// proposal is what a process has proposed.
func (s *State) proposal(p *Proc) Config {
	c := s.Config[p.Epoch]
	for pod := range maxPods {
		switch {
		case p.Prop == TakeOver:
			c = Config{Primary: p.ID}
		case !p.Of.has(pod):
		case p.Prop == Admit:
			c.Others[pod] = p.Peers[pod].ID
		case p.Prop == HandOver:
			c.Primary, c.Others[pod] = c.Others[pod], 0
			c.Others[podOf(p.ID)] = p.ID
		default:
			c.Others[pod] = 0
		}
	}
	return c
}

// refused: the arbiter rejects the only attempt ever made: it has not happened and never
// will, so its proposer may forget it. After any other answer, or none, it cannot: it
// waits until the epoch moves.
func (m *Spec) refused(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Prop != Admit && p.Prop != HandOver && p.Prop != Retire || p.Epoch != was.Epoch {
		return
	}
	s := *was
	p = &s.Procs[i]
	if !s.removePut(s.proposal(p)) {
		return
	}
	p.Prop, p.Of = None, 0
	emit(Action{Kind: actRefused, P: p.ID}, &s)
}

// forget is an action of mutants only: a proposer without an answer continues in its old
// epoch as if it had proposed nothing; or it waits for a request that was lost.
func (m *Spec) forget(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	lost := m.Mutant == NeverRepeats
	if p.Prop == None || !lost && m.Mutant != ForgetTimedOut && (m.Mutant != ForgetTakeOver || p.Prop != TakeOver) {
		return
	}
	s := *was
	p = &s.Procs[i]
	if lost {
		if p.Epoch == s.Epoch && s.removePut(s.proposal(p)) {
			emit(Action{Kind: actLost, P: p.ID}, &s)
		}
		return
	}
	if p.Role == Fenced {
		p.Role = Backup
	}
	p.Prop, p.Of, p.Closed, p.Suspended = None, 0, false, false
	emit(Action{Kind: actForget, P: p.ID, E: p.Epoch}, &s)
}
