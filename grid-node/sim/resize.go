package sim

import (
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// The number of copies changes while orders flow: among all other faults, back and forth,
// and, once everything is healthy, as the operator does it, without an effect on clients.

// resizes lets a third of the worlds with three pods change the number of copies. It uses
// its own random source, so that it changes no other world.
func resizes(p *profile, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x636f70696573))
	if p.replicas == 3 && rng.IntN(3) == 0 {
		p.resizes = rng
	}
}

// copies is the record's spec of copies.
type copies struct{ replicas, maxInSync int }

// scheduleResize draws the next change of the number of copies and when it comes.
func (w *world) scheduleResize() {
	rng := w.profile.resizes
	if rng == nil {
		return
	}
	w.after(int64(rng.ExpFloat64()*float64(2*w.profile.every)), func() {
		if w.healing {
			return
		}
		list := []copies{{2, 2}, {2, 3}, {3, 3}, {2, 2}}
		if w.profile.mayLose && w.profile.minInSync == 1 {
			list = append(list, copies{1, 1}, copies{1, 2})
		}
		if !w.api.rewound { // an edit would apply to the old record
			w.faults.hit(faultResize)
			w.resize(list[rng.IntN(len(list))])
		}
		w.scheduleResize()
	})
}

// places has the record name the pods in half of the worlds with a changing number; in the
// others it names none, as in `grid-node dev`. It uses its own random source, started so
// that no seed in testdata/seeds.txt became another world.
func places(p *profile, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x706c616365000869))
	p.placed = rng.IntN(2) == 0 && (p.resizes != nil || p.surges != nil)
}

func (w *world) resize(c copies) {
	w.logf("api: %d copies are wanted, up to %d are admitted", c.replicas, c.maxInSync)
	w.minInSync = min(w.minInSync, c.replicas)
	w.api.touch(func(r *replica.Config) {
		r.Replicas, r.MaxInSync, r.MinInSync = c.replicas, c.maxInSync, min(w.profile.minInSync, c.replicas)
		if w.profile.placed {
			r.Pods = nil
			for _, p := range w.pods[:c.maxInSync] {
				r.Pods = append(r.Pods, p.name)
			}
		}
	})
}

// checkResize: one copy less, and one more again, as the operator does it. No order is
// rejected, none is slow, there are never fewer copies than wanted, and in the end all are
// where they are wanted.
func (w *world) checkResize() {
	if w.stopped || w.profile.resizes == nil {
		return
	}
	w.phase = phaseResize
	w.api.heal()
	w.api.lateWord = lateWord
	for _, c := range w.clients {
		c.mode = clientBusy
	}
	first, refused := len(w.history.ops), w.stats.Refusals
	w.settle("before a copy is removed")
	stay := w.pods[:len(w.pods)-1]
	w.api.touch(func(r *replica.Config) { r.PreferredPod = stay[w.profile.resizes.IntN(len(stay))].name })
	w.resize(copies{2, 2})
	w.await("a copy was to be removed, and", func() string { return w.redundantOn(stay) })
	w.resize(copies{2, 3})
	w.await("a copy was to be added, and", func() string { return w.redundantOn(w.pods) })
	w.resize(copies{3, 3})
	for _, c := range w.clients {
		c.mode = clientFinishing
	}
	w.settle("after a copy was added")
	w.runUntil(w.now+rollLimit+50*millisecond, func() bool { return w.converged() == "" })
	w.checkUnnoticed("while the number of copies changed", first, refused)
}
