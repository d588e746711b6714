package sim

import "github.com/ordergrid/ordergrid/grid-node/replica"

// pause is SIGSTOP; resume is SIGCONT. There are no ticks in between, frames and answers
// wait in the kernel.
func (p *process) pause() {
	p.paused, p.pausedAt = true, p.w.now
	p.w.logf("%s PAUSED", p.name)
}

// stall hangs the loop alone: a long garbage collection, a snapshot, a debugger.
func (p *process) stall() {
	p.stalled, p.pausedAt = true, p.w.now
	p.w.logf("the loop of %s HANGS", p.name)
}

func (p *process) resume() {
	w := p.w
	slept := w.now - p.pausedAt
	w.logf("%s RESUMED after %d ms, %d events wait", p.name, slept/millisecond, len(p.queue))
	if operatorMutant(mutClockStands) && p.paused {
		p.pod.clock.base -= slept
	}
	p.paused, p.stalled = false, false
	queue, vqueue := p.queue, p.vqueue
	p.queue, p.vqueue = nil, nil
	if slept > int64(w.profile.grace())/2+20*millisecond {
		p.wokenAt = w.now
	}
	hear := func() {
		for _, do := range vqueue {
			do()
		}
		vqueue = nil
	}
	if w.rng.IntN(2) == 0 { // either thread runs first
		hear()
	}
	p.catchUp(queue)
	hear()
}

// catchUp delivers what waited for the loop. The signal may have come after a wake-up read
// its clock and before it read its sockets: the first event is then stepped with the old
// time.
func (p *process) catchUp(queue []func()) {
	w := p.w
	if len(queue) > 0 && !p.awake && w.chance(300) {
		w.faults.hit(faultStaleClock)
		p.awake, p.clock, p.clockAt = true, p.pod.clock.time(p.pausedAt), p.pausedAt
		p.flushDue = true
		n := 1 + w.rng.IntN(min(len(queue), 8))
		for _, do := range queue[:n] {
			do()
		}
		queue = queue[n:]
		p.flushDue = false
		p.flush()
	} else if w.chance(500) {
		p.step(&replica.Event{Kind: replica.EventTick})
	}
	for _, do := range queue {
		do()
	}
}
