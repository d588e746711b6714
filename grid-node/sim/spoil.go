package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// digests lets replicas compare their states often in a quarter of the worlds; elsewhere
// logs are too short for it. It uses its own random source, so that it changes no other
// world.
func digests(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x646967657374)); rng.IntN(4) == 0 {
		p.digests = rng
		p.limits.DigestEvery = 16
	}
}

// checkSpoiled: when all is healthy a replica's state is corrupted, as by a bug or a bit
// flip. It is detected, and the copy is removed and relearns the log, with all others in
// sync. If it is a primary's, the copies only know that theirs differs: one is removed in
// vain, and then the primary hands over, as an administrator would make it.
func (w *world) checkSpoiled() {
	if w.stopped || w.profile.digests == nil {
		return
	}
	w.api.heal()
	w.settle("before a state is spoiled")
	if w.stopped {
		return
	}
	pods := w.placed()
	pod := pods[w.profile.digests.IntN(len(pods))]
	p := pod.proc
	p.r.Spoil()
	p.spoiled, w.check.spoiled = true, true
	w.logf("%s has ANOTHER STATE now", p.name)
	for _, c := range w.clients {
		c.mode = clientBusy
	}
	noticed := w.check.noticed
	w.await("another state of "+p.name+", and", func() string {
		if p.alive && w.check.noticed == noticed { // one that was stopped meanwhile takes its state along
			return "it was not detected"
		}
		return ""
	})
	if w.api.rec.Primary.Boot == p.self.Boot {
		w.settle("after a copy of a primary with another state went")
		w.api.touch(func(r *replica.Config) { r.PreferredPod = pods[(slices.Index(pods, pod)+1)%len(pods)].name })
	}
	w.await("another state of "+p.name+", and", func() string {
		if p.alive {
			return "it still differs: " + w.statusText(p)
		}
		return w.redundant()
	})
	for _, c := range w.clients {
		c.mode = clientFinishing
	}
	w.await("after "+p.name+" has learned the log again,", w.converged)
}
