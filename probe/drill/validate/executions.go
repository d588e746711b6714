package validate

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/replay"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// Executions is the account of a grid that matches: its logs are matched again, naively, and what
// copies say and sessions were told is held against that.
type Executions struct {
	Copies                           int // compared
	Orders, Records, Trades, Resting int64
	Auctions                         int64
	Told                             int64 // executions that sessions of the run were told
	Lost                             int64 // of these, in no log, or there as another one
	Different                        int64 // entries that a copy in sync says it executed otherwise
	Unsummed                         int64 // orders, positions and sums of a copy that do not add up
	Control                          ExecutionControl

	LostExamples []string // 16 at most
	Words        []string // findings, the first of each kind
	Unread       []string
}

// ExecutionControl is the negative control of Executions: of one copy a trade is taken out, put in
// twice, done out of the order of price and time, and given to another owner. A judge that does not
// find each of them proves nothing.
type ExecutionControl struct{ Done, Found int64 }

// OK reports whether each was found.
func (c ExecutionControl) OK() bool { return c.Done > 0 && c.Found == c.Done }

// maxLost bounds the lost executions that are named.
const maxLost = 16

// TakeExecutions computes the account; nil for a grid that matches nothing. seed chooses the trade
// of the control.
func TakeExecutions(h *history.History, seed uint64) *Executions {
	if h.Books == nil {
		return nil
	}
	a := &Executions{}
	for _, p := range h.Partitions {
		a.partition(h, p, seed)
	}
	return a
}

// copied is one copy while the log is matched again.
type copied struct {
	of    *history.Copied
	rest  []byte
	fills *replay.Fills
	// resting are the orders that have to be left behind the last entry that the copy was read to.
	resting []uint64
}

// of takes what the copy says the entry did.
func (c *copied) did(seq uint64) (did []match.Record) {
	for len(c.rest) > 0 {
		entry, n, r := history.ExecutionOf(c.rest)
		if entry > seq {
			break
		}
		if int(n) != len(did)+1 || entry < seq {
			r.Kind = 0 // out of its place: it is none that there can be
		}
		did, c.rest = append(did, r), c.rest[history.ExecutionSize:]
	}
	return did
}

func (a *Executions) partition(h *history.History, p wire.PartitionID, seed uint64) {
	at := slices.IndexFunc(h.Books, func(b history.Books) bool { return b.Partition == p })
	if at < 0 || h.Books[at].Error != "" {
		why := "its log was not read"
		if at >= 0 {
			why = h.Books[at].Error
		}
		a.Unread = append(a.Unread, fmt.Sprintf("%s: its executions are not judged: %s", p, why))
		return
	}
	var copies []*copied
	for i := range h.Executions {
		x := &h.Executions[i]
		switch {
		case x.Partition != p || !x.InSync && x.Error != "":
		case x.Error != "":
			a.Unread = append(a.Unread, fmt.Sprintf("%s: executions of %s: %s", p, x.Where, x.Error))
		default:
			if short := endsEarly(h, p, x.Where, x.Through); x.InSync && short != "" {
				a.Unread = append(a.Unread, fmt.Sprintf("%s: executions of %s %s", p, x.Where, short))
			}
			copies = append(copies, &copied{of: x, rest: x.Records, fills: replay.NewFills()})
		}
	}
	a.Copies += len(copies)
	a.replay(h, p, h.Books[at].Entries, copies, seed)
}

