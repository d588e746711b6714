package sim

import (
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// The partition is closed and opened while orders flow, by a person who changes the number of shards back and forth. In
// half of these worlds nobody opens it in the end: then an operator looks for the moment at which it may be given up
// (operator.go), and what it gave up is deleted.

// closes lets a third of the worlds do so. Its draws are its own, so that it changes no other world. A record that goes back
// takes the decision with it: what a person makes of that is another story.
func closes(p *profile, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x636c6f736573))
	if !p.rewinds && rng.IntN(3) == 0 {
		p.closes, p.retires = rng, rng.IntN(2) == 0
		p.odds.lateWatch, p.odds.lateGet = max(p.odds.lateWatch, 60), max(p.odds.lateGet, 60)
	}
}

// closing is where the world stands with it.
type closing struct {
	op      operator
	retired bool            // the record says Retired
	at      int64           // when it was written
	epoch   uint64          // of the record then
	lineage uint64          // of the record then
	closed  map[uint64]bool // revisions of decisions that closed the partition
	gone    bool            // all pods are deleted
}

func (w *world) initClosing() {
	rng := w.profile.closes
	if rng == nil {
		return
	}
	w.closing.closed = map[uint64]bool{}
	w.closing.op = operator{w: w, rng: rng}
	w.api.rec.Admission, w.api.rec.AdmissionRevision = replica.AdmissionOpen, 1
	w.api.history[0] = w.api.rec
	w.scheduleDecision()
	if w.profile.retires {
		w.closing.op.schedule()
	}
}

// scheduleDecision draws when the partition is closed or opened next.
func (w *world) scheduleDecision() {
	rng := w.profile.closes
	mean := float64(w.profile.every) + float64(500*millisecond)
	switch open := w.api.rec.Admission == replica.AdmissionOpen; {
	case open && rng.IntN(2) == 0, rng.IntN(4) == 0: // taken back at once
		mean = float64(20 * millisecond)
	case !open && w.profile.retires:
		mean *= 3
	}
	w.after(int64(rng.ExpFloat64()*mean), func() {
		if w.healing || w.closing.retired {
			return
		}
		w.decide(w.api.rec.Admission != replica.AdmissionOpen)
		w.scheduleDecision()
	})
}

// decide opens or closes the partition, as the operator does when spec.shards changes.
func (w *world) decide(open bool) {
	if !w.healing { // somebody does not hear of it for a while, or everybody hears of it late
		switch w.profile.closes.IntN(4) {
		case 0:
			w.makeSilentWatch()
		case 1, 2:
			w.api.lag = w.profile.closes.Int64N(400 * millisecond)
			w.until(200*millisecond, 1500*millisecond, func() { w.api.lag = 0 })
		}
	}
	w.logf("api: the partition is %s", map[bool]string{true: "OPENED", false: "CLOSED"}[open])
	w.faults.hit(map[bool]faultKind{true: faultOpen, false: faultClose}[open])
	w.api.touch(func(r *replica.Config) {
		r.AdmissionRevision++
		r.Admission = replica.AdmissionOpen
		if !open {
			r.Admission = replica.AdmissionClosed
			w.closing.closed[r.AdmissionRevision] = true
		}
	})
}

// lastDecision is for a world that heals: it is opened, or closed for good.
func (w *world) lastDecision() {
	if w.profile.closes == nil || w.closing.retired {
		return
	}
	if open := w.api.rec.Admission == replica.AdmissionOpen; open == w.profile.retires {
		w.decide(!open)
	}
}

// giveUp is the end of a world whose partition is given up: if that was not possible amid the faults, it is once they have
// ended. Then all pods are deleted, and what was acknowledged is where it should be.
func (w *world) giveUp() {
	rng := w.profile.closes
	if !w.closing.retired {
		w.heal()
		w.recoverLoss()
		w.await("the partition was to be given up, and", func() string {
			if !w.closing.retired {
				return "the operator still waits: " + w.closing.op.waits
			}
			return ""
		})
	}
	w.runUntil(w.now+rng.Int64N(500*millisecond), nil)
	if rng.IntN(2) == 0 {
		w.logf("all pods are told to leave in good order")
		for p := range w.up {
			p.leave(false)
		}
		w.runUntil(w.now+rng.Int64N(500*millisecond), nil)
	}
	if w.stopped {
		return
	}
	w.logf("all pods are DELETED")
	w.closing.gone = true
	for p := range w.up {
		p.crash(true)
	}
	w.checkGone()
}
