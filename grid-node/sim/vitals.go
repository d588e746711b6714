package sim

// The second thread of a process: signs of life, whatever the loop does.

// scheduleBeat makes the second thread tick.
func (p *process) scheduleBeat() {
	w := p.w
	every := int64(w.profile.beacon()) / 2
	w.after(every-w.between(0, every/10), func() {
		if !p.alive || w.stopped {
			return
		}
		if !p.paused {
			p.vitals.Tick(p.pod.clock.time(w.now), &p.vout)
			p.sendVitals()
		}
		p.scheduleBeat()
	})
}

// hear gives the second thread a frame.
func (p *process) hear(frame []byte) {
	if p.paused {
		p.vqueue = append(p.vqueue, func() { p.hear(frame) })
		return
	}
	if !p.alive || p.w.stopped {
		return
	}
	p.vitals.Receive(p.pod.clock.time(p.w.now), frame, &p.vout)
	p.sendVitals()
}

func (p *process) sendVitals() {
	for i := range p.vout.Actions {
		a := &p.vout.Actions[i]
		p.w.net.send(p, a.Address, joined(p.vout.Head(a), nil), classLiveness)
	}
	p.vout.Reset()
}
