package model

// The path of an order, and of a read.

// submit: a primary takes an order. It is in flight to the peer at once.
func (m *Spec) submit(was *State, i int, emit emitter) {
	if p := &was.Procs[i]; p.Role != Primary || p.Closed || was.Orders == m.Orders {
		return
	}
	s := *was
	p := &s.Procs[i]
	s.Orders++
	p.Log = p.Log.Append(s.Orders)
	emit(Action{Kind: actSubmit, P: p.ID, N: s.Orders}, &s)
}

// store: a backup or a learner stores the next entry its primary sent in its own epoch,
// and acknowledges everything it has.
func (m *Spec) store(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Backup && p.Role != Learner && (p.Role != Fenced || m.Mutant != StoreAfterFencing) || p.Epoch == 0 {
		return
	}
	log := was.sent(p.Epoch)
	if p.Log.Len() >= log.Len() || !p.Log.StartOf(log) && !m.trustsLengths() {
		return
	}
	from := was.serving(p.Epoch)
	if from != nil && from.Peers[podOf(p.ID)].ID != p.ID {
		return // nothing is sent to a learner before it has joined
	}
	s := *was
	p = &s.Procs[i]
	p.Log = p.Log.Append(uint8(log>>(2*p.Log.Len())) & 3)
	s.ack(p)
	emit(Action{Kind: actStore, P: p.ID, N: p.Log.Len(), E: p.Epoch}, &s)
}

// ack sends an acknowledgement of everything stored.
func (s *State) ack(p *Proc) {
	s.Acked[p.Epoch][podOf(p.ID)] = uint8(p.Log) + 1
}

// receiveAck: an acknowledgement of the primary's own epoch arrives, any that was sent.
func (m *Spec) receiveAck(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary {
		return
	}
	for pod, q := range p.Peers {
		acked := was.Acked[p.Epoch][pod]
		if q.ID == 0 || acked == 0 {
			continue
		}
		stored := Log(acked - 1)
		for n := q.Stored + 1; n <= min(stored.Len(), p.Log.Len()) && m.sameEntries(p.Log, stored, n); n++ {
			s := *was
			s.Procs[i].Peers[pod].Stored = n
			emit(Action{Kind: actReceiveAck, P: p.ID, Q: q.ID, N: n}, &s)
		}
	}
}

// sameEntries reports whether two logs have the same first n entries: an acknowledgement
// carries the hash of the stored log.
func (m *Spec) sameEntries(a, b Log, n uint8) bool {
	return m.trustsLengths() || a.Prefix(n) == b.Prefix(n)
}

// diverge: a backup whose log differs from its primary's exits. I6 states that this never
// happens.
func (m *Spec) diverge(was *State, i int, emit emitter) {
	q := &was.Procs[i]
	if q.Role != Backup {
		return
	}
	if p := was.serving(q.Epoch); p == nil || q.Log.StartOf(p.Log) {
		return
	}
	s := *was
	s.restart(&s.Procs[i])
	emit(Action{Kind: actDiverge, P: q.ID, Q: s.Procs[i].ID}, &s)
}

// commit: entries that the whole ack set stored are committed, and clients are notified.
func (m *Spec) commit(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Suspended && m.Mutant != CommitWhileShrinking {
		return
	}
	n := p.Log.Len()
	for pod := range p.Peers {
		if m.waitsFor(p, pod) {
			n = min(n, p.Peers[pod].Stored)
		}
	}
	if n <= p.Commit {
		return
	}
	s := *was
	p = &s.Procs[i]
	p.Commit = n
	told := p.Log.Prefix(n)
	switch {
	case s.Known.StartOf(told):
		s.Known = told
	case !told.StartOf(s.Known):
		s.Broken = I4 // two histories were acknowledged
	}
	emit(Action{Kind: actCommit, P: p.ID, N: n, E: p.Epoch}, &s)
}

// waitsFor reports whether commits wait for a peer.
func (m *Spec) waitsFor(p *Proc, pod int) bool {
	left := m.Mutant == AckBeforeBackup ||
		p.Of.has(pod) && (m.Mutant == CommitWhileShrinking && p.Prop == Shrink || m.Mutant == RetireDropsFirst && p.Prop == Retire)
	return p.Peers[pod].Acks && !left
}

// reads reports whether a primary takes reads at all.
func (m *Spec) reads(p *Proc) bool {
	return p.Role == Primary && (p.Commit >= p.Floor || m.Mutant == ReadBeforeFloor)
}

// behind reports whether clients know more than a primary has committed.
func (s *State) behind(p *Proc) bool { return p.Commit < s.Known.Len() }

// readsAlone reports whether a primary answers reads at once: it is alone, or it holds its
// peer's lease. Not while it waits for the arbiter, and not during a hand-over: the peer
// may start without waiting for the lease to expire.
func (m *Spec) readsAlone(p *Proc) bool {
	if !m.reads(p) || p.Suspended || (p.Closed || p.Prop == HandOver) && m.Mutant != LeaseInHandOver {
		return false
	}
	for _, q := range p.Peers {
		if q.Acks && !q.Lease {
			return false
		}
	}
	return true
}

// read: a confirmed read arrives that would be wrong if it were answered.
func (m *Spec) read(was *State, i int, emit emitter) {
	if p := &was.Procs[i]; !m.reads(p) || p.Read != NoRead || !was.behind(p) {
		return
	}
	s := *was
	p := &s.Procs[i]
	p.Read = Stale
	emit(Action{Kind: actRead, P: p.ID, N: p.Commit, E: p.Epoch}, &s)
}

// echo: a peer answers a message sent after the read arrived, in the epoch of the primary,
// and the answer arrives.
func (m *Spec) echo(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Read != Stale {
		return
	}
	for pod := range p.Peers {
		if q := &p.Peers[pod]; q.Acks && !q.Echoed && m.echoes(was, p, pod) {
			s := *was
			s.Procs[i].Peers[pod].Echoed = true
			emit(Action{Kind: actEcho, P: p.ID, Q: q.ID, E: p.Epoch}, &s)
		}
	}
}

func (m *Spec) echoes(s *State, p *Proc, pod int) bool {
	if m.Mutant == OldEcho && s.Acked[p.Epoch][pod] != 0 {
		return true // any message it sent in this epoch
	}
	q := s.proc(p.Peers[pod].ID)
	switch {
	case q == nil:
		return false
	case m.Mutant == AnswerOldEpoch && q.Epoch > p.Epoch:
		return true
	}
	return q.Epoch == p.Epoch && (q.Role == Backup || q.Role == Learner)
}

// answer: the whole ack set has echoed, so the read is answered. That is always a
// violation: only reads that would be wrong are followed.
func (m *Spec) answer(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Read != Stale || p.Suspended {
		return
	}
	for _, q := range p.Peers {
		if q.Acks && !q.Echoed {
			return
		}
	}
	s := *was
	s.Broken = I4
	emit(Action{Kind: actAnswer, P: p.ID, E: p.Epoch}, &s)
}

// promises reports whether a peer of a primary answers its beacons now; each answer is a
// promise not to take over before a lease has expired.
func (m *Spec) promises(s *State, p *Proc, pod int) bool {
	q := s.proc(p.Peers[pod].ID)
	return p.Peers[pod].Acks && q != nil && q.Epoch == p.Epoch &&
		(q.Role == Backup || q.Role == Learner || q.Role == Fenced && m.Mutant == PromiseAfterFencing)
}