// replay matches a log again.
func (a *Executions) replay(h *history.History, p wire.PartitionID, entries [][]byte, copies []*copied, seed uint64) {
	log, told := replay.NewLog(), toldOf(h, p)
	hashes := hashesOf(h, p)
	var differ, other, sums findings
	control := newExecutionControl(seed % uint64(max(len(entries)/2, 1)))
	for _, b := range entries {
		var e order.Entry
		if _, err := order.DecodeEntry(b, &e); err != nil {
			a.Unread = append(a.Unread, fmt.Sprintf("%s: its log: %v", p, err))
			return
		}
		if hash, known := hashes[e.Seq]; known && hash != order.Hash(b) {
			other.add(true, func() string {
				return fmt.Sprintf("%s: entry %d is another one than the one that was compared", p, e.Seq)
			})
		}
		want, err := log.Entry(&e, order.Payload(b))
		differ.add(err != nil, func() string { return fmt.Sprintf("%s: %v", p, err) })
		if err != nil {
			a.Different++
		}
		for i, c := range copies {
			if e.Seq > c.of.Through {
				continue
			}
			did := c.did(e.Seq)
			if n, text := replay.Difference(did, want); n > 0 {
				a.Different++
				differ.add(true, func() string { return fmt.Sprintf("%s: %s: execution %s/%d.%d %s", p, c.of.Where, p, e.Seq, n, text) })
			}
			for n := range did {
				c.fills.Add(name(p, e.Seq, n+1), &did[n])
			}
			if i == 0 {
				control.entry(p, e.Seq, did, want)
			}
			if e.Seq == c.of.Through {
				c.resting = log.Resting()
			}
		}
		told.entry(e.Seq, want)
		a.Records += int64(len(want))
		for n := range want {
			if want[n].Kind == match.AuctionPrice {
				a.Auctions++
			}
		}
	}
	for _, c := range copies {
		if at := len(entries); at > 0 && c.of.Through > order.Seq(entries[at-1]) { // it was read later than the log
			c.resting = log.Resting()
		}
	}
	a.sum(p, log, copies, &sums)
	a.Told += told.n
	a.lost(told.wrong(p))
	if len(copies) > 0 {
		done, found := control.finish(copies[0].resting)
		a.Control.Done, a.Control.Found = a.Control.Done+done, a.Control.Found+found
	}
	for _, f := range []findings{differ, other, sums} {
		if a.Words = append(a.Words, f.words...); f.more > 0 {
			a.Words = append(a.Words, fmt.Sprintf("and %d more of this kind", f.more))
		}
	}
}

func name(p wire.PartitionID, entry uint64, n int) string {
	return fmt.Sprintf("%s/%d.%d", p, entry, n)
}

// sum adds up what copies say, each as of the entry that it was read to: the log may have been read
// to a later one.
func (a *Executions) sum(p wire.PartitionID, log *replay.Log, copies []*copied, f *findings) {
	a.Resting += int64(len(log.Resting()))
	for i, c := range copies {
		if i == 0 {
			a.Orders, a.Trades = a.Orders+int64(c.fills.Orders), a.Trades+int64(c.fills.Trades)
		}
		wrong, words := c.fills.Finish(c.resting)
		if !c.of.InSync {
			continue
		}
		a.Unsummed += int64(wrong)
		for _, w := range words {
			f.add(true, func() string { return fmt.Sprintf("%s: %s: %s", p, c.of.Where, w) })
		}
		f.more += wrong - len(words)
	}
}

func (a *Executions) lost(names []string) {
	a.Lost += int64(len(names))
	a.LostExamples = append(a.LostExamples, names[:min(len(names), maxLost-len(a.LostExamples))]...)
}

// hashesOf are the entries of the longest log that was compared, by number.
func hashesOf(h *history.History, p wire.PartitionID) map[uint64]uint64 {
	hashes := map[uint64]uint64{}
	for i := range h.Logs {
		if l := &h.Logs[i]; l.Partition == p && l.Error == "" && len(l.Entries) > len(hashes) {
			for k := range l.Entries {
				hashes[l.Entries[k].Seq] = l.Entries[k].Hash
			}
		}
	}
	return hashes
}

// told is what sessions were told of a partition, by entry.
type told struct {
	n      int64
	by     map[uint64]map[uint32][]match.Record
	others []string // of which the log has another one
}

func toldOf(h *history.History, p wire.PartitionID) *told {
	t := &told{by: map[uint64]map[uint32][]match.Record{}}
	for i := range h.Told {
		if h.Told[i].Partition != p {
			continue
		}
		for b := h.Told[i].Records; len(b) > 0; b = b[history.ExecutionSize:] {
			entry, n, r := history.ExecutionOf(b)
			if t.by[entry] == nil {
				t.by[entry] = map[uint32][]match.Record{}
			}
			if !slices.Contains(t.by[entry][n], r) { // both sides of a trade are told it
				t.by[entry][n] = append(t.by[entry][n], r)
			}
			t.n++
		}
	}
	return t
}

// entry crosses out what was told of an entry that did it.
func (t *told) entry(seq uint64, want []match.Record) {
	of := t.by[seq]
	if of == nil {
		return
	}
	for i := range want {
		n := uint32(i) + 1
		if of[n] = slices.DeleteFunc(of[n], func(r match.Record) bool { return r == want[i] }); len(of[n]) == 0 {
			delete(of, n)
		}
	}
	if len(of) == 0 {
		delete(t.by, seq)
	}
}

// wrong names what is left, in the order of the log.
func (t *told) wrong(p wire.PartitionID) (names []string) {
	for _, entry := range sorted(t.by) {
		for _, n := range sorted(t.by[entry]) {
			for i := range t.by[entry][n] {
				names = append(names, fmt.Sprintf("%s: %s", name(p, entry, int(n)), replay.Text(&t.by[entry][n][i])))
			}
		}
	}
	return names
}
