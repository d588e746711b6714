package model

// The path of an order, and of a read.

// submit: a primary takes an order. It is under way to the peer at once.
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

// store: a backup or a learner stores the next entry its primary sent in its own
// epoch, and acknowledges all it has.
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
	if from != nil && from.Peer != p.ID {
		return // nothing is sent to a learner before it has joined
	}
	s := *was
	p = &s.Procs[i]
	p.Log = p.Log.Append(uint8(log>>(2*p.Log.Len())) & 3)
	if from != nil || s.Config[p.Epoch].Other == p.ID {
		s.ack(p)
	}
	emit(Action{Kind: actStore, P: p.ID, N: p.Log.Len(), E: p.Epoch}, &s)
}

// ack sends an acknowledgement of everything stored.
func (s *State) ack(p *Proc) {
	s.Acked[p.Epoch] = max(s.Acked[p.Epoch], p.Log.Len()+1)
}

// receiveAck: an acknowledgement of the primary's own epoch arrives, any that
// was sent.
func (m *Spec) receiveAck(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Peer == 0 {
		return
	}
	for n := p.Stored + 1; n < was.Acked[p.Epoch] && n <= p.Log.Len(); n++ {
		s := *was
		p := &s.Procs[i]
		p.Stored = n
		emit(Action{Kind: actReceiveAck, P: p.ID, Q: p.Peer, N: n}, &s)
	}
}

// commit: what the whole ack set stored is committed, and its clients are told.
func (m *Spec) commit(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Suspended && m.Mutant != CommitWhileShrinking {
		return
	}
	n := p.Log.Len()
	if p.PeerAcks && m.waitsForPeer(p) {
		n = p.Stored
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

func (m *Spec) waitsForPeer(p *Proc) bool {
	switch m.Mutant {
	case AckBeforeBackup:
		return false
	case CommitWhileShrinking:
		return !p.Suspended
	case RetireDropsFirst:
		return p.Prop != Retire
	}
	return true
}

// reads says whether a primary takes reads at all.
func (m *Spec) reads(p *Proc) bool {
	return p.Role == Primary && (p.Commit >= p.Floor || m.Mutant == ReadBeforeFloor)
}

// behind says whether clients were told more than a primary has committed.
func (s *State) behind(p *Proc) bool { return p.Commit < s.Known.Len() }

// readsAlone says whether a primary answers reads at once: it is alone, or its
// peer's promise stands. Not while it waits for the arbiter, and not during a
// hand-over: the peer may begin without waiting for the promise to run out.
func (m *Spec) readsAlone(p *Proc) bool {
	if !m.reads(p) || p.Suspended || (p.Closed || p.Prop == HandOver) && m.Mutant != LeaseInHandOver {
		return false
	}
	return !p.PeerAcks || p.Lease
}

// read: a confirmed read arrives that would be wrong if it were answered.
func (m *Spec) read(was *State, i int, emit emitter) {
	if p := &was.Procs[i]; !m.reads(p) || p.Read != NoRead || !p.PeerAcks || !was.behind(p) {
		return
	}
	s := *was
	p := &s.Procs[i]
	p.Read = Stale
	emit(Action{Kind: actRead, P: p.ID, N: p.Commit, E: p.Epoch}, &s)
}

// echo: the peer answers what was sent after the read arrived, in the epoch of
// the primary, and the answer arrives.
func (m *Spec) echo(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	if p.Role != Primary || p.Read != Stale || p.Suspended || !m.echoes(was, p) {
		return
	}
	s := *was
	p = &s.Procs[i]
	p.Read = Answered
	s.Broken = I4
	emit(Action{Kind: actEcho, P: p.ID, Q: p.Peer, E: p.Epoch}, &s)
}

func (m *Spec) echoes(s *State, p *Proc) bool {
	if m.Mutant == OldEcho && s.Acked[p.Epoch] != 0 {
		return true // something it sent in this epoch, whenever that was
	}
	q := s.proc(p.Peer)
	switch {
	case !p.PeerAcks:
		return true // alone by now
	case q == nil:
		return false
	case m.Mutant == AnswerOldEpoch && q.Epoch > p.Epoch:
		return true
	}
	return q.Epoch == p.Epoch && (q.Role == Backup || q.Role == Learner)
}

// promises says whether the peer of a primary answers its beacons now, each
// answer being a promise not to take over before a lease has run out.
func (m *Spec) promises(s *State, p *Proc) bool {
	q := s.proc(p.Peer)
	return p.PeerAcks && q != nil && q.Epoch == p.Epoch &&
		(q.Role == Backup || q.Role == Learner || q.Role == Fenced && m.Mutant == PromiseAfterFencing)
}
