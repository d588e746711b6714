package sim

import (
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// The API server rejects every change for a while: a role was removed, or a webhook denies
// it. That is conclusive for the rejected change, but not for the attempt before it, which
// may still be in flight.

// forbids lets a fourth of the worlds do so. It uses its own random source, so that it
// changes no other world.
func forbids(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x666f72626964)); rng.IntN(4) == 0 {
		p.forbids = rng
	}
}

// scheduleForbidding draws when it begins next.
func (w *world) scheduleForbidding() {
	rng := w.profile.forbids
	if rng == nil {
		return
	}
	w.after(int64(rng.ExpFloat64()*float64(4*w.profile.every)), func() {
		if !w.healing {
			w.forbid()
			w.scheduleForbidding()
		}
	})
}

func (w *world) forbid() {
	if w.api.forbids {
		return
	}
	w.api.forbids = true
	w.logf("api: REFUSES every change")
	w.until(50*millisecond, second, func() {
		w.api.forbids = false
		w.logf("api: accepts changes again")
	})
}

// forbidNext rejects the attempt after one in flight, and drops from its proposer one of
// those it proposed: then it matters whether that attempt is forgotten.
func (a *apiServer) forbidNext(put *apiPut) {
	w := a.w
	rng := w.profile.forbids
	if rng == nil || w.healing || rng.IntN(2) == 0 {
		return
	}
	w.forbid()
	for i := range put.c.InSync {
		if p := w.podAt(put.c.InSync[i].Address); p != nil && p != put.from.pod && rng.IntN(2) == 0 {
			w.after(rng.Int64N(200*millisecond), func() {
				if w.healing {
					return
				}
				out, in := w.net.link(put.from.pod, p), w.net.link(p, put.from.pod)
				w.faults.hit(faultCut)
				w.net.cutOff(out, true)
				w.net.cutOff(in, true)
				w.until(300*millisecond, 1500*millisecond, func() {
					w.net.cutOff(out, false)
					w.net.cutOff(in, false)
				})
			})
		}
	}
}

// refuse rejects a change.
func (a *apiServer) refuse(put *apiPut) {
	a.w.faults.hit(faultForbidden)
	a.forget(put)
	a.w.after(a.way(), func() { a.answer(put.from, put.c, replica.OutcomeRefused, "forbidden", nil) })
}
