package model

// Faults. A lost, late or duplicated message, a paused process, an arbiter that is
// unavailable, answers late or never: these are free here, since every action may happen
// at any time or not at all. Counted are: a crash, a pod replaced while its process keeps
// running, and the suspicion of a healthy process (suspicion).

// crash: a process dies with all its entries, and its pod starts the next one.
func (m *Spec) crash(was *State, i int, emit emitter) {
	if was.Faults == m.Faults {
		return
	}
	s := *was
	p := &s.Procs[i]
	id := p.ID
	s.Faults++
	s.leave(p)
	if m.Mutant == KeepsMembership {
		*p = Proc{ID: id}
	} else {
		s.restart(p)
	}
	emit(Action{Kind: actCrash, P: id, Q: p.ID}, &s)
}

// replace: a pod is force-deleted and recreated under its name, while its old process
// keeps running.
func (m *Spec) replace(was *State, i int, emit emitter) {
	if was.Faults == m.Faults || !m.Replace {
		return
	}
	if was.Procs[maxProcs-1].ID != 0 {
		panic(tooSmall("more live processes than maxProcs"))
	}
	s := *was
	s.Faults++
	old := s.Procs[i].ID
	s.Procs[maxProcs-1] = Proc{ID: s.born(podOf(old))}
	emit(Action{Kind: actReplace, P: old, Q: s.Procs[maxProcs-1].ID}, &s)
}
