package model

import "fmt"

// Bounds of a run. Within them every behaviour is tried.
type Bounds struct {
	Orders    uint8 // taken in all, 0..3
	Faults    uint8 // crashes, replaced pods and false suspicions in all, 0..3
	HandOvers uint8 // proposed in all, 0..3
	Retires   uint8 // proposed in all, 0..3
	Replace   bool  // a fault may be a pod replaced while its old process runs on
}

// Spec is the protocol, or a mutant of it, within bounds.
type Spec struct {
	Bounds
	Mutant Mutant
}

// Check says what is wrong with the bounds.
func (b Bounds) Check() error {
	for _, f := range []struct {
		name  string
		value uint8
	}{{"orders", b.Orders}, {"faults", b.Faults}, {"hand-overs", b.HandOvers}, {"retires", b.Retires}} {
		if f.value > 3 {
			return fmt.Errorf("%s is %d, allowed: 0..3", f.name, f.value)
		}
	}
	return nil
}

func (b Bounds) String() string {
	return fmt.Sprintf("2 members, %d orders, %d faults (replaced pods: %t), %d hand-overs, %d retirements", b.Orders, b.Faults, b.Replace, b.HandOvers, b.Retires)
}

type emitter func(Action, *State)

// next calls emit with every action that can happen and the state after it,
// settled.
func (m *Spec) next(s *State, to emitter) {
	emit := func(a Action, t *State) {
		m.settle(t)
		to(a, t)
	}
	m.land(s, emit)
	for i := range s.Procs {
		if s.Procs[i].ID == 0 {
			break
		}
		for _, act := range [...]func(*Spec, *State, int, emitter){
			(*Spec).submit, (*Spec).store, (*Spec).receiveAck, (*Spec).commit, (*Spec).read, (*Spec).echo,
			(*Spec).learn, (*Spec).join, (*Spec).enterAckSet, (*Spec).admit, (*Spec).dropLearner,
			(*Spec).takeOver, (*Spec).shrink, (*Spec).close, (*Spec).reopen, (*Spec).handOver, (*Spec).retire,
			(*Spec).refused, (*Spec).forget, (*Spec).crash, (*Spec).replace,
		} {
			act(m, s, i, emit)
		}
	}
}

// settle makes a state canonical: what nothing can come of any more is cleared,
// so that states that differ in it only are one. Promises are taken to be given
// as soon as they can be: a lease that is held and not used harms nobody.
func (m *Spec) settle(s *State) {
	s.sortProcs()
	base := s.Epoch
	for i := range s.Procs {
		p := &s.Procs[i]
		if p.Role == Primary {
			m.settlePrimary(s, p)
		}
		if p.ID != 0 && p.Epoch != 0 {
			base = min(base, p.Epoch)
		}
	}
	if base > 1 {
		s.cutOff(base - 1)
	}
	for e := uint8(1); e <= s.Epoch; e++ {
		if p := s.primaryOf(e); p == nil || p.Epoch > e {
			s.Acked[e] = 0 // nobody will read them
		}
		if s.serving(e) != nil || !s.awaited(e) {
			s.Sent[e] = 0
		}
	}
}

func (m *Spec) settlePrimary(s *State, p *Proc) {
	if m.promises(s, p) {
		p.Lease = true
	}
	if !p.PeerAcks || p.Suspended {
		p.Lease = false // of no use
	}
	if !s.behind(p) {
		p.Read = NoRead
	}
}

// awaited says whether somebody can still store what was sent in an epoch.
func (s *State) awaited(e uint8) bool {
	for i := range s.Procs {
		p := &s.Procs[i]
		if p.ID != 0 && p.ID != s.Config[e].Primary && p.Epoch <= e && (p.Epoch == e || p.Epoch != 0 || s.Config[e].Other == p.ID) {
			return true
		}
	}
	return false
}

// cutOff forgets the first n epochs, which no process is in, and counts from
// there: the protocol compares epochs, and does nothing else with them.
func (s *State) cutOff(n uint8) {
	for e := uint8(1); e <= maxEpochs; e++ {
		if e+n <= maxEpochs {
			s.Config[e], s.Sent[e], s.Acked[e] = s.Config[e+n], s.Sent[e+n], s.Acked[e+n]
		} else {
			s.Config[e], s.Sent[e], s.Acked[e] = Config{}, 0, 0
		}
	}
	for i := range s.Procs {
		if p := &s.Procs[i]; p.Epoch != 0 {
			p.Epoch -= n
		}
	}
	s.Epoch -= n
	s.shift += n
}

func (s *State) sortProcs() {
	for i := 1; i < maxProcs; i++ {
		for k := i; k > 0 && s.Procs[k].ID != 0 && (s.Procs[k-1].ID == 0 || s.Procs[k].ID < s.Procs[k-1].ID); k-- {
			s.Procs[k], s.Procs[k-1] = s.Procs[k-1], s.Procs[k]
		}
	}
	for i := 1; i < maxPuts; i++ {
		for k := i; k > 0 && s.Puts[k].Primary != 0 && (s.Puts[k-1].Primary == 0 || less(s.Puts[k], s.Puts[k-1])); k-- {
			s.Puts[k], s.Puts[k-1] = s.Puts[k-1], s.Puts[k]
		}
	}
}

func less(a, b Config) bool {
	return a.Primary < b.Primary || a.Primary == b.Primary && a.Other < b.Other
}
