package sim

// Faults of the network, and those that need several things at once.

func (w *world) makeCut() {
	l := w.someLink()
	w.faults.hit(faultCut)
	w.net.cutOff(l, true)
	w.until(20*millisecond, 1200*millisecond, func() { w.net.cutOff(l, false) })
}

func (w *world) makeIsolation() {
	p := w.somePod()
	w.faults.hit(faultIsolate)
	w.isolate(p, true)
	if w.rng.IntN(2) == 0 { // from everything
		w.faults.hit(faultNodeLost)
		w.api.cut[p] = true
		w.logf("api: does not reach pod %s", p.name)
	}
	w.until(50*millisecond, 1500*millisecond, func() { w.rejoin(p) })
}

// isolate cuts a pod off from all others.
func (w *world) isolate(p *pod, cut bool) {
	for _, o := range w.pods {
		if o != p {
			w.net.cutOff(w.net.link(p, o), cut)
			w.net.cutOff(w.net.link(o, p), cut)
		}
	}
}

// rejoin ends the isolation of a pod.
func (w *world) rejoin(p *pod) {
	w.isolate(p, false)
	w.api.cut[p] = false
	if p.proc != nil {
		w.api.watch(p.proc, 0)
	}
}

// makeSuspicion lets a backup win the race against a live primary: for a little longer
// than the grace the primary reaches neither it nor the API server. The backup's proposal
// is mostly decided late, when the network is healthy again.
func (w *world) makeSuspicion() {
	p := w.podAt(w.api.rec.Primary.Address)
	if p == nil || w.api.cut[p] || w.api.mode != apiOK {
		return
	}
	w.faults.hit(faultSuspicion)
	if w.rng.IntN(4) > 0 {
		w.apiMode([]apiMode{apiLate, apiCommits}[w.rng.IntN(2)], 350*millisecond, 600*millisecond)
	}
	if q := p.proc; q != nil && !q.paused && !q.stalled && w.rng.IntN(2) == 0 {
		q.pause()
		w.until(310*millisecond, 450*millisecond, func() {
			if q.alive && q.paused {
				q.resume()
			}
		})
		return
	}
	w.api.cut[p] = true
	w.logf("api: does not reach pod %s", p.name)
	both := w.rng.IntN(2) == 0
	set := func(cut bool) {
		for _, o := range w.pods {
			if o != p {
				w.net.cutOff(w.net.link(p, o), cut)
				w.net.cutOff(w.net.link(o, p), cut && both)
			}
		}
	}
	set(true)
	w.until(280*millisecond, 500*millisecond, func() { set(false) })
	w.until(300*millisecond, 2*second, func() {
		w.api.cut[p] = false
		if p.proc != nil {
			w.api.watch(p.proc, 0)
		}
	})
}

// makeJoinMeetHandOver drains the primary while a third process catches up: its successor
// inherits a learner, and does not know yet what was acknowledged.
func (w *world) makeJoinMeetHandOver() {
	primary := w.podAt(w.api.rec.Primary.Address)
	joiner := w.anyPod()
	if len(w.pods) < 3 || primary == nil || primary.proc == nil || primary.proc.leaving || joiner == primary || joiner.proc == nil || !w.mayEnd(joiner.proc) {
		return
	}
	w.faults.hit(faultJoinMeetsHandOver)
	joiner.proc.crash(true)
	w.after(w.between(0, 10*millisecond), func() { w.restart(joiner) })
	w.whenLearning(joiner, 200, func() {
		if p := primary.proc; p != nil && !p.leaving && !w.healing {
			w.logf("%s is drained", p.name)
			p.leave(false)
			w.net.each(func(l *link) {
				if l.to == primary {
					l.slow = w.between(millisecond, 100*millisecond)
					w.until(50*millisecond, 300*millisecond, func() { l.slow = 0 })
				}
			})
		}
	})
}

// whenLearning waits until the process of a pod holds a part of the log.
func (w *world) whenLearning(p *pod, tries int, do func()) {
	w.after(w.between(millisecond/2, 2*millisecond), func() {
		switch {
		case tries == 0 || w.healing:
		case p.proc != nil && p.proc.status.LastSeq > 0:
			do()
		default:
			w.whenLearning(p, tries-1, do)
		}
	})
}

func (w *world) makeSlowLink() {
	l := w.someLink()
	w.faults.hit(faultSlowLink)
	l.slow = w.between(millisecond, 150*millisecond)
	w.logf("network: %s -> %s takes %d ms more", l.from.name, l.to.name, l.slow/millisecond)
	w.until(50*millisecond, 1500*millisecond, func() { l.slow = 0 })
}

func (w *world) makeReset() {
	l := w.someLink()
	w.net.reset(l.from, l.to)
}
