package sim

import "github.com/ordergrid/ordergrid/grid-node/replica"

// faultKind is a kind of fault. Every run counts how often each happened; a long run in
// which one never did fails, since it does not cover it.
type faultKind uint8

const (
	faultDrop faultKind = iota
	faultDuplicate
	faultReorder
	faultLateFrame
	faultCut
	faultIsolate
	faultNodeLost
	faultSuspicion
	faultJoinMeetsHandOver
	faultSlowLink
	faultReset
	faultPause
	faultStall
	faultStaleClock
	faultCrash
	faultWallJump
	faultOutage
	faultCommitTimeout
	faultLatePut
	faultConflict
	faultForbidden
	faultSlowAPI
	faultLateGet
	faultWatchSilent
	faultLateWatch
	faultTouch
	faultRewind
	faultMadeAgain
	faultClimbMet
	faultSinkCrash
	faultClientLost
	faultClientStalled
	faultDrain
	faultStop
	faultPrefer
	faultAllDead
	faultLossAccepted
	faultLossWithdrawn
	faultResize
	faultForged
	faultForgedWord
	faultSurge
	faultMove
	faultShards
	faultPlanRefused
	faultSiteLost
	faultOutlived
	faultKinds
)

var faultNames = [faultKinds]string{
	faultDrop: "frames lost", faultDuplicate: "frames doubled", faultReorder: "frames overtaken", faultLateFrame: "frames seconds late",
	faultCut: "one-way cuts", faultIsolate: "pods cut off", faultNodeLost: "pods cut off from the API server too", faultSuspicion: "primaries suspected wrongly", faultJoinMeetsHandOver: "hand-overs while a learner joins", faultSlowLink: "slow links", faultReset: "connections reset",
	faultPause: "processes paused", faultStall: "loops hung", faultStaleClock: "wake-ups cut in two by a pause", faultCrash: "processes crashed", faultWallJump: "wall clocks jumped",
	faultOutage: "API calls unanswered", faultCommitTimeout: "API changes made, answer lost", faultLatePut: "API changes landing late",
	faultConflict: "API conflicts", faultForbidden: "API changes refused for another reason", faultSlowAPI: "API server slow", faultLateGet: "API reads stale on arrival",
	faultWatchSilent: "watch events lost", faultLateWatch: "watch events late", faultTouch: "records touched by others", faultRewind: "records rewound", faultMadeAgain: "records recreated without their status", faultClimbMet: "processes that started while a record was restored",
	faultSinkCrash: "sinks crashed", faultClientLost: "client connections left", faultClientStalled: "client connections stalled",
	faultDrain: "processes drained", faultStop: "processes stopped", faultPrefer: "other pods preferred",
	faultAllDead: "all in-sync members dead", faultLossAccepted: "losses accepted", faultLossWithdrawn: "accepted losses withdrawn", faultResize: "copies added or removed",
	faultForged: "frames of a stranger", faultForgedWord: "frames forged in a primary's name", faultSurge: "pairs rolled with a third copy", faultMove: "partitions sent to other pods", faultShards: "shards added or removed", faultPlanRefused: "planned moves refused, the record had changed", faultSiteLost: "sites lost and restored from an archive", faultOutlived: "processes of before a restore that came back",
}

func (k faultKind) String() string { return faultNames[k] }

// faultCounts of one run or of many.
type faultCounts [faultKinds]uint64

func (c *faultCounts) hit(k faultKind) { c[k]++ }

// makers of the transient faults. Each ends by itself, at the latest when the world heals.
var makers = [faultKinds]func(*world){
	faultCut: (*world).makeCut, faultIsolate: (*world).makeIsolation, faultSuspicion: (*world).makeSuspicion, faultJoinMeetsHandOver: (*world).makeJoinMeetHandOver, faultSlowLink: (*world).makeSlowLink, faultReset: (*world).makeReset,
	faultPause: (*world).makePause, faultStall: (*world).makeStall, faultCrash: (*world).makeCrash, faultWallJump: (*world).makeWallJump,
	faultOutage: (*world).makeOutage, faultCommitTimeout: (*world).makeCommitTimeouts, faultLatePut: (*world).makeLatePuts,
	faultSlowAPI: (*world).makeSlowAPI, faultWatchSilent: (*world).makeSilentWatch, faultTouch: (*world).makeTouch, faultRewind: (*world).makeRewind,
	faultSinkCrash: (*world).makeSinkCrash, faultClientLost: (*world).makeClientLost, faultClientStalled: (*world).makeClientStall,
	faultDrain: (*world).makeDrain, faultStop: (*world).makeStop, faultPrefer: (*world).makePreference, faultLossAccepted: (*world).acceptLoss,
}

