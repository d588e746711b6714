package sim

import (
	"strconv"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// Faults of the API server.

func (w *world) makeOutage()         { w.apiMode(apiAway, 100*millisecond, 1500*millisecond) }
func (w *world) makeCommitTimeouts() { w.apiMode(apiCommits, 100*millisecond, 800*millisecond) }
func (w *world) makeLatePuts()       { w.apiMode(apiLate, 100*millisecond, 800*millisecond) }

func (w *world) apiMode(m apiMode, from, to int64) {
	w.api.mode = m
	w.logf("api: %s", [...]string{"healthy", "AWAY", "makes changes, ANSWERS ARE LOST", "makes changes LATE"}[m])
	w.until(from, to, func() {
		if w.api.mode == m {
			w.api.mode = apiOK
			w.logf("api: well")
		}
	})
}

func (w *world) makeSlowAPI() {
	w.faults.hit(faultSlowAPI)
	w.api.slow = w.between(10*millisecond, 400*millisecond)
	w.logf("api: calls take %d ms more", w.api.slow/millisecond)
	w.until(100*millisecond, 1000*millisecond, func() { w.api.slow = 0 })
}

func (w *world) makeSilentWatch() {
	p := w.anyPod()
	w.api.silent[p] = true
	w.logf("api: the watch of %s is SILENT", p.name)
	w.until(50*millisecond, 1500*millisecond, func() {
		w.api.silent[p] = false
		if p.proc != nil {
			w.api.watch(p.proc, 0) // a new watch begins with the record as it is
		}
	})
}

func (w *world) makeTouch() {
	w.faults.hit(faultTouch)
	w.logf("api: a third party edits the record")
	w.api.touch(nil)
}

// makeRewind restores the record of some changes ago, version included, as a restored etcd
// does, or has it deleted and recreated, as a backup tool does. It happens only when every
// process named in it is either dead or knows better: a process that missed the changes
// cannot know that it did, and no protocol that trusts the arbiter could save it. A record
// at epoch 0 names no process, and every process with entries knows better: half of the
// recreations happen at any moment.
func (w *world) makeRewind() {
	a := &w.api
	if a.rewound || a.regressed || len(a.history) < 3 || a.rec.Epoch < 2 {
		return
	}
	old := a.history[len(a.history)-1-w.rng.IntN(min(3, len(a.history)-1))]
	if w.rng.IntN(2) == 0 {
		for i := len(a.history) - 1; i >= 0; i-- { // from before its primary was a member: restoring it takes another lineage
			if h := a.history[i]; h.Epoch > 0 && !h.Has(a.rec.Primary.Boot) && h.Lineage == a.rec.Lineage {
				old = h
				break
			}
		}
	}
	madeAgain := w.seed%8 == 3 // no draw of its own: seeds that are kept replay as they did
	if old.Epoch == 0 || old.Epoch == a.rec.Epoch || w.seed%16 != 11 && !w.allKnow(a.rec.Epoch) || len(a.puts) > 0 {
		return
	}
	a.lost, a.rewound = a.rec, true
	if madeAgain {
		w.faults.hit(faultMadeAgain)
		w.logf("api: the record is DELETED and recreated, without its status")
		a.rec.Epoch, a.rec.Lineage, a.rec.ChangeID, a.rec.Primary, a.rec.InSync, a.rec.Copied = 0, 0, "", replica.Member{}, nil, true
		a.stamp()
	} else {
		w.faults.hit(faultRewind)
		w.logf("api: REWOUND to version %s, %s", old.Version, w.configText(&old))
		a.rec = old
		a.version, _ = strconv.Atoi(old.Version)
	}
	a.changes++
	a.notify()
	w.until(300*millisecond, 2*second, a.putRight)
}

// climbing reports whether the primary named by an administrator is restoring its
// configuration. The last step of that is the epoch behind the lost one: all who knew that
// follow there.
func (a *apiServer) climbing() bool {
	return a.regressed && a.rec.ReassertChangeID == a.lost.ChangeID && a.rec.Epoch <= a.lost.Epoch+1 && a.rec.Primary.Boot == a.lost.Primary.Boot
}

// allKnow reports whether every live process has seen this epoch. One that knows its own
// only from an announcement, perhaps forged, may revert to an earlier one.
func (w *world) allKnow(epoch uint64) bool {
	for p := range w.up {
		if p.status.Config == nil || p.status.Config.Epoch < epoch || p.status.Unconfirmed {
			return false
		}
	}
	return true
}

// putRight is an administrator who names the true configuration: that of the latest
// primary. Without a live primary it restores the record.
func (a *apiServer) putRight() {
	if !a.rewound {
		return
	}
	if p := a.w.processOf(a.lost.Primary.Boot); p != nil && p.status.Config.Epoch == a.lost.Epoch && a.w.rng.IntN(3) > 0 {
		a.w.logf("api: an administrator names %s as the true configuration", a.w.configText(&a.lost))
		a.rewound, a.regressed = false, true
		a.touch(func(c *replica.Config) { c.ReassertChangeID = a.lost.ChangeID })
		if !a.w.healing && a.w.rng.IntN(2) == 0 {
			a.meetClimb(p)
		}
		return
	}
	a.rewound, a.regressed = false, true
	a.version += 1000 // versions that were never seen
	a.rec = a.lost
	a.stamp()
	a.w.logf("api: an administrator restores the record: %s", a.w.configText(&a.rec))
	a.notify()
}

// meetClimb starts processes that know nothing but the record, while it goes through
// epochs that its primary has been in before; the primary learns of each of them late.
func (a *apiServer) meetClimb(primary *process) {
	w := a.w
	w.faults.hit(faultClimbMet)
	a.lateWord = w.between(20*millisecond, 200*millisecond)
	w.until(200*millisecond, 800*millisecond, func() { a.lateWord = 0 })
	for _, pod := range w.pods {
		if p := pod.proc; p != nil && p != primary && w.mayEnd(p) {
			p.crash(true)
		}
		if pod.proc == nil {
			w.after(w.between(0, 20*millisecond), func() { w.restart(pod) })
		}
	}
}

// heal makes the API server healthy.
func (a *apiServer) heal() {
	a.mode, a.slow, a.lag, a.lateWord = apiOK, 0, 0, 0
	a.forbids = false
	a.putRight()
	for _, p := range a.w.pods {
		a.silent[p], a.cut[p] = false, false
		if p.proc != nil {
			a.watch(p.proc, 0)
		}
	}
}
