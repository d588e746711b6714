package validate

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// sinks merges the files of a partition like a downstream reader, by sequence number, and compares
// the result with the log and the ledger. Every pod that was primary has a file; around a failover
// two files have the same entries.
func (r *Result) sinks(h *history.History, p wire.PartitionID, log *history.Log, out *Partition) {
	merged, base := make([]history.Entry, len(log.Entries)), h.Base(p).Seq
	files, unread, gone := 0, false, h.NoHolder(p) // without a log no sink can be ahead of it
	for i := range h.Sinks {
		f := &h.Sinks[i]
		if f.Partition != p {
			continue
		}
		files++
		if f.Error != "" {
			unread = true
			r.Unread = append(r.Unread, fmt.Sprintf("%s: sink %s: %s", p, f.Where, f.Error))
		}
		r.say(ordered(p, f)...)
		var wrong findings
		for _, e := range f.Entries {
			switch at := e.Seq - 1 - base; {
			case e.Seq <= base || at >= uint64(len(merged)):
				wrong.add(!gone, func() string {
					return fmt.Sprintf("%s: sink %s has entry %d, the log ends at %d", p, f.Where, e.Seq, base+uint64(len(merged)))
				})
			case e.Hash == 0 && e.Stream == history.NoOrder && log.Entries[at].Stream == history.NoOrder:
				merged[at] = log.Entries[at] // a far side that keeps where there is no order, and not the entry
			case e.Hash != log.Entries[at].Hash:
				wrong.add(true, func() string {
					return fmt.Sprintf("%s: sink %s: entry %d has hash %016x, the log's has %016x", p, f.Where, e.Seq, e.Hash, log.Entries[at].Hash)
				})
			case merged[at].Seq != 0:
				out.Repeats++
			default:
				merged[at] = e
				if e.Stream != history.NoOrder {
					out.Downstream++
				}
			}
		}
		r.found(wrong)
	}
	if gone || unread {
		return // Accounts has the downstream orders only; the unread file may have them
	}
	if files == 0 {
		if len(h.Sinks) > 0 {
			r.Unread = append(r.Unread, fmt.Sprintf("%s: there is no sink file of it", p))
		}
		return
	}
	dense := merged[:0]
	for _, e := range merged {
		if e.Seq != 0 {
			dense = append(dense, e)
		}
	}
	for i := range dense { // lines carry no previous hash; the log's chain was checked
		dense[i].Prev = h.Base(p).Hash
		if i > 0 {
			dense[i].Prev = dense[i-1].Hash
		}
	}
	c := r.ledger(h, p, "downstream", dense, true)
	out.LostSunk = c.Lost
	out.Gaps, out.Duplicates = max(out.Gaps, c.Gaps), max(out.Duplicates, c.Duplicates)
	out.Control = out.Control && c.control
}

// ordered: the lines of one file are dense and never go back an epoch or lineage.
func ordered(p wire.PartitionID, f *history.Log) (out []string) {
	for i := 1; i < len(f.Entries); i++ {
		a, b := f.Entries[i-1], f.Entries[i]
		if b.Seq != a.Seq+1 || b.Lineage < a.Lineage || b.Epoch < a.Epoch {
			out = append(out, fmt.Sprintf("%s: sink %s: {lineage %d, epoch %d, seq %d} follows {%d, %d, %d}", p, f.Where, b.Lineage, b.Epoch, b.Seq, a.Lineage, a.Epoch, a.Seq))
		}
	}
	return out
}
