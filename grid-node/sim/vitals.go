package sim

import "github.com/ordergrid/ordergrid/grid-node/wire"

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
			if p.tick++; !w.profile.rests {
				p.vitals.Tick(p.pod.clock.time(w.now), &p.vout)
				p.sendVitals()
			} else if p.tick%2 == 0 {
				p.sendHeartbeats()
			}
		}
		p.scheduleBeat()
	})
}

// hear gives the second thread a frame.
func (p *process) hear(from *process, frame []byte) {
	if p.paused {
		p.vqueue = append(p.vqueue, func() { p.hear(from, frame) })
		return
	}
	if !p.alive || p.w.stopped {
		return
	}
	if t := wire.FrameType(frame); t == wire.TypeHeartbeat || t == wire.TypeHeartbeatAck {
		p.heartbeat(from, t, frame)
		return
	}
	p.vitals.Receive(p.pod.clock.time(p.w.now), frame, &p.vout)
	p.sendVitals()
}

// sendHeartbeats sends what Beacons say as the node does. The network of a world may lose
// and turn frames around, so each row travels by itself.
func (p *process) sendHeartbeats() {
	now := p.pod.clock.time(p.w.now)
	for _, b := range p.vitals.Beats(now, nil) {
		p.sendRow(wire.TypeHeartbeat, b.Address, now.Mono, b.HeartbeatRow)
	}
}

func (p *process) sendRow(t wire.Type, address string, sentNs int64, row wire.HeartbeatRow) {
	p.w.net.send(p, address, wire.AppendHeartbeat(nil, t, &wire.Heartbeat{SentNs: sentNs, Rows: []wire.HeartbeatRow{row}}), classLiveness)
}

func (p *process) heartbeat(from *process, t wire.Type, frame []byte) {
	now := p.pod.clock.time(p.w.now)
	var m wire.Heartbeat
	if err := wire.DecodeHeartbeat(frame, t, &m); err != nil {
		panic(err)
	}
	row := &m.Rows[0]
	if t == wire.TypeHeartbeatAck {
		p.vitals.Answered(now, m.SentNs, row)
		return
	}
	if answer, ok := p.vitals.Hear(now, m.SentNs, row); ok {
		p.sendRow(wire.TypeHeartbeatAck, from.self.Address, m.SentNs, answer)
	}
}

func (p *process) sendVitals() {
	for i := range p.vout.Actions {
		a := &p.vout.Actions[i]
		p.w.net.send(p, a.Address, joined(p.vout.Head(a), nil), classLiveness)
	}
	p.vout.Reset()
}
