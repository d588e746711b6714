package validate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/linear"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Model of Check.
type Model struct {
	Orders, Reads int // operations checked
	Violations    []string
	// Example is the first history that cannot be explained, for a picture.
	Example []linear.Op
}

// CheckModel judges every partition separately, as guarantees are per partition. Of a drill, which may
// go on all night, it checks one fault after the other (Windows).
func CheckModel(h *history.History) Model {
	var r Model
	for _, w := range Windows(h) {
		r.check(h, w)
	}
	return r
}

// check judges the operations in w.
func (r *Model) check(h *history.History, w history.Span) {
	for _, p := range h.Partitions {
		ops := Operations(h, p, w)
		for i := range ops {
			if ops[i].Kind == linear.Get {
				r.Reads++
			} else {
				r.Orders++
			}
		}
		for _, v := range []*linear.Violation{linear.Check(ops), linear.CheckOrder(ops)} {
			if v == nil {
				continue
			}
			r.Violations = append(r.Violations, fmt.Sprintf("%s: %v", p, v))
			if r.Example == nil {
				r.Example = v.Ops
			}
		}
		r.Violations = append(r.Violations, staleReads(h, p, w)...)
		r.Violations = append(r.Violations, staleAcks(h, p, w)...)
	}
}

// Operations are the orders and confirmed reads of one partition in w, and the orders that these
// reads asked for. Orders that were certainly refused are excluded: a read that finds one finds an
// order that was never written.
func Operations(h *history.History, p wire.PartitionID, w history.Span) []linear.Op {
	var ops []linear.Op
	var notes epochNotes
	asked := map[[2]int64]bool{}
	for i := range h.Reads {
		r := &h.Reads[i]
		if r.Partition != p || !overlaps(w, r.Call, r.Return) {
			continue
		}
		asked[[2]int64{int64(r.Stream), r.Index}] = true
		ops = append(ops, linear.Op{Client: -1 - r.Node, Kind: linear.Get, Key: h.Streams[r.Stream].ID.ClOrdID(r.Index), Call: r.Call, Return: r.Return, Seq: r.Seq,
			Note: fmt.Sprintf("from %s, epoch %d, commit %d", h.Nodes[r.Node].Pod, r.Epoch, r.CommitSeq)})
	}
	add := func(s int, i int64) {
		stream := &h.Streams[s]
		o := &stream.Orders[i]
		op := linear.Op{Client: s<<8 | int(o.Thread), Kind: linear.Submit, Key: stream.ID.ClOrdID(i), Call: o.T2, Return: o.T3, Seq: o.Seq, Note: notes.of(o.Epoch)}
		switch {
		case o.Fate == load.Rejected || o.T2 == 0:
			return
		case o.Fate != load.Acked:
			op.Return, op.Seq = linear.Never, 0
		}
		ops = append(ops, op)
	}
	ordersIn(h, p, w, func(s int, i int64) {
		delete(asked, [2]int64{int64(s), i})
		add(s, i)
	})
	for o := range asked { // earlier ones
		add(int(o[0]), o[1])
	}
	return ops
}

// maxViolations bounds the report of a broken grid.
const maxViolations = 10

// event is something that showed a committed prefix: an acknowledgement at seq,
// or a read taken from a prefix of seq.
type event struct {
	call, ret int64
	seq       uint64
	epoch     uint64
	read      bool
	index     int64
	stream    int    // of an order
	pod       string // that answered a read
}

func (e *event) what() string {
	if e.read {
		return fmt.Sprintf("read %d at %s", e.index, e.pod)
	}
	return fmt.Sprintf("order %d of stream %d", e.index, e.stream)
}

// staleReads: a confirmed read issued after the log was known to reach some place is answered from
// a prefix that reaches there too. It checks across orders what linear.Check checks for one.
func staleReads(h *history.History, p wire.PartitionID, w history.Span) []string {
	events := events(h, p, w)
	return overtaken(events, func(e event) uint64 { return e.seq }, func(e event, known event) string {
		if !e.read {
			return "" // orders: linear.CheckOrder
		}
		return fmt.Sprintf("%s: stale read: %s was answered from the prefix %d, when %s had shown %d before it was asked", p, e.what(), e.seq, known.what(), known.seq)
	})
}

// staleAcks: after an answer in an epoch, no later request is answered in an older one.
func staleAcks(h *history.History, p wire.PartitionID, w history.Span) []string {
	return overtaken(events(h, p, w), func(e event) uint64 { return e.epoch }, func(e event, known event) string {
		return fmt.Sprintf("%s: %s was answered out of epoch %d, when %s had been answered in epoch %d before it was asked", p, e.what(), e.epoch, known.what(), known.epoch)
	})
}

func events(h *history.History, p wire.PartitionID, w history.Span) []event {
	var out []event
	ordersIn(h, p, w, func(s int, i int64) {
		if o := &h.Streams[s].Orders[i]; o.Fate == load.Acked {
			out = append(out, event{call: o.T2, ret: o.T3, seq: o.Seq, epoch: o.Epoch, index: i, stream: s})
		}
	})
	for i := range h.Reads {
		if r := &h.Reads[i]; r.Partition == p && overlaps(w, r.Call, r.Return) {
			out = append(out, event{call: r.Call, ret: r.Return, seq: r.CommitSeq, epoch: r.Epoch, read: true, index: int64(i), pod: h.Nodes[r.Node].Pod})
		}
	}
	return out
}

// overtaken finds events whose value is lower than that of one which had ended
// before they began.
func overtaken(events []event, value func(event) uint64, say func(e, known event) string) (out []string) {
	ended := slices.Clone(events)
	slices.SortFunc(ended, func(a, b event) int { return cmp.Compare(a.ret, b.ret) })
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.call, b.call) })
	var known event
	next := 0
	for _, e := range events {
		for next < len(ended) && ended[next].ret < e.call {
			if value(ended[next]) > value(known) {
				known = ended[next]
			}
			next++
		}
		if value(e) >= value(known) {
			continue
		}
		if text := say(e, known); text != "" && len(out) < maxViolations {
			out = append(out, text)
		}
	}
	return out
}
