package model

// Faults. A lost, late or doubled message, a paused process, an arbiter that is
// away, answers late or never: these cost nothing here, since every action may
// happen at any time or not at all. What is counted: a crash, a pod replaced while
// its process runs on, and the suspicion of a process that is well (suspicion).

// crash: a process dies with all it stores, and its pod starts the next one.
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

// replace: a pod is deleted by force and made again under its name, while its old
// process runs on somewhere.
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