// scheduleFault draws the next fault and its time.
func (w *world) scheduleFault() {
	d := int64(w.rng.ExpFloat64() * float64(w.profile.every))
	w.after(min(d, 5*w.profile.every), func() {
		if w.healing {
			return
		}
		total := 0
		for _, n := range w.profile.weights {
			total += n
		}
		n := w.rng.IntN(total)
		for k, weight := range w.profile.weights {
			if n -= weight; n < 0 {
				makers[k](w)
				break
			}
		}
		w.scheduleFault()
	})
}

// faultOnChange combines a fault with a change of the record, or restarts a process that
// then joins: at such moments the replicas disagree about the primary.
func (w *world) faultOnChange() {
	if w.healing || !w.chance(w.profile.onChange) {
		return
	}
	makers := []func(*world){(*world).makeReset, (*world).makeSlowLink, (*world).makeCut, (*world).makePause, (*world).makeCrash, (*world).makeDrain}
	k := w.rng.IntN(len(makers))
	w.after(w.soon(0, 30*millisecond), func() {
		if w.healing {
			return
		}
		makers[k](w)
		for _, p := range w.pods {
			if w.rng.IntN(3) == 0 {
				w.restart(p)
			}
		}
	})
}

// until ends a fault after a while, unless the world heals first.
func (w *world) until(from, to int64, end func()) {
	w.after(w.between(from, to), func() {
		if !w.healing {
			end()
		}
	})
}

func (w *world) anyPod() *pod { return w.pods[w.rng.IntN(len(w.pods))] }

// somePod is mostly the primary's: faults have the most effect there.
func (w *world) somePod() *pod {
	if w.rng.IntN(2) == 0 {
		if p := w.podAt(w.api.rec.Primary.Address); p != nil {
			return p
		}
	}
	return w.anyPod()
}

func (w *world) someLink() *link {
	a := w.somePod()
	b := w.anyPod()
	for b == a {
		b = w.anyPod()
	}
	if w.rng.IntN(2) == 0 {
		a, b = b, a
	}
	return w.net.link(a, b)
}

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
	if p.proc == nil && !p.absent {
		p.start()
		w.net.processStarted(p)
	}
}

// mayEnd reports whether the memory of an in-sync member survives the end of p, whichever
// of the pending changes happens.
func (w *world) mayEnd(p *process) bool {
	if w.profile.mayLose {
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

func (w *world) makePreference() {
	pod := w.anyPod()
	w.faults.hit(faultPrefer)
	w.logf("api: pod %s is preferred", pod.name)
	w.api.touch(func(c *replica.Config) { c.PreferredPod = pod.name })
}

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

func (w *world) makeSinkCrash() {
	w.faults.hit(faultSinkCrash)
	for _, s := range w.sinks {
		s.crash()
	}
}

func (w *world) makeClientLost() {
	w.clients[w.rng.IntN(len(w.clients))].leave()
}

func (w *world) makeClientStall() {
	c := w.clients[w.rng.IntN(len(w.clients))]
	if c.conn != nil {
		w.faults.hit(faultClientStalled)
		c.conn.stalled = w.now + w.between(50*millisecond, 1500*millisecond)
		w.logf("connection %d of client %d stalls", c.conn.id, c.id)
	}
}

// heal ends every fault.
func (w *world) heal() {
	w.logf("EVERYTHING HEALS")
	w.healing = true
	w.phase = phaseHeal
	w.net.each(func(l *link) {
		w.net.cutOff(l, false)
		l.slow = 0
	})
	w.api.heal()
	if w.profile.resizes != nil {
		w.resize(copies{len(w.pods), len(w.pods)})
	}
	w.lastMove()
	for _, c := range w.clients {
		if c.conn != nil && c.conn.stalled > w.now {
			c.turnTo(c.pod)
		}
	}
	for _, p := range w.pods {
		if p.proc != nil && (p.proc.paused || p.proc.stalled) {
			p.proc.resume()
		}
		w.restart(p)
	}
	for i, a := range w.pods {
		for _, b := range w.pods[:i] {
			w.net.connect(a, b)
		}
	}
}
