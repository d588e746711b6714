package model

import (
	"fmt"
	"slices"
)

// Bounds of a run. Within them every behaviour is tried.
type Bounds struct {
	Members   uint8 // of the partition, 2..3
	Orders    uint8 // taken in all, 0..3
	Faults    uint8 // crashes, replaced pods and false suspicions in all, 0..3
	HandOvers uint8 // proposed in all, 0..3
	Retires   uint8 // proposed in all, 0..3
	Moves     uint8 // changes of the pods that are to hold a copy, 0..3; of the members one more than copies. Not with hand-overs or retirements for other reasons
	Replace   bool  // a fault may be a pod replaced while its old process runs on
}

// Plan is what `make model` searches: more of one thing at the cost of another,
// so that all of it takes a minute or two.
var Plan = []Spec{
	{Bounds: Bounds{Members: 2, Orders: 3, Faults: 2, HandOvers: 1, Retires: 1}},
	{Bounds: Bounds{Members: 2, Orders: 3, Faults: 3, HandOvers: 1, Retires: 1}},
	{Bounds: Bounds{Members: 2, Orders: 3, Faults: 2, Replace: true}},
	{Bounds: Bounds{Members: 2, Orders: 2, Faults: 2, HandOvers: 1, Replace: true}},
	{Bounds: Bounds{Members: 2, Orders: 3, Faults: 2, HandOvers: 1, Retires: 1}, Mutant: HandOverUnheld},
	{Bounds: Bounds{Members: 3, Orders: 1, Faults: 2}},
	{Bounds: Bounds{Members: 3, Orders: 2, Faults: 1}},
	{Bounds: Bounds{Members: 3, Orders: 1, Faults: 1, HandOvers: 1}},
	{Bounds: Bounds{Members: 2, Orders: 2, Faults: 2, Moves: 2}},
	{Bounds: Bounds{Members: 3, Orders: 1, Faults: 1, Moves: 1}},
	{Bounds: Bounds{Members: 3, Orders: 2, Faults: 0, Moves: 2}},
}

// MoveBounds are enough to catch the mutants of a move.
var MoveBounds = Bounds{Members: 3, Orders: 1, Moves: 2}

// MutantBounds are enough to catch every mutant.
var MutantBounds = Bounds{Members: 2, Orders: 2, Faults: 1, HandOvers: 1, Retires: 1}

// Spec is the protocol, or a mutant of it, within bounds.
type Spec struct {
	Bounds
	Mutant Mutant
}

// Check returns why the bounds are invalid.
func (b Bounds) Check() error {
	if b.Members < 2 || b.Members > maxPods {
		return fmt.Errorf("members is %d, allowed: 2..%d", b.Members, maxPods)
	}
	for _, f := range []struct {
		name  string
		value uint8
	}{{"orders", b.Orders}, {"faults", b.Faults}, {"hand-overs", b.HandOvers}, {"retires", b.Retires}, {"moves", b.Moves}} {
		if f.value > 3 {
			return fmt.Errorf("%s is %d, allowed: 0..3", f.name, f.value)
		}
	}
	if b.Moves > 0 && b.HandOvers+b.Retires > 0 {
		return fmt.Errorf("moves is %d with %d hand-overs and %d retires, allowed: moves alone, which include their own", b.Moves, b.HandOvers, b.Retires)
	}
	return nil
}

func (b Bounds) String() string {
	return fmt.Sprintf("%d members, %d orders, %d faults (replaced pods: %t), %d hand-overs, %d retirements, %d moves", b.Members, b.Orders, b.Faults, b.Replace, b.HandOvers, b.Retires, b.Moves)
}

type emitter func(Action, *State)

// next calls emit with every possible action and the state after it, settled.
func (m *Spec) next(s *State, to emitter) {
	emit := func(a Action, t *State) {
		m.settle(t)
		to(a, t)
	}
	m.land(s, emit)
	m.move(s, emit)
	for i := range s.Procs {
		if s.Procs[i].ID == 0 {
			break
		}
		for _, act := range [...]func(*Spec, *State, int, emitter){
			(*Spec).submit, (*Spec).store, (*Spec).receiveAck, (*Spec).diverge, (*Spec).commit, (*Spec).read, (*Spec).echo, (*Spec).answer,
			(*Spec).learn, (*Spec).join, (*Spec).enterAckSet, (*Spec).admit, (*Spec).dropLearner,
			(*Spec).takeOver, (*Spec).shrink, (*Spec).close, (*Spec).handOver, (*Spec).retire, (*Spec).letGo,
			(*Spec).refused, (*Spec).forget, (*Spec).crash, (*Spec).replace,
		} {
			act(m, s, i, emit)
		}
	}
}

// settle makes a state canonical: parts without further effect are cleared, so that states
// that differ in them only are one. Promises are given as soon as possible: an unused
// lease has no effect.
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
	s.renumber()
	if s.renamed.used {
		s.sortProcs() // new names, another order
	}
	for e := uint8(1); e <= s.Epoch; e++ {
		if p := s.primaryOf(e); p == nil || p.Epoch > e {
			s.Acked[e] = [maxPods]uint8{} // never read again
		}
		if s.serving(e) != nil || !s.awaited(e) {
			s.Sent[e] = 0
		}
	}
}

func (m *Spec) settlePrimary(s *State, p *Proc) {
	if !s.behind(p) {
		p.Read = NoRead
	}
	for pod := range p.Peers {
		q := &p.Peers[pod]
		if m.promises(s, p, pod) {
			q.Lease = true
		}
		if !q.Acks {
			q.Lease = false // unused
		}
		if p.Read == NoRead {
			q.Echoed = false
		}
	}
}

// awaited reports whether a process can still store what was sent in an epoch.
func (s *State) awaited(e uint8) bool {
	for i := range s.Procs {
		p := &s.Procs[i]
		if p.ID != 0 && p.ID != s.Config[e].Primary && p.Epoch <= e && (p.Epoch == e || p.Epoch != 0 || s.Config[e].has(p.ID)) {
			return true
		}
	}
	return false
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
	return a.Primary < b.Primary || a.Primary == b.Primary && slices.Compare(a.Others[:], b.Others[:]) < 0
}
