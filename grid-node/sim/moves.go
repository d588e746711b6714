package sim

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// The partition moves between the pods of two or three shards: the record names the pods
// that hold its copies, and that list changes during all other faults, to another shard's
// pods, to some of each, and back again half-way; in half of these worlds by an operator's
// plan (operator.go). When everything is healthy it moves once more, without an effect on
// clients.

// moves lets a sixth of the worlds do so. It uses its own random source, started so that
// no seed in testdata/seeds.txt became another world. The number of copies is constant,
// and no loss is accepted.
func moves(p *profile, seed uint64) {
	rng := movesRand(seed)
	if p.pods = p.replicas; rng == nil {
		return
	}
	p.moves, p.resizes, p.surges = rng, nil, nil
	if p.pods = 6; p.replicas == 2 {
		p.pods = 4 + rng.IntN(3)
	}
}

// movesRand is nil for the worlds in which the partition stays.
func movesRand(seed uint64) *rand.Rand {
	if rng := rand.New(rand.NewPCG(seed, 0x6d6f766573004089)); rng.IntN(6) == 0 {
		return rng
	}
	return nil
}

// placed are the pods that are to hold a copy.
func (w *world) placed() (pods []*pod) {
	if w.profile.moves == nil {
		return w.pods
	}
	for _, p := range w.pods {
		if slices.Contains(w.api.rec.Pods, p.name) {
			pods = append(pods, p)
		}
	}
	return pods
}

// initMoves puts the partition on the first pods. Before that the record may have named
// none, as those of `grid-node dev` do.
func (w *world) initMoves() {
	if w.profile.moves == nil {
		return
	}
	if w.profile.plans != nil {
		w.initOperator()
	} else {
		if w.profile.moves.IntN(3) > 0 {
			w.api.rec.Pods = w.group(0)
		}
		w.scheduleMove()
	}
	w.api.history[0] = w.api.rec
}

// group names the pods of a shard.
func (w *world) group(n int) (names []string) {
	size := w.profile.replicas
	for i := range size {
		names = append(names, w.pods[(n*size+i)%len(w.pods)].name)
	}
	return names
}

// scheduleMove draws the next place of the partition, and when it is set.
func (w *world) scheduleMove() {
	rng := w.profile.moves
	mean := float64(2 * w.profile.every)
	if rng.IntN(3) == 0 { // taken back, or changed, half-way
		mean = float64(30 * millisecond)
	}
	w.after(int64(rng.ExpFloat64()*mean), func() {
		if w.healing {
			return
		}
		if !w.api.rewound { // an edit would apply to the old record
			w.faults.hit(faultMove)
			w.move(w.drawPods())
		}
		w.scheduleMove()
	})
}

// drawPods draws mostly a shard's pods, else some of all, and one more than copies now and
// then, as while a copy is being added.
func (w *world) drawPods() []string {
	rng := w.profile.moves
	if rng.IntN(4) > 0 {
		return w.group(rng.IntN(len(w.pods) / w.profile.replicas))
	}
	var names []string
	for _, i := range rng.Perm(len(w.pods))[:w.profile.replicas+rng.IntN(2)] {
		names = append(names, w.pods[i].name)
	}
	return names
}

// move has the record name these pods; half the time one of them is to be the primary.
func (w *world) move(pods []string) {
	w.logf("api: the copies are to be on %s", strings.Join(pods, " "))
	w.api.touch(func(r *replica.Config) {
		if r.Pods = pods; w.profile.moves.IntN(2) == 0 || w.healing {
			r.PreferredPod = pods[w.profile.moves.IntN(len(pods))]
		}
	})
}

// lastMove is for a world that heals, often with a move in progress.
func (w *world) lastMove() {
	switch {
	case w.operator != nil:
		w.operator.want(w.operator.another())
	case w.profile.moves != nil:
		w.move(w.group(w.profile.moves.IntN(len(w.pods) / w.profile.replicas)))
	}
}

// checkMoves: the partition moves to other pods, then half-way to yet others, and back. No
// order is rejected, none is slow, there are never fewer copies than wanted, and in the
// end all are where the record names them.
func (w *world) checkMoves() {
	if w.stopped || w.profile.moves == nil {
		return
	}
	w.phase = phaseMove
	w.api.heal()
	w.api.lateWord = lateWord
	for _, c := range w.clients {
		c.mode = clientBusy
	}
	w.settle("before a move")
	first, refused := len(w.history.ops), w.stats.Refusals
	rng := w.profile.moves
	for range 3 {
		w.moveOn()
		if rng.IntN(2) == 0 { // half-way
			w.runUntil(w.now+rng.Int64N(300*millisecond), nil)
			w.moveOn()
		}
		w.settle("after a move")
	}
	if w.operator != nil {
		w.operator.want(w.operator.shards)
		w.settle("after all shards came back")
	}
	for _, c := range w.clients {
		c.mode = clientFinishing
	}
	w.runUntil(w.now+rollLimit+50*millisecond, func() bool { return w.converged() == "" })
	w.checkUnnoticed("while the partition moved", first, refused)
}

// moveOn moves the partition elsewhere: to pods of a shard, or of all, or by the
// operator's plan for so many shards.
func (w *world) moveOn() {
	if w.operator != nil {
		w.operator.want(w.operator.another())
		return
	}
	pods := w.drawPods()
	w.move(pods[:min(w.profile.replicas, len(pods))])
}

// checkI19 checks a change of the record caused by its spec, not by a fault: a removed
// copy is not wanted, leaves as many as wanted, and is on no pod that the record names at
// that moment; a hand-over or claim goes to a pod that it names; and there is at most one
// copy more than wanted. A draining process, or one with another state, is removed for
// that reason. A primary that does not know the first list goes by numbers.
func (w *world) checkI19(before, now *replica.Config, by *process, why string) {
	if len(before.Pods) == 0 || !by.named {
		return
	}
	named := func(pod string) bool { return slices.Contains(before.Pods, pod) }
	switch why {
	case "claim":
		if !named(by.pod.name) {
			w.violation("I19", "%s claims the partition, whose copies are to be on %v", by.name, before.Pods)
		}
	case "admission":
		if w.profile.moves != nil && len(now.InSync) > before.Replicas+1 { // elsewhere fewer may be wanted by now
			w.violation("I19", "%d copies are wanted, and the record becomes %s", before.Replicas, w.configText(now))
		}
	case "hand-over":
		if !by.leaving && !named(now.Primary.Pod()) {
			w.violation("I19", "%s hands over to %s, and the copies are to be on %v", by.name, w.name(now.Primary.Boot), before.Pods)
		}
	case "retirement":
		for i := range before.InSync {
			m := w.incarnation(before.InSync[i].Boot)
			switch {
			case now.Has(m.self.Boot) || m.leaving || w.check.spoiled:
			case named(m.pod.name):
				w.violation("I19", "%s removes %s, and the copies are to be on %v", by.name, m.name, before.Pods)
			case len(now.InSync) < before.Replicas:
				w.violation("I19", "%s removes %s, %d copies are wanted, and the record becomes %s", by.name, m.name, before.Replicas, w.configText(now))
			}
		}
	}
}
