package validate

import (
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/audit"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Accounts are the places of every order that was sent. They are computed from the entries alone,
// independently of the ledger of Check, so that the two can be compared.
type Accounts struct {
	Places int // copies that were compared, all partitions together
	// Unjudged orders were acknowledged in a partition of which no copy in sync could be read, and
	// it is not known that there is none.
	Unjudged int64
	Sinks    int // partitions with something downstream to compare

	Downstream int64 // orders of ours downstream
	// Lost orders were acknowledged and are in no copy that is in sync, and not
	// downstream.
	Lost []Order
	// MissingInCopies were acknowledged and are not lost, but not in every copy that is in sync;
	// MissingDownstream are in a copy and not downstream, though something downstream could be
	// read.
	MissingInCopies, MissingDownstream int64
	// Duplicated orders are at two places of one copy, or of what is downstream, or in
	// their own partition and in another one.
	Duplicated int64
	// Gaps are missing sequence numbers below existing ones, in the copy, or downstream, that has
	// most of them.
	Gaps int64
	// OutOfOrder counts orders of a session that precede one the session sent earlier, and entries
	// whose epoch is lower than that of the previous one.
	OutOfOrder int64
	// UnknownFound had no answer and are found; UnknownAbsent are not.
	UnknownFound, UnknownAbsent int64
	// RefusedFound were refused, or never sent, and are found; Misplaced are not at the place in
	// their receipt; Corrupt differ from what was sent; Repeated receipts named the place of
	// another order.
	RefusedFound, Misplaced, Corrupt, RepeatedReceipts int64

	astray map[Order]bool // seen in another partition than they were sent to
}

// astray finds orders in the logs of other partitions than their stream's: with the same ClOrdID,
// accepted again after the number of partitions had changed.
func astray(h *history.History) map[Order]bool {
	found := map[Order]bool{}
	for i := range h.Logs {
		l := &h.Logs[i]
		for j := range l.Entries {
			x := &l.Entries[j]
			if x.Stream < 0 || x.Stream >= len(h.Streams) || h.Streams[x.Stream].Partition == l.Partition || x.Index >= int64(len(h.Streams[x.Stream].Orders)) {
				continue
			}
			found[Order{x.Stream, x.Index}] = true
		}
	}
	return found
}

// Order of a history.
type Order struct {
	Stream int
	Index  int64
}

// edit changes the logs before they are judged, for the negative control.
type edit struct {
	drop, repeat map[Order]bool
}

// Take computes the accounts of h.
func Take(h *history.History) *Accounts { return take(h, edit{}) }

// take computes them from logs changed by e: orders of drop are removed from every copy and every
// sink, orders of repeat are repeated at the end.
func take(h *history.History, e edit) *Accounts {
	a := &Accounts{astray: astray(h)}
	for _, p := range h.Partitions {
		a.partition(h, p, e)
	}
	return a
}

// where an order of a stream was seen.
const (
	inSome    = 1 << iota // in a copy that is in sync
	lacking               // not in every one of these
	sunk                  // downstream
	doubled               // at two places
	here                  // in the present copy
	wrong                 // misplaced or corrupt somewhere: counted
	elsewhere             // in a copy that is not in sync: found, but not reliable
)

// marks of the streams of one partition, by stream and index.
type marks map[int][]uint8

func (a *Accounts) partition(h *history.History, p wire.PartitionID, e edit) {
	m := marks{}
	for s := range h.Streams {
		if h.Streams[s].Partition == p {
			m[s] = make([]uint8, len(h.Streams[s].Orders))
		}
	}
	gaps, copies := int64(0), 0
	for i := range h.Logs {
		l := &h.Logs[i]
		if l.Partition != p || l.Error != "" {
			continue
		}
		gaps = max(gaps, a.copy(h, l, m, e))
		a.Places++
		if l.InSync {
			copies++
		}
	}
	g, files := a.downstream(h, p, m, e)
	a.Gaps += max(gaps, g)
	if files > 0 {
		a.Sinks++
	}
	if copies == 0 && !h.NoHolder(p) {
		a.unjudged(h, m)
		return
	}
	a.settle(h, m, copies > 0, files > 0)
}

func (a *Accounts) unjudged(h *history.History, m marks) {
	for s := range m {
		for i := range h.Streams[s].Orders {
			if h.Streams[s].Orders[i].Fate == load.Acked {
				a.Unjudged++
			}
		}
	}
}

// copy processes one copy of a log and returns its gaps.
func (a *Accounts) copy(h *history.History, l *history.Log, m marks, e edit) (gaps int64) {
	log, epoch := audit.Dense{Next: h.Base(l.Partition).Seq + 1}, uint64(0)
	order := newSequence(h, m)
	see := func(x *history.Entry) {
		missing, _ := log.See(x.Seq)
		gaps += int64(missing)
		if x.Epoch < epoch {
			a.OutOfOrder++
		}
		epoch = max(epoch, x.Epoch)
		if own(h, m, x) {
			a.OutOfOrder += order.see(x)
			a.mark(h, m, x, here)
		} else if x.Stream >= 0 && m[x.Stream] != nil {
			a.RefusedFound++ // of one of our streams, and never created
		}
	}
	e.each(l.Entries, see)
	for s, of := range m {
		for i := range of {
			a.left(h, s, i, &of[i], l.InSync)
		}
	}
	return gaps
}

// left records what the present copy had of an order.
func (a *Accounts) left(h *history.History, s, i int, mark *uint8, inSync bool) {
	was := *mark&here != 0
	*mark &^= here
	switch {
	case was && inSync:
		*mark |= inSome
	case was:
		*mark |= elsewhere
	case inSync && h.Streams[s].Orders[i].Fate == load.Acked:
		*mark |= lacking
	}
}

// own reports whether an entry is an order of this partition's streams that was created.
func own(_ *history.History, m marks, e *history.Entry) bool {
	return e.Stream >= 0 && e.Index < int64(len(m[e.Stream]))
}

// mark notes an order that was found; bit is here or sunk.
func (a *Accounts) mark(h *history.History, m marks, e *history.Entry, bit uint8) {
	mark, o := &m[e.Stream][e.Index], &h.Streams[e.Stream].Orders[e.Index]
	if *mark&bit != 0 {
		*mark |= doubled
		return
	}
	*mark |= bit
	if *mark&wrong != 0 {
		return
	}
	switch {
	case e.Corrupt:
		a.Corrupt++
	case o.Fate == load.Acked && !o.At(e.Seq, e.Hash):
		a.Misplaced++
	default:
		return
	}
	*mark |= wrong
}

// each calls see for the entries as modified by e.
func (e edit) each(entries []history.Entry, see func(*history.Entry)) {
	if len(e.drop)+len(e.repeat) == 0 {
		for i := range entries {
			see(&entries[i])
		}
		return
	}
	var again []history.Entry
	for i := range entries {
		o := Order{entries[i].Stream, entries[i].Index}
		if e.drop[o] {
			continue
		}
		if see(&entries[i]); e.repeat[o] {
			again = append(again, entries[i])
		}
	}
	for i := range again {
		last := &entries[len(entries)-1]
		again[i].Seq, again[i].Epoch = last.Seq+1+uint64(i), last.Epoch
		see(&again[i])
	}
}

// downstream merges the files of the sinks of a partition. Equal entries at one place are one: they
// were written again around a failover. files is 0 where one of them could not be read: what is
// missing may be in it.
func (a *Accounts) downstream(h *history.History, p wire.PartitionID, m marks, e edit) (gaps int64, files int) {
	base := h.Base(p).Seq
	at := map[int][]uint64{} // of orders, where they are
	for s := range m {
		at[s] = make([]uint64, len(m[s]))
	}
	var there audit.Set
	unread := false
	for i := range h.Sinks {
		f := &h.Sinks[i]
		if f.Partition != p {
			continue
		}
		files++
		unread = unread || f.Error != ""
		last := uint64(0)
		e.each(f.Entries, func(x *history.Entry) {
			if i := x.Seq - base - 1; !far(&there, i) {
				there.Add(i)
			}
			again := x.Seq <= last // a repeated line
			last = x.Seq
			if !own(h, m, x) {
				return
			}
			if mark := &m[x.Stream][x.Index]; *mark&sunk != 0 && !again && at[x.Stream][x.Index] == x.Seq {
				return
			}
			at[x.Stream][x.Index] = x.Seq
			a.mark(h, m, x, sunk)
		})
	}
	if unread {
		return 0, 0
	}
	return there.Holes(), files
}

// settle computes the totals.
func (a *Accounts) settle(h *history.History, m marks, copies, files bool) {
	for s := range h.Streams { // in the order of the history: results are deterministic
		for i, mark := range m[s] {
			found := mark&(inSome|sunk|elsewhere) != 0
			if mark&sunk != 0 {
				a.Downstream++
			}
			strayed := a.astray[Order{s, int64(i)}]
			switch {
			case mark&doubled != 0, strayed && found:
				a.Duplicated++
			case strayed:
				a.Misplaced++
			}
			switch h.Streams[s].Orders[i].Fate {
			case load.Acked:
				a.acked(Order{s, int64(i)}, mark, copies, files)
			case load.Unknown:
				if found {
					a.UnknownFound++
				} else {
					a.UnknownAbsent++
				}
			default:
				if found {
					a.RefusedFound++
				}
			}
		}
	}
	a.RepeatedReceipts += repeatedReceipts(h, m)
}

func (a *Accounts) acked(o Order, mark uint8, copies, files bool) {
	switch {
	case mark&(inSome|sunk) == 0:
		a.Lost = append(a.Lost, o)
	case mark&lacking != 0 || !copies:
		a.MissingInCopies++
	case files && mark&sunk == 0:
		a.MissingDownstream++
	}
}
