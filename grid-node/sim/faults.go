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
	faultWrongModule
	faultEpochForgotten
	faultFencedBefore
	faultGatewayLost
	faultFixHalfOpen
	faultFixReset
	faultPowerCut
	faultSpoiled
	faultHeirUnheard
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
	faultForged: "frames of a stranger", faultForgedWord: "frames forged in a primary's name", faultSurge: "pairs rolled with a third copy", faultMove: "partitions sent to other pods", faultShards: "shards added or removed", faultPlanRefused: "planned moves refused, the record had changed", faultSiteLost: "sites lost and restored from an archive", faultOutlived: "processes of before a restore that came back", faultWrongModule: "processes given another module than the one deployed",
	faultEpochForgotten: "restores to an epoch before the last", faultFencedBefore: "restores of an archive that was fenced before",
	faultGatewayLost: "FIX gateways crashed", faultFixHalfOpen: "FIX connections left half-open", faultFixReset: "FIX connections reset",
	faultPowerCut: "power cuts of everything", faultSpoiled: "journals spoiled in their last batch", faultHeirUnheard: "backups restarted behind a primary that is cut off",
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
	faultDrain: (*world).makeDrain, faultStop: (*world).makeStop, faultPrefer: (*world).makePreference, faultLossAccepted: (*world).acceptLoss, faultHeirUnheard: (*world).makeUnheardHeir,
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

func (w *world) makePreference() {
	pod := w.anyPod()
	w.faults.hit(faultPrefer)
	w.logf("api: pod %s is preferred", pod.name)
	w.api.touch(func(c *replica.Config) { c.PreferredPod = pod.name })
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
		w.update(p)
		w.restart(p)
	}
	for i, a := range w.pods {
		for _, b := range w.pods[:i] {
			w.net.connect(a, b)
		}
	}
}
