package model

// Changes of the configuration: who proposes what, and when.

// takeOver: a backup that hears nothing of its primary gives its epoch up, waits
// until what it promised has run out, and proposes itself alone.
func (m *Spec) takeOver(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	may := p.Role == Backup || m.Mutant == LearnerTakesOver && p.Role == Learner && p.Epoch > 0
	cost := m.suspicion(was, p.Epoch, was.Config[p.Epoch].Primary)
	if !may || p.Prop != None || was.Faults+cost > m.Faults {
		return
	}
	s := *was
	p = &s.Procs[i]
	s.Faults += cost
	p.Role, p.Prop = Fenced, TakeOver
	for k := range s.Procs {
		q := &s.Procs[k]
		forgot := m.Mutant == LeaseForgotten && q.Epoch < p.Epoch // nothing was heard of it in this epoch
		if q.Peer == p.ID && !forgot && m.Mutant != LeaseNotWaitedOut {
			q.Lease = false
		}
	}
	s.put(p.Epoch, Config{Primary: p.ID})
	if m.Mutant == ServeBeforeAnswer {
		s.lead(p, p.Epoch+1, Config{Primary: p.ID})
	}
	emit(Action{Kind: actTakeOver, P: p.ID, N: cost, E: p.Epoch}, &s)
}

// shrink: a primary that hears nothing of its peer stops acknowledging and
// proposes itself alone.
func (m *Spec) shrink(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	cost := m.suspicion(was, p.Epoch, p.Peer)
	if p.Role != Primary || p.Prop != None || !was.inSync(p) || was.Faults+cost > m.Faults {
		return
	}
	s := *was
	p = &s.Procs[i]
	s.Faults += cost
	p.Suspended, p.Closed, p.Lease, p.Prop = true, false, false, Shrink
	s.put(p.Epoch, Config{Primary: p.ID})
	emit(Action{Kind: actShrink, P: p.ID, N: cost, E: p.Epoch}, &s)
}

// suspicion is what it costs to suspect a process: a fault, if it is there in
// this epoch and would answer. One that suspects me does not answer.
func (m *Spec) suspicion(s *State, epoch uint8, id ID) uint8 {
	q := s.proc(id)
	if q == nil || q.Epoch > epoch || q.Epoch == epoch && (q.Role == Fenced || q.Prop == Shrink) {
		return 0
	}
	return 1
}

// join: a learner registers. What it stores is kept if the primary has the same.
func (m *Spec) join(was *State, i int, emit emitter) {
	q := &was.Procs[i]
	if q.Role != Learner || q.Epoch == 0 {
		return
	}
	p := was.serving(q.Epoch)
	if p == nil || p.Peer == q.ID || was.Config[p.Epoch].Other != 0 {
		return
	}
	if p.Peer != 0 && (podOf(p.Peer) != podOf(q.ID) || p.Prop == Admit) {
		return // there is one already
	}
	s := *was
	q, p = &s.Procs[i], s.proc(p.ID)
	act := Action{Kind: actJoin, P: q.ID, Q: p.ID, N: q.Log.Len()}
	if !q.Log.StartOf(p.Log) && !m.trustsLengths() || q.Log.Len() > p.Log.Len() {
		act.Kind = actDiscard
		if !s.restart(q) {
			return
		}
	} else {
		p.setPeer(q.ID, q.Log.Len())
		s.Acked[p.Epoch] = 0
	}
	emit(act, &s)
}

func (p *Proc) setPeer(id ID, stored uint8) {
	p.Peer, p.Stored, p.PeerAcks, p.Lease = id, stored, false, false
}

// dropLearner: a learner that does not answer goes, unless it may be a member by
// now.
func (m *Spec) dropLearner(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Peer == 0 || was.inSync(p) || p.Prop == Admit {
		return
	}
	cost := m.suspicion(was, p.Epoch, p.Peer)
	if was.Faults+cost > m.Faults {
		return
	}
	s := *was
	p = &s.Procs[i]
	s.Faults += cost
	act := Action{Kind: actDropLearner, P: p.ID, Q: p.Peer, N: cost}
	p.setPeer(0, 0)
	emit(act, &s)
}

