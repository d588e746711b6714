package model

// Faults. A lost, late or doubled message, a paused process, an arbiter that is
// away, answers late or never: these cost nothing here, since every action may
// happen at any time or not at all. What is counted: a crash, a pod replaced while
// its process runs on, and the suspicion of a process that is well (suspicion).

const maxBorn = 6 // restarts of a pod

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
	} else if !s.restart(p) {
		return
	}
	emit(Action{Kind: actCrash, P: id, Q: p.ID}, &s)
}

// replace: a pod is deleted by force and made again under its name, while its old
// process runs on somewhere.
func (m *Spec) replace(was *State, i int, emit emitter) {
	if was.Faults == m.Faults || !m.Replace || was.Procs[maxProcs-1].ID != 0 {
		return
	}
	s := *was
	pod := podOf(s.Procs[i].ID)
	if s.Born[pod] == maxBorn {
		return
	}
	s.Faults++
	s.Born[pod]++
	q := Proc{ID: idOf(pod, s.Born[pod])}
	for k := range s.Procs {
		if s.Procs[k].ID == 0 {
			s.Procs[k] = q
			break
		}
	}
	emit(Action{Kind: actReplace, P: s.Procs[i].ID, Q: q.ID}, &s)
}
