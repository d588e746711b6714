package sim

import "github.com/ordergrid/ordergrid/grid-node/replica"

// acceptLoss is an administrator who accepts the loss of entries that only the in-sync
// members held. While they live, it is a mistake that costs data, but never consistency.
func (w *world) acceptLoss() {
	if w.api.rec.Epoch == 0 || w.api.rewound {
		return
	}
	w.faults.hit(faultLossAccepted)
	w.logf("api: an administrator accepts the loss of epoch %d", w.api.rec.Epoch)
	w.api.touch(func(c *replica.Config) { c.AcceptLossEpoch = c.Epoch })
	w.withdrawLoss()
}

// withdrawLoss is an administrator who looks again, and finds a member alive. It uses its
// own random source.
func (w *world) withdrawLoss() {
	rng, epoch := w.profile.withdraws, w.api.rec.Epoch
	if rng == nil || w.healing || rng.IntN(4) == 0 {
		return
	}
	w.after(rng.Int64N(300*millisecond), func() {
		if !w.healing {
			w.withdrawAcceptance(epoch)
		}
	})
}

// withdrawAcceptance ends the acceptance of the loss of an epoch, if it still stands.
func (w *world) withdrawAcceptance(epoch uint64) {
	if c := &w.api.rec; !w.api.rewound && c.Epoch == epoch && c.AcceptLossEpoch == epoch {
		w.faults.hit(faultLossWithdrawn)
		w.logf("api: the acceptance of the loss of epoch %d is withdrawn", epoch)
		w.api.touch(func(c *replica.Config) { c.AcceptLossEpoch = 0 })
	}
}