// enterAckSet: from here on nothing is committed without the learner.
func (m *Spec) enterAckSet(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Peer == 0 || p.PeerAcks {
		return
	}
	s := *was
	p = &s.Procs[i]
	p.PeerAcks = true
	emit(Action{Kind: actEnterAckSet, P: p.ID, Q: p.Peer}, &s)
}

// admit: a learner in the ack set that stores all that was committed is proposed.
// What the primary took over may have been committed by the one before.
func (m *Spec) admit(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Peer == 0 || was.inSync(p) || p.Prop != None ||
		!p.PeerAcks && m.Mutant != AdmitBeforeAckSet {
		return
	}
	if p.Stored < p.Commit || p.Stored < p.Floor && m.Mutant != AdmitBelowFloor {
		return
	}
	m.propose(was, i, Admit, Config{Primary: p.ID, Other: p.Peer}, emit)
}

// close: a primary that is to hand over takes no more orders.
func (m *Spec) close(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Closed || p.Prop != None || !was.inSync(p) || was.HandOvers == m.HandOvers {
		return
	}
	s := *was
	p = &s.Procs[i]
	p.Closed = true
	emit(Action{Kind: actClose, P: p.ID, Q: p.Peer}, &s)
}

// reopen: a hand-over that was not proposed is given up.
func (m *Spec) reopen(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || !p.Closed || p.Prop != None {
		return
	}
	s := *was
	p = &s.Procs[i]
	p.Closed = false
	emit(Action{Kind: actReopen, P: p.ID}, &s)
}

// handOver: everything taken is committed, so the peer has it all: it is proposed
// as the primary.
func (m *Spec) handOver(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || !p.Closed || p.Prop != None || was.HandOvers == m.HandOvers ||
		p.Log.Len() != p.Commit && m.Mutant != HandOverUndrained {
		return
	}
	was2 := *was
	was2.HandOvers++
	m.propose(&was2, i, HandOver, Config{Primary: p.Peer, Other: p.ID}, emit)
}

// retire: a peer that is about to stop is dropped while it still acknowledges,
// and is waited for until that is decided.
func (m *Spec) retire(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Closed || p.Prop != None || !was.inSync(p) || was.Retires == m.Retires {
		return
	}
	was2 := *was
	was2.Retires++
	m.propose(&was2, i, Retire, Config{Primary: p.ID}, emit)
}

func (m *Spec) propose(was *State, i int, why Purpose, c Config, emit emitter) {
	s := *was
	p := &s.Procs[i]
	p.Prop = why
	s.put(p.Epoch, c)
	emit(Action{Kind: actPropose, P: p.ID, N: uint8(why), E: p.Epoch, Next: c}, &s)
}

// proposal is what a process has proposed.
func (p *Proc) proposal() Config {
	switch p.Prop {
	case Admit:
		return Config{Primary: p.ID, Other: p.Peer}
	case HandOver:
		return Config{Primary: p.Peer, Other: p.ID}
	}
	return Config{Primary: p.ID}
}

// refused: the arbiter says no to the only attempt ever made: it has not happened
// and never will, and the proposer, who gave nothing up for it, may forget it.
// After any other answer, or none, it cannot: it waits until the epoch moves.
func (m *Spec) refused(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Prop != Admit && p.Prop != HandOver && p.Prop != Retire || p.Epoch != was.Epoch {
		return
	}
	s := *was
	p = &s.Procs[i]
	if !s.removePut(p.proposal()) {
		return
	}
	p.Prop, p.Closed = None, false
	emit(Action{Kind: actRefused, P: p.ID}, &s)
}

// forget is no action of the protocol: a proposer that got no answer goes on in
// its old epoch as if it had proposed nothing.
func (m *Spec) forget(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if m.Mutant != ForgetTimedOut && (m.Mutant != ForgetTakeOver || p.Prop != TakeOver) || p.Prop == None {
		return
	}
	s := *was
	p = &s.Procs[i]
	if p.Role == Fenced {
		p.Role = Backup
	}
	p.Prop, p.Closed, p.Suspended = None, false, false
	emit(Action{Kind: actForget, P: p.ID, E: p.Epoch}, &s)
}
