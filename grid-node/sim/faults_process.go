package sim

import "github.com/ordergrid/ordergrid/grid-node/replica"

// Faults of processes: they pause, hang, crash, and are stopped. Unless the world may lose orders, one member that holds
// them all stays.

func (w *world) makePause() {
	p := w.somePod().proc
	if p == nil || p.paused || p.stalled {
		return
	}
	w.faults.hit(faultPause)
	p.pause()
	long := []int64{100 * millisecond, 250 * millisecond, 500 * millisecond, 2 * second}[w.rng.IntN(4)]
	w.until(20*millisecond, long, func() {
		if p.alive && p.paused {
			p.resume()
		}
	})
}

func (w *world) makeStall() {
	p := w.somePod().proc
	if p == nil || p.paused || p.stalled {
		return
	}
	w.faults.hit(faultStall)
	p.stall()
	w.until(20*millisecond, []int64{200 * millisecond, 800 * millisecond, 5 * second}[w.rng.IntN(3)], func() {
		if p.alive && p.stalled {
			p.resume()
		}
	})
}

// makeCrash ends a process, and starts an empty one in its place after a while.
func (w *world) makeCrash() {
	pod := w.somePod()
	p := pod.proc
	if p == nil || !w.mayEnd(p) {
		return
	}
	w.faults.hit(faultCrash)
	p.crash(w.rng.IntN(3) > 0)
	if w.noneLeft() {
		w.faults.hit(faultAllDead)
	}
	w.until(5*millisecond, 1500*millisecond, func() { w.restart(pod) })
}

func (w *world) restart(p *pod) {
	if p.proc == nil && !p.absent && !w.misdeployed(p) {
		p.start()
		w.net.processStarted(p)
	}
}

// mayEnd reports whether the memory of an in-sync member survives the end of p, whichever
// of the pending changes happens.
func (w *world) mayEnd(p *process) bool {
	if w.profile.mayLose || w.profile.journal != nil {
		return true
	}
	if !w.survives(&w.api.rec, p) {
		return false
	}
	if lost := &w.api.lost; w.api.rec.Epoch < lost.Epoch && !w.survives(lost, p) {
		return false // the record was rolled back: it does not name the holders of orders
	}
	for _, put := range w.api.puts {
		if w.api.mayLand(put) && !w.survives(put.c, p) {
			return false
		}
	}
	return true
}

// needed reports whether p is the last live member of the record, or of what it may
// become.
func (w *world) needed(p *process) bool {
	last := func(c *replica.Config) bool { return c.Has(p.self.Boot) && !w.survives(c, p) }
	for _, put := range w.api.puts {
		if w.api.mayLand(put) && last(put.c) {
			return true
		}
	}
	return last(&w.api.rec)
}

// survives reports whether a member of c lives, apart from one process. One that reported
// that it may exit does not count; a stopping one is held here until it is not needed
// (exit).
func (w *world) survives(c *replica.Config, without *process) bool {
	if c.Epoch == 0 {
		return true
	}
	for i := range c.InSync {
		if p := w.processOf(c.InSync[i].Boot); p != nil && p != without && (!p.drained || p.stopping) {
			return true
		}
	}
	return false
}

// noneLeft reports that no in-sync member of the record lives, nor of what it may still
// become.
func (w *world) noneLeft() bool {
	for _, put := range w.api.puts {
		if w.api.mayLand(put) && w.survives(put.c, nil) {
			return false
		}
	}
	return !w.survives(&w.api.rec, nil)
}

func (w *world) makeWallJump() {
	p := w.anyPod()
	w.faults.hit(faultWallJump)
	p.clock.wall += w.between(-3600*second, 3600*second)
	w.logf("%s: wall clock jumps", p.name)
}

// makeDrain is a planned stop: kubectl delete pod, a node drain.
func (w *world) makeDrain() {
	if p := w.somePod().proc; p != nil && !p.leaving && !w.oneIsKept() {
		w.faults.hit(faultDrain)
		w.logf("%s is drained", p.name)
		p.leave(false)
	}
}

// oneIsKept reports whether a stopping process is kept, because it alone holds the orders:
// stopping the others as well would lose them.
func (w *world) oneIsKept() bool {
	for p := range w.up {
		if p.drained && p.stopping {
			return true
		}
	}
	return false
}

// makeStop is the timeout of a planned stop.
func (w *world) makeStop() {
	if p := w.somePod().proc; p != nil && !p.stopping && w.mayEnd(p) {
		w.faults.hit(faultStop)
		w.logf("%s is stopped", p.name)
		p.leave(true)
	}
}
