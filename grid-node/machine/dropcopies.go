package machine

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// MaxDropCopies bounds the FIX sessions of a partition that get copies of reports of others.
const MaxDropCopies = 16

// FixCopiesForm is the first form of reports of which a generation's gateways know copies.
const FixCopiesForm = 7

// dropCopies are the FIX sessions that get copies of reports of others, see docs/adr/0089: the
// targets, and their sources. A partition without one has none of both.
type dropCopies struct {
	targets []copyTarget            // rising slots
	of      map[[2]uint64][]copying // by id of the source; follows from targets

	expected uint32 // of the snapshot that is being restored
}

// copyTarget is a session that gets copies.
type copyTarget struct {
	slot    uint32
	sources []byte // as in its entry
	since   uint64 // that entry; 0 if it is before the snapshot that the state is of. It is in no digest
}

// copying is a target of a source, with the source's name.
type copying struct {
	slot uint32
	name string
}

// FixCopy is a copy of a report of the last entry.
type FixCopy struct {
	Slot   uint32 // of the session that gets it
	Number uint64 // the MsgSeqNum of the copy
	Report int    // in Books.Reports; -1: the report of an order that is stored, or of a refusal
	Record int    // of an entry of kind fix: its record that is the refusal
	Name   string // of the source, see order.AppendSource
}

// Copied returns the copies of what the last entry reported, in order. They are valid until the next.
func (x *Fix) Copied() []FixCopy { return x.copied }

// DropCopies is how many sessions get copies.
func (x *Fix) DropCopies() int { return len(x.copies.targets) }

// EachDropCopy calls f for each session that gets copies, by rising slots: with its sources, as their
// entry has them, and that entry, 0 if it is before the snapshot that the state is of.
func (x *Fix) EachDropCopy(f func(slot uint32, sources []byte, since uint64)) {
	for i := range x.copies.targets {
		t := &x.copies.targets[i]
		f(t.slot, t.sources, t.since)
	}
}

// Sources returns the sources of a session that gets copies, as its entry has them; nil of another one.
func (x *Fix) Sources(slot uint32) []byte {
	if i, is := x.copies.find(slot); is {
		return x.copies.targets[i].sources
	}
	return nil
}

func (c *dropCopies) find(slot uint32) (int, bool) {
	return slices.BinarySearchFunc(c.targets, slot, func(t copyTarget, slot uint32) int { return int(t.slot) - int(slot) })
}

func (t *copyTarget) hash() uint64 { return mix(uint64(t.slot), xxhash.Sum64(t.sources), 15) }

// ErrDropCopiesFull is what is wrong with sources that are right but for the number of sessions that get copies.
var ErrDropCopiesFull = fmt.Errorf("allowed: for %d sessions of a partition", MaxDropCopies)

// checkCopies rejects sources that no primary gives a session.
func (x *Fix) checkCopies(e *order.Entry, payload []byte) error {
	c := order.DropCopyOf(payload)
	s := x.Find(c.Slot, c.Generation)
	switch {
	case c.Op != order.DropCopySources:
		return fmt.Errorf("entry %d: a drop copy has op %d, allowed: 1 in a log", e.Seq, c.Op)
	case s == nil || s.Attempt != c.Attempt:
		return fmt.Errorf("entry %d: drop copies for FIX session %d in generation %d and attempt %d, allowed: one that is open, in its own", e.Seq, c.Slot, c.Generation, c.Attempt)
	case len(c.Sources) > 0 && s.Form < FixCopiesForm:
		return fmt.Errorf("entry %d: drop copies for FIX session %d, whose reports have form %d, allowed: %d or more", e.Seq, c.Slot, s.Form, FixCopiesForm)
	}
	for rest := c.Sources; len(rest) > 0; {
		id, _, after, _ := order.NextSource(rest)
		if rest = after; id == s.ID {
			return fmt.Errorf("entry %d: drop copies of FIX session %d for itself, allowed: of other sessions", e.Seq, c.Slot)
		}
	}
	if len(c.Sources) > 0 && x.Sources(c.Slot) == nil && x.DropCopies() == MaxDropCopies {
		return fmt.Errorf("entry %d: drop copies for FIX session %d, %w", e.Seq, c.Slot, ErrDropCopiesFull)
	}
	return nil
}

// setSources gives a session its sources, by the entry since; none end its copies.
func (x *Fix) setSources(slot uint32, sources []byte, since uint64) {
	c := &x.copies
	i, is := c.find(slot)
	if is {
		x.sum -= c.targets[i].hash()
		c.targets = slices.Delete(c.targets, i, i+1)
	}
	if len(sources) > 0 {
		t := copyTarget{slot, bytes.Clone(sources), since}
		c.targets = slices.Insert(c.targets, i, t)
		x.sum += t.hash()
	}
	c.index()
}

