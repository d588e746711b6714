package sim

import (
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// A pair is rolled with a third copy, as controllers/ordergrid does it with
// spec.updateStrategy.surge, while Kubernetes nodes are drained: every eviction goes
// through the disruption budget, which counts pods that look ready and has outdated
// information. No acknowledgement, and no end of a process, leaves fewer than two copies
// (I16).

// surges lets half of the worlds with three pods roll a pair with a third copy at their
// end. It uses its own random source, so that it changes no other world.
func surges(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x7375726765)); p.replicas == 3 && rng.IntN(2) == 0 {
		p.surges = rng
	}
}

// surge is a roll in progress. The operator's passes keep no state but Kubernetes': the
// StatefulSet's size, the record, the budget, and which processes run an older template.
type surge struct {
	on     bool // I16 has to hold
	busy   bool // the operator has looked, and has yet to act
	rng    *rand.Rand
	old    map[*process]bool
	third  bool              // the StatefulSet has the third pod
	ready  map[*process]bool // as of the last readiness probe
	keep   int               // of the budget: ready pods that an eviction has to leave
	seen   int               // the same, as known to the disruption controller
	may    int               // evictions that it allows
	rolled bool              // no process is old, and the third pod has been removed
	till   int64             // until then Kubernetes nodes are drained
}

const (
	probeEvery    = 200 * millisecond // a pod looks ready for about so long after it is not
	disruptionLag = 50 * millisecond
	drainsFor     = 10 * second
)

// checkSurge rolls a pair under drains.
func (w *world) checkSurge() {
	if w.stopped || w.profile.surges == nil {
		return
	}
	w.phase = phaseSurge
	s := &w.surge
	s.rng, s.old, s.ready = w.profile.surges, map[*process]bool{}, map[*process]bool{}
	s.keep, s.seen = 2, 2
	pair := w.pods[:2]
	w.api.touch(func(r *replica.Config) { r.PreferredPod = pair[s.rng.IntN(2)].name })
	w.resize(copies{2, 2})
	w.await("a pair was to be left, and", func() string { return w.redundantOn(pair) })
	if w.stopped {
		return
	}
	w.pods[2].absent = true
	w.pods[2].proc.leave(false)
	w.runUntil(w.now+healLimit, func() bool { return w.pods[2].proc == nil })
	for _, c := range w.clients {
		c.mode = clientBusy
	}
	for _, p := range pair {
		s.old[p.proc] = true
	}
	w.faults.hit(faultSurge)
	w.logf("a roll with a third copy begins")
	s.on, s.till = true, w.now+drainsFor
	w.probeReadiness()
	w.disruptionController()
	w.drainNodes()
	w.surgeOperator()
	w.await("a pair was to be rolled with a third copy, and", func() string {
		if !s.rolled {
			return "it is not over: " + w.configText(&w.api.rec)
		}
		return w.redundantOn(pair)
	})
	s.on = false
	w.pods[2].absent = false
	w.restart(w.pods[2])
	w.resize(copies{3, 3})
	for _, c := range w.clients {
		c.mode = clientFinishing
	}
	w.settle("after a roll with a third copy")
	w.runUntil(w.now+rollLimit+50*millisecond, func() bool { return w.converged() == "" })
}

// later runs a function repeatedly while the roll lasts.
func (w *world) later(mean int64, do func()) {
	s := &w.surge
	w.after(int64(s.rng.ExpFloat64()*float64(mean)), func() {
		if s.on && !w.stopped {
			do()
			w.later(mean, do)
		}
	})
}

// probeReadiness asks one pod after the other whether it is in sync. The answer stands
// until the next probe.
func (w *world) probeReadiness() {
	probe := func(p *process) {
		if p != nil {
			w.surge.ready[p] = !p.leaving && (p.status.Role == replica.RolePrimary || p.status.Role == replica.RoleBackup)
		}
	}
	for p := range w.up {
		probe(p)
	}
	w.later(probeEvery/3, func() { probe(w.pods[w.surge.rng.IntN(len(w.pods))].proc) })
}

