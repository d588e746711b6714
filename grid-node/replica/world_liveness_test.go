package replica_test

import "github.com/ordergrid/ordergrid/grid-node/replica"

// The second thread of every process: it drives the vitals, also while the loop
// stands still.

// beat is a tick of the liveness thread.
func (n *node) beat() {
	if n.up && !n.paused && n.vitals != nil {
		n.vitals.Tick(n.w.now(), &n.vout)
		n.sendVitals()
	}
}

// hear gives the liveness thread a frame.
func (n *node) hear(frame []byte) {
	if n.paused {
		n.vinbox = append(n.vinbox, frame)
		return
	}
	n.vitals.Receive(n.w.now(), frame, &n.vout)
	n.sendVitals()
}

func (n *node) sendVitals() {
	for i := range n.vout.Actions {
		a := &n.vout.Actions[i]
		n.w.send(n, a.Address, join(n.vout.Head(a), nil), true)
	}
	n.vout.Reset()
}

// resume lets a process or a loop that stood still see all it missed.
func (w *world) resume(n *node) {
	n.paused, n.stalled = false, false
	inbox, vinbox := n.inbox, n.vinbox
	n.inbox, n.vinbox = nil, nil
	n.step(replica.Event{Kind: replica.EventTick})
	for _, ev := range inbox {
		n.step(ev)
	}
	for _, frame := range vinbox {
		n.hear(frame)
	}
}