// index finds the targets by source.
func (c *dropCopies) index() {
	if c.of = nil; len(c.targets) == 0 {
		return
	}
	c.of = map[[2]uint64][]copying{}
	for _, t := range c.targets {
		for rest := t.sources; len(rest) > 0; {
			id, name, after, _ := order.NextSource(rest)
			c.of[id] = append(c.of[id], copying{t.slot, string(name)})
			rest = after
		}
	}
}

// copy makes the copies of what the entry reported. They take numbers behind all that it gave.
func (x *Fix) copy(e *order.Entry, payload []byte, b *Books) {
	if b != nil {
		for i := range b.reports {
			if r := &b.reports[i]; b.copied(e, r) {
				x.copyTo(r.Slot, FixCopy{Report: i})
			}
		}
	}
	switch {
	case e.Kind == order.KindOrder && e.Flags&order.FlagFix != 0:
		x.copyTo(e.Session, FixCopy{Report: -1})
	case e.Kind == order.KindFix:
		n := 0
		for rest := payload; len(rest) > 0; n++ {
			var r order.FixRecord
			rest = order.NextFix(rest, &r)
			if r.Op == order.FixRefusal && (order.IsCopied(r.Body) || mutant(mutCopyOfStates)) {
				x.copyTo(r.Slot, FixCopy{Report: -1, Record: n})
			}
		}
	}
}

// copied reports whether a report of the last entry is an ExecutionReport: not what answers a
// mass cancel, nor that a cancel was rejected.
func (b *Books) copied(e *order.Entry, r *FixReport) bool {
	return b.out[r.Record].Kind != match.CancelRejected && (e.Kind != order.KindFix || !r.Answer)
}

// copyTo makes the copies of a report of a session.
func (x *Fix) copyTo(source uint32, c FixCopy) {
	for _, to := range x.copies.of[x.slots[source].ID] {
		x.give(to, c)
	}
	if mutant(mutCopyUnfiltered) && len(x.copies.of[x.slots[source].ID]) == 0 {
		x.give(copying{x.copies.targets[0].slot, "all"}, c)
	}
}

// give gives a copy the next number of its session, if the gateways of that know copies.
func (x *Fix) give(to copying, c FixCopy) {
	s := &x.slots[to.slot]
	if s.Form < FixCopiesForm {
		return
	}
	x.sum -= s.hash(to.slot)
	c.Slot, c.Name, c.Number = to.slot, to.name, s.Out
	if !mutant(mutCopyNumbersShared) || len(x.copied) == 0 {
		s.Out++
	}
	x.sum += s.hash(to.slot)
	x.copied = append(x.copied, c)
}

func (c *dropCopies) clone() dropCopies {
	return dropCopies{targets: slices.Clone(c.targets), of: maps.Clone(c.of)}
}

// appendTo appends a target in a snapshot.
func (t *copyTarget) appendTo(dst []byte) []byte {
	dst = le.AppendUint64(dst, uint64(t.slot)|uint64(len(t.sources))<<32)
	return append(dst, t.sources...)
}

// dropCopiesHead reads what the head says of drop copies.
func (d *decoder) dropCopiesHead(m *Machine, has bool) {
	if m.Fix.copies = (dropCopies{}); !has {
		return
	}
	n := d.u64("nDropCopies")
	if n == 0 || n > MaxDropCopies {
		d.fail("nDropCopies", n, "1..16")
	}
	m.Fix.copies.expected = uint32(n)
}

// dropCopy reads a target, which is in a part of its own.
func (d *decoder) dropCopy(x *Fix) {
	head := d.u64("copyTarget")
	slot, n, c := uint32(head), head>>32, &x.copies
	if d.err != nil {
		return
	}
	if n == 0 || n > order.MaxCopyList || n > uint64(len(d.b)) || order.CheckSources(d.b[:n]) != nil {
		d.fail("copySources", n, "1..512 sources in rising order, and no more than the bytes that follow")
		return
	}
	if k := len(c.targets); int(slot) >= len(x.slots) || !x.slots[slot].Open || k > 0 && slot <= c.targets[k-1].slot {
		d.fail("copyTarget", uint64(slot), "rising slots of open FIX sessions")
		return
	}
	x.setSources(slot, d.b[:n], 0)
	d.b = d.b[n:]
}
