package replica_test

import (
	"github.com/ordergrid/ordergrid/grid-node/frametext"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// faults drop messages.
type faults struct {
	cut  map[[2]string]bool // by pod: nothing passes from the first to the second
	drop []dropRule
	keep []dropRule // these pass, and a copy is kept
	kept []message
}

type dropRule struct {
	from, to string // pods
	typ      wire.Type
	skip     int // messages that pass first
	n        int // messages still to be dropped
}

// copies keeps messages to be delivered again later.
func (f *faults) copies(w *world, m *message) {
	from, to := w.byAddress(m.from).pod, w.byAddress(m.to).pod
	for i := range f.keep {
		if k := &f.keep[i]; k.n > 0 && k.from == from && k.to == to && k.typ == wire.FrameType(m.frame) {
			k.n--
			f.kept = append(f.kept, *m)
		}
	}
}

func (f *faults) drops(w *world, m *message) bool {
	from, to := w.byAddress(m.from).pod, w.byAddress(m.to).pod
	if f.cut[[2]string{from, to}] {
		return true
	}
	for i := range f.drop {
		if d := &f.drop[i]; d.n > 0 && d.from == from && d.to == to && d.typ == wire.FrameType(m.frame) {
			if d.skip > 0 {
				d.skip--
				continue
			}
			d.n--
			return true
		}
	}
	return false
}

// tracing reports whether a frame is worth a line: beacons are not.
func (w *world) tracing(m *message) bool { return !w.quiet && !frametext.Quiet(m.frame) }

func (w *world) frameText(m *message) string {
	return w.byAddress(m.from).pod + " -> " + w.byAddress(m.to).pod + ": " + frametext.Peer(m.frame, w.short)
}

func replyText(frame []byte) string { return frametext.Reply(frame) }
