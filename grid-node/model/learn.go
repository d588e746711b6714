package model

import "slices"

// The arbiter, and how its answers affect a process.

// land: the arbiter accepts a change based on the current record, at once or long after
// its proposer stopped waiting for the answer. All others based on the same record
// conflict from now on.
func (m *Spec) land(was *State, emit emitter) {
	for i, c := range was.Puts {
		if c.Primary == 0 {
			break
		}
		if !was.record().has(c.Primary) && m.Mutant != LearnerTakesOver {
			continue // the rule: the new primary was in sync
		}
		if int(was.Epoch) == maxEpochs {
			panic(tooSmall("more epochs than maxEpochs between the oldest process and the record"))
		}
		s := *was
		if !m.moveHolds(was, c) {
			s.Broken = I19
		}
		if s.Puts = [maxPuts]Config{}; m.Mutant == BlindPut {
			s.Late = was.Puts[(i+1)%maxPuts]
		}
		s.Epoch++
		s.Config[s.Epoch] = c
		if !s.electableHaveAll() {
			s.Broken = I10
		}
		emit(Action{Kind: actLand, E: s.Epoch, Next: c}, &s)
	}
	if c := was.Late; c.Primary != 0 { // made for the epoch that is taken
		s := *was
		s.Config[s.Epoch], s.Late = c, Config{}
		emit(Action{Kind: actLand, E: s.Epoch, Next: c}, &s)
	}
}

// learn: a process learns of a configuration: the answer to its proposal, a read, a watch
// that may lag, the primary's message. It may be any later one, not only the present; an
// earlier one is ignored.
func (m *Spec) learn(was *State, i int, emit emitter) {
	p := &was.Procs[i]
	from := p.Epoch + 1
	if m.Mutant == OlderRecord {
		from = 1
	}
	for e := from; e <= was.Epoch; e++ {
		c := was.Config[e]
		if c.Primary == 0 || e == p.Epoch || p.Role == Learner && !c.has(p.ID) && !was.useful(e) || e == p.Epoch+1 && m.holds(was, p) {
			continue
		}
		s := *was
		if e < p.Epoch {
			s.Broken = I1 // epochs only rise
		}
		s.adopt(&s.Procs[i], e, m)
		act := Action{Kind: actLearn, P: p.ID, E: e, Next: c}
		if now := s.Procs[i].ID; now != p.ID {
			act.Q = now
		}
		emit(act, &s)
	}
}

// useful reports whether an outsider can act in an epoch: its primary may still arrive or
// be there, or it is the present one. Others may be skipped.
func (s *State) useful(epoch uint8) bool {
	p := s.primaryOf(epoch)
	return epoch == s.Epoch || p != nil && p.Epoch <= epoch
}

// adopt makes the configuration of an epoch that of a process.
func (s *State) adopt(p *Proc, epoch uint8, m *Spec) {
	c := s.Config[epoch]
	s.leave(p)
	s.noteCut(p, epoch, m)
	switch {
	case c.Primary == p.ID:
		s.lead(p, epoch, c)
	case c.has(p.ID):
		s.follow(p, epoch, Backup)
		s.ack(p)
	case p.Role == Learner || m.trustsLengths():
		s.follow(p, epoch, Learner)
	default: // it was dropped: its entries may be uncommitted
		s.restart(p)
	}
}

// leave keeps the messages a process has sent in the epoch it leaves.
func (s *State) leave(p *Proc) {
	if p.Role == Primary {
		s.Sent[p.Epoch] = p.Log
	}
}

// noteCut marks the next epoch if it begins with a hand-over that was cut short: the
// former primary leaves before all its entries are committed, or the new one starts
// without the former's notification.
func (s *State) noteCut(p *Proc, epoch uint8, m *Spec) {
	if p.Epoch == 0 || epoch != p.Epoch+1 || !s.handsOver(p.Epoch) || m.Mutant == HandOverUndrained || m.Mutant == HandOverUnheld {
		return
	}
	former := s.proc(s.Config[p.Epoch].Primary)
	leaves := p.Role == Primary && p.Log.Len() != p.Commit
	untold := p.ID == s.Config[epoch].Primary && (former == nil || former.Epoch == p.Epoch)
	if leaves || untold {
		s.Cut[epoch] = true
	}
}

// follow makes a process a backup or a learner of an epoch.
func (s *State) follow(p *Proc, epoch uint8, role Role) {
	*p = Proc{ID: p.ID, Role: role, Epoch: epoch, Log: p.Log, Cut: p.Cut || slices.Contains(s.Cut[p.Epoch:epoch+1], true)}
}

// lead makes a process the primary of an epoch. After its own changes it keeps the state
// of its peers: logs are never truncated. A learner enters the ack set anew.
func (s *State) lead(p *Proc, epoch uint8, c Config) {
	was := *p
	*p = Proc{ID: was.ID, Role: Primary, Epoch: epoch, Log: was.Log, Floor: was.Log.Len()}
	if was.Role == Primary {
		p.Commit, p.Floor, p.Read = was.Commit, was.Floor, was.Read
	}
	for pod := range p.Peers {
		known := was.Peers[pod]
		switch {
		case c.Others[pod] == 0 && known.ID != 0 && !s.member(&was, pod):
			p.Peers[pod] = Peer{ID: known.ID, Stored: known.Stored}
		case c.Others[pod] == 0:
		case known.ID == c.Others[pod]:
			p.Peers[pod] = known
			p.Peers[pod].Acks = true
		default:
			p.Peers[pod] = Peer{ID: c.Others[pod], Acks: true}
		}
	}
}

// restart ends a process and starts the next incarnation of its pod, empty. If the pod was
// replaced already, there is one.
func (s *State) restart(p *Proc) {
	for i := range s.Procs {
		if id := s.Procs[i].ID; id > p.ID && podOf(id) == podOf(p.ID) {
			*p = Proc{}
			return
		}
	}
	*p = Proc{ID: s.born(podOf(p.ID))}
}

// born returns a new incarnation of a pod.
func (s *State) born(pod int) ID {
	if s.Born[pod] == maxBorn {
		panic(tooSmall("more incarnations of a pod than maxBorn"))
	}
	s.Born[pod]++
	s.renamed.born[pod] = s.Born[pod]
	return idOf(pod, s.Born[pod])
}

// tooSmall is a state that exceeds the sizes of State: the run ends with an error rather
// than skip it silently.
type tooSmall string