// disruptionController counts, some time after a change, how many pods may be evicted. A
// pod being deleted does not count.
func (w *world) disruptionController() {
	s := &w.surge
	w.later(disruptionLag, func() {
		s.seen, s.may = s.keep, -s.keep
		for p := range w.up {
			if s.ready[p] && !p.leaving {
				s.may++
			}
		}
	})
}

// evict requests the end of a process. The API server rejects it while the budget allows
// none, or has changed since it was read.
func (w *world) evict(p *process) {
	s := &w.surge
	if p == nil || !p.alive || p.leaving || s.seen != s.keep || s.may < 1 {
		return
	}
	s.may--
	w.logf("%s is evicted", p.name)
	p.leave(false)
}

// drainNodes drains Kubernetes nodes, one after the other, for a while: the roll has the
// same budget.
func (w *world) drainNodes() {
	w.later(150*millisecond, func() {
		if p := w.pods[w.surge.rng.IntN(len(w.pods))].proc; w.now < w.surge.till {
			w.evict(p)
		}
	})
}

// surgeOperator observes, takes its time, and acts: never two passes at once for one grid.
func (w *world) surgeOperator() {
	w.later(100*millisecond, func() {
		if w.surge.busy {
			return
		}
		w.surge.busy = true
		rec := w.api.rec
		var running [3]*process
		var whole [3]bool
		closed := w.surge.seen == 3 && w.surge.keep == 3
		for i, p := range w.pods {
			running[i] = p.proc
			whole[i] = p.proc != nil && rec.Has(p.proc.self.Boot) && w.surge.ready[p.proc]
		}
		w.after(w.surge.rng.Int64N(100*millisecond), func() {
			w.surge.busy = false
			if w.surge.on && !w.stopped {
				w.surgeStep(&rec, running, whole, closed)
			}
		})
	})
}

// surgeStep is planCopies and planRoll of controllers/ordergrid for one shard.
func (w *world) surgeStep(rec *replica.Config, running [3]*process, whole [3]bool, closed bool) {
	s := &w.surge
	pair := whole[0] && whole[1]
	var outdated *process
	for _, p := range running[:2] {
		if p != nil && s.old[p] && (outdated == nil || p.self.Boot != rec.Primary.Boot) {
			outdated = p
		}
	}
	switch {
	case outdated != nil || rec.MaxInSync > 2 && !pair:
		s.setKeep(2)
		switch {
		case !s.third:
			s.third, w.pods[2].absent = true, false
			w.restart(w.pods[2])
		case w.api.rec.MaxInSync != 3:
			w.resize(copies{2, 3})
		case outdated != nil && pair && whole[2]:
			w.evict(outdated)
		}
	case s.third && !closed && !operatorMutant(mutSurgeUnclosed):
		s.setKeep(3) // no eviction may count the third any more
	case rec.MaxInSync > 2:
		w.resize(copies{2, 2})
	case s.third && running[2] != nil && rec.Has(running[2].self.Boot): // it is still in sync
	case s.third:
		s.third, w.pods[2].absent = false, true
		if p := w.pods[2].proc; p != nil && !p.leaving {
			p.leave(false)
		}
	case w.pods[2].proc == nil:
		s.setKeep(2)
		s.rolled = true
	}
}

func (s *surge) setKeep(n int) {
	if operatorMutant(mutBudgetOpen) {
		n = 1
	}
	s.keep = n
}

// checkI16 counts the processes that hold an entry and are not about to exit.
func (w *world) checkI16(what string, lineage, seq uint64, without *process) {
	t := w.timeline(lineage)
	if !w.surge.on || seq == 0 || seq > uint64(len(t.hashes)) {
		return
	}
	held := 0
	for p := range w.up {
		if p != without && !p.leaving && p.log.holds(seq, t.hashes[seq-1]) {
			held++
		}
	}
	if held < 2 {
		w.violation("I16", "%s, and of those that stay %d hold entry %d", what, held, seq)
	}
}
