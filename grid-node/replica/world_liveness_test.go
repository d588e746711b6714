package replica_test

import (
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The second thread of every process: it drives the vitals, also while the loop hangs.

// beat is a tick of the liveness thread: every 20 ms it sends heartbeats.
func (n *node) beat() {
	now := n.w.now()
	if !n.up || n.paused || n.beatAt != 0 && now.Mono-n.beatAt < 20*ms {
		return
	}
	n.beatAt = now.Mono
	for _, b := range n.vitals.Beats(now, nil) {
		n.sendRow(wire.TypeHeartbeat, b.Address, now.Mono, b.HeartbeatRow)
	}
}

// hear gives the liveness thread a frame.
func (n *node) hear(from string, frame []byte) {
	if n.paused {
		n.vinbox = append(n.vinbox, func() { n.hear(from, frame) })
		return
	}
	var m wire.Heartbeat
	t := wire.FrameType(frame)
	if err := wire.DecodeHeartbeat(frame, t, &m); err != nil {
		n.w.tb.Fatal(err)
	}
	if t == wire.TypeHeartbeatAck {
		n.vitals.Answered(n.w.now(), m.SentNs, &m.Rows[0])
	} else if answer, ok := n.vitals.Hear(n.w.now(), &m.Rows[0]); ok {
		n.sendRow(wire.TypeHeartbeatAck, from, m.SentNs, answer)
	}
}

// sendRow sends a single row: faults drop single rows.
func (n *node) sendRow(t wire.Type, to string, sentNs int64, row wire.HeartbeatRow) {
	n.w.send(n, to, wire.AppendHeartbeat(nil, t, &wire.Heartbeat{SentNs: sentNs, Rows: []wire.HeartbeatRow{row}}), true)
}

// resume delivers to a suspended process or loop everything it missed.
func (w *world) resume(n *node) {
	n.paused, n.stalled = false, false
	inbox, vinbox := n.inbox, n.vinbox
	n.inbox, n.vinbox = nil, nil
	n.step(replica.Event{Kind: replica.EventTick})
	for _, ev := range inbox {
		n.step(ev)
	}
	for _, hear := range vinbox {
		hear()
	}
}
