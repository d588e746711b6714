package model

import "fmt"

// Invariant is one of docs/replication.md that this model checks.
type Invariant uint8

// Invariants.
const (
	Holds Invariant = iota
	I1              // at most one committer per epoch, epochs only rise
	I2              // what clients know is in the log of every in-sync member
	I3              // inSync is a subset of the committing primary's ack set
	I4              // nothing succeeds after supersession unless it linearizes before it
	I5              // an acknowledged order survives
	I6              // equal seq means equal entry: no member finds its log diverged
	I10             // only replicas with the full log are electable
	I13             // after faults heal inSync becomes full: here, can become
	I19             // a move removes no wanted copy and never leaves too few
)

func (v Invariant) String() string {
	return [...]string{"holds", "I1", "I2", "I3", "I4", "I5", "I6", "I10", "I13", "I19"}[v]
}

// Text returns the statement of the invariant.
func (v Invariant) Text() string {
	return [...]string{
		"all hold",
		"at most one committer per epoch, and epochs only rise",
		"the committed prefix is in the log of every in-sync member",
		"inSync is a subset of the committing primary's ack set",
		"nothing succeeds after supersession unless it linearizes before it",
		"an acknowledged order survives",
		"equal sequence number means equal entry",
		"only replicas with the full log are electable",
		"full health can be reached again",
		"a move removes no wanted copy and never leaves too few",
	}[v]
}

// Invariants that are checked.
var Invariants = []Invariant{I1, I2, I3, I4, I5, I6, I10, I13, I19}

// ParseInvariant finds an invariant by its name.
func ParseInvariant(name string) (Invariant, error) {
	for _, v := range Invariants {
		if v.String() == name {
			return v, nil
		}
	}
	return Holds, fmt.Errorf("invariant %q, allowed: %v", name, Invariants)
}

// check returns the invariant that a state breaks, the one an action has found first. only
// limits it to one (Holds: all), except skips one.
func (m *Spec) check(s *State, only, except Invariant) Invariant {
	want := func(v Invariant, ok bool) bool { return !ok && (only == Holds || only == v) && v != except }
	switch {
	case want(s.Broken, s.Broken == Holds):
		return s.Broken
	case want(I1, s.oneCommitter()):
		return I1
	case want(I3, s.ackSetHoldsInSync(m)):
		return I3
	case want(I6, s.logsAgree()):
		return I6
	case want(I2, s.electableHaveAll()):
		return I2
	case want(I4, m.noStaleAnswer(s)):
		return I4
	case want(I5, s.acknowledgedSurvives()):
		return I5
	}
	return Holds
}

// oneCommitter: I1. The server of an epoch is the primary that the record named.
func (s *State) oneCommitter() bool {
	for i := range s.Procs {
		p := &s.Procs[i]
		if p.Role != Primary {
			continue
		}
		for j := i + 1; j < maxProcs; j++ {
			if q := &s.Procs[j]; q.Role == Primary && q.Epoch == p.Epoch {
				return false
			}
		}
	}
	return true
}

// electableHaveAll: I2 at any time, I10 at the moment a configuration is accepted. Dead
// members are not electable. (I13 is in live.go.)
func (s *State) electableHaveAll() bool {
	for i := range s.Procs {
		if p := &s.Procs[i]; s.record().has(p.ID) && !s.Known.StartOf(p.Log) {
			return false
		}
	}
	return true
}

// ackSetHoldsInSync: I3, by the primary's own configuration and by the record, which may
// have the proposed peer in sync before the primary knows.
func (s *State) ackSetHoldsInSync(m *Spec) bool {
	for i := range s.Procs {
		p := &s.Procs[i]
		if p.Role != Primary || p.Suspended {
			continue
		}
		for pod := range p.Peers {
			q := p.Peers[pod].ID
			acks := func(id ID) bool { return id == 0 || id == q && m.waitsFor(p, pod) }
			if !acks(s.Config[p.Epoch].Others[pod]) || s.record().Primary == p.ID && !acks(s.record().Others[pod]) {
				return false
			}
		}
	}
	return true
}

// noStaleAnswer: I4 for reads answered at once.
func (m *Spec) noStaleAnswer(s *State) bool {
	for i := range s.Procs {
		if p := &s.Procs[i]; m.readsAlone(p) && s.behind(p) {
			return false
		}
	}
	return true
}

// logsAgree: I6. A backup's log is a prefix of its primary's, unless a hand-over was cut
// short.
func (s *State) logsAgree() bool {
	for i := range s.Procs {
		q := &s.Procs[i]
		if q.Role != Backup || q.Cut || s.Cut[q.Epoch] {
			continue
		}
		if p := s.serving(q.Epoch); p != nil && !q.Log.StartOf(p.Log) {
			return false
		}
	}
	return true
}

// acknowledgedSurvives: I5. While an in-sync member lives, one of them holds all that
// clients know; and so does the primary of the record.
func (s *State) acknowledgedSurvives() bool {
	some, alive := false, false
	for i := range s.Procs {
		p := &s.Procs[i]
		if !s.record().has(p.ID) {
			continue
		}
		alive = true
		has := s.Known.StartOf(p.Log)
		some = some || has
		if p.Role == Primary && p.Epoch == s.Epoch && !has {
			return false
		}
	}
	return some || !alive
}
