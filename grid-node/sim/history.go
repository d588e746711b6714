package sim

import (
	"github.com/ordergrid/ordergrid/internal/linear"
)

// history is what the clients saw: every order with when it was sent and where
// it was acknowledged, every read that was answered.
type history struct {
	ops     []histOp
	known   []string          // ClOrdIDs as their acknowledgements came in
	writers map[string]int    // orders submitted, by ClOrdID
	revived map[string]uint64 // lineages that began with an order that was rejected before, by ClOrdID
}

type histOp struct {
	linear.Op
	lineage uint64 // of the answer, 0 without one
	dropped bool   // refused: it never happened
	decided bool   // by a function
	evicted bool   // its session was evicted, in a flood or by a late OpenSession of its own: its outcome stays unknown
}

func (h *history) submit(client int, key string, at int64) int {
	h.ops = append(h.ops, histOp{Op: linear.Op{Client: client, Kind: linear.Submit, Key: key, Call: at, Return: linear.Never}})
	h.writers[key]++
	return len(h.ops) - 1
}

func (h *history) acked(op int, at int64, seq, lineage uint64) {
	o := &h.ops[op]
	o.Return, o.Seq, o.lineage = at, seq, lineage
	h.known = append(h.known, o.Key)
}

// drop removes a rejected write.
func (h *history) drop(op int) { h.ops[op].dropped = true }

// refused turns a write into a read: its ClOrdID existed already, at seq.
func (h *history) refused(op int, at int64, seq, lineage uint64) {
	h.acked(op, at, seq, lineage)
	h.ops[op].Kind = linear.Get
}

func (h *history) read(client int, key string, call, ret int64, seq, lineage uint64) {
	h.ops = append(h.ops, histOp{Op: linear.Op{Client: client, Kind: linear.Get, Key: key, Call: call, Return: ret, Seq: seq}, lineage: lineage})
	if seq != 0 {
		h.known = append(h.known, key)
	}
}

// of returns the history of one lineage. An order acknowledged in an earlier one that
// survived was there when it began, at the latest; a lost or unanswered one may still
// arrive.
func (h *history) of(lineage uint64, t *timeline) []linear.Op {
	var ops []linear.Op
	for i := range h.ops {
		o := h.ops[i]
		switch {
		case o.dropped && (h.revived[o.Key] == 0 || lineage < h.revived[o.Key]):
			continue
		case o.lineage == lineage:
		case o.Kind == linear.Get:
			continue
		case t.orders[o.Key] != 0 && t.orders[o.Key] <= uint64(t.base):
			o.Return, o.Seq = max(o.Call, t.begunAt), t.orders[o.Key]
		default:
			o.Return, o.Seq = linear.Never, 0
		}
		ops = append(ops, o.Op)
	}
	return ops
}

// acknowledgedIn are the writes that were answered in a lineage.
func (h *history) acknowledgedIn(lineage uint64) []linear.Op {
	var ops []linear.Op
	for i := range h.ops {
		if o := &h.ops[i]; o.lineage == lineage && o.Kind == linear.Submit && !o.dropped {
			ops = append(ops, o.Op)
		}
	}
	return ops
}

// checkHistory passes every lineage's history to Porcupine, and checks the real-time order
// across orders.
func (w *world) checkHistory() {
	for lineage := 1; lineage < len(w.check.timelines) && !w.stopped; lineage++ {
		ops := w.history.of(uint64(lineage), w.check.timelines[lineage])
		w.stats.Ops += uint64(len(ops))
		if v := linear.Check(ops); v != nil {
			w.violation("linearizable", "lineage %d: %v", lineage, v)
			w.check.history = v.Ops
		} else if v := linear.CheckOrder(w.history.acknowledgedIn(uint64(lineage))); v != nil {
			w.violation("order", "lineage %d: %v", lineage, v)
			w.check.history = v.Ops
		}
	}
}
