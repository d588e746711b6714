package sim

import "github.com/ordergrid/ordergrid/grid-node/wire"

// The second thread of a process: heartbeats, whatever the loop does.

// scheduleBeat makes the second thread tick.
func (p *process) scheduleBeat() {
	w := p.w
	every := int64(w.profile.beacon()) / 2
	w.after(every-w.between(0, every/10), func() {
		if !p.alive || w.stopped {
			return
		}
		if !p.paused {
			if p.tick++; p.tick%2 == 0 {
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
	p.heartbeat(from, wire.FrameType(frame), frame)
}

// sendHeartbeats sends heartbeats as the node does. The network of a world may lose and
// reorder frames, so each row travels by itself.
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
	if answer, ok := p.vitals.Hear(now, row); ok {
		p.sendRow(wire.TypeHeartbeatAck, from.self.Address, m.SentNs, answer)
	}
}
