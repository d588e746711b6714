package node

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fill makes a frame of what is committed from next on, as much as there is room for.
func (w *follower) fill(dst []byte) []byte {
	committed := w.log.Committed()
	room := min(maxFollowFrame, int(w.window.Load()-w.unread))
	m := wire.FollowEntries{ReqID: w.reqID, From: w.from, CommitSeq: committed, Lineage: w.lineage.Load(), Window: uint32(w.window.Load())}
	dst = wire.AppendFollowEntries(dst, w.p.id, &m)
	n := 0
	w.matched = 0
	var last []byte
	skipped := 0
	for ; w.fills(committed) && skipped < frameStep; w.pass() {
		entry := w.log.Read(w.next)
		if w.sel.takes(entry) {
			size := order.Padded(len(entry))
			if n > 0 && len(dst)+size > room {
				break
			}
			dst = append(dst, entry...)
			dst = append(dst, zeros[:size-len(entry)]...)
			n += size
			w.matched++
		} else {
			skipped++
		}
		last = entry
	}
	if last != nil {
		w.hash = order.Hash(last)
	}
	w.full = w.next <= committed
	wire.AddTail(dst, n)
	wire.SetFollowed(dst, w.next-1, w.hash)
	return dst
}

// fills reports whether a frame takes the next entry. One that only says something, of a stream that is far behind, has
// none: to look for some takes a turn.
func (w *follower) fills(committed uint64) bool {
	return !w.waits && w.next <= committed && (w.found || w.sel.all() || w.next+passEntries > committed)
}

// fillPart is fill of a Stream.
func (w *follower) fillPart(dst []byte) []byte {
	committed := w.log.Committed()
	room := min(maxFollowFrame, int(w.window.Load()-w.unread))
	start := len(dst)
	m := wire.StreamPart{ReqID: w.reqID, From: w.from, CommitSeq: committed, Lineage: w.lineage.Load(), Window: uint32(w.window.Load())}
	dst = wire.AppendStreamPart(dst, w.p.id, &m)
	fixed := len(dst)
	w.matched = 0
	x, more := w.executed, false
	var last []byte
	executions := func() int {
		if x == nil {
			return 0
		}
		return len(x.out)
	}
	if x != nil {
		x.out = x.out[:0]
	}
	skipped, before := 0, fixed
	for ; w.fills(committed) && skipped < frameStep; w.next++ {
		entry := w.log.Read(w.next)
		size := 0
		if w.sel.takes(entry) {
			size = order.Padded(len(entry))
		}
		first := len(dst)+executions() == fixed
		if !first && len(dst)+executions()+size > room {
			break
		}
		if x != nil {
			var ok bool
			if more, ok = x.add(&w.sel, entry, len(dst)+size, room, first); more || !ok {
				break
			}
		}
		if size > 0 {
			dst = append(append(dst, entry...), zeros[:size-len(entry)]...)
			w.matched++
		}
		if now := len(dst) + executions(); now == before {
			skipped++
		} else {
			before = now
		}
		w.examined++
		last = entry
	}
	if last != nil {
		w.hash = order.Hash(last)
	}
	w.full = w.next <= committed
	entries := len(dst) - fixed
	if x != nil {
		dst = append(dst, x.out...)
	}
	wire.AddTail(dst[start:], len(dst)-fixed)
	wire.SetStreamed(dst[start:], w.next-1, w.hash, entries, executions(), more)
	return dst
}

var zeros [8]byte
