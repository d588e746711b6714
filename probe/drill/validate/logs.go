package validate

import (
	"fmt"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/ledger"
)

// partition compares the copies of a log with each other, with the sinks, and all of them with the
// ledger of acknowledged orders.
func (r *Result) partition(h *history.History, p wire.PartitionID) Partition {
	out := Partition{ID: p, Control: true}
	var longest *history.Log
	for i := range h.Logs {
		l := &h.Logs[i]
		if l.Partition != p {
			continue
		}
		if l.Error != "" {
			if !h.NoHolder(p) { // that it is gone is known
				r.Unread = append(r.Unread, fmt.Sprintf("%s: log of %s: %s", p, l.Where, l.Error))
			}
			continue
		}
		if l.Short != "" && l.InSync {
			r.say(fmt.Sprintf("%s: log of %s: %s", p, l.Where, l.Short))
		}
		out.Copies++
		if longest == nil || len(l.Entries) > len(longest.Entries) {
			longest = l
		}
	}
	if longest == nil && h.NoHolder(p) {
		longest = &history.Log{Partition: p, Where: "no process", InSync: true}
		r.say(fmt.Sprintf("%s: no process of the grid holds its log: %s", p, h.Drill.NoHolder[p.String()]))
		c := r.ledger(h, p, longest.Where, nil, true)
		out.Lost = c.Lost
	}
	if longest == nil {
		r.Unread = append(r.Unread, fmt.Sprintf("%s: no copy of its log could be read", p))
		return out
	}
	out.Entries = uint64(len(longest.Entries))
	if n := len(longest.Entries); n > 0 {
		out.Epoch = longest.Entries[n-1].Epoch
	}
	r.say(epochsRise(p, longest)...)
	for i := range h.Logs {
		l := &h.Logs[i]
		if l.Partition != p || l.Error != "" {
			continue
		}
		r.say(differ(p, longest, l)...)
		c := r.ledger(h, p, l.Where, l.Entries, l.InSync)
		out.Lost, out.Duplicates, out.Gaps = max(out.Lost, c.Lost), max(out.Duplicates, c.Duplicates), max(out.Gaps, c.Gaps)
		out.Found, out.Control = max(out.Found, c.found), out.Control && c.control
	}
	r.sinks(h, p, longest, &out)
	return out
}

// counts of one copy, all streams together.
type counts struct {
	ledger.Counts
	found   int64
	control bool
}

// ledger compares one copy with the acknowledged orders, stream by stream. A copy that is not in
// sync may end early: it is compared with the log only.
func (r *Result) ledger(h *history.History, p wire.PartitionID, where string, entries []history.Entry, whole bool) counts {
	sum, base := counts{control: true}, h.Base(p)
	for s := range h.Streams {
		stream := &h.Streams[s]
		if stream.Partition != p {
			continue
		}
		v := ledger.NewVerifier(stream.ID, base.Seq, base.Hash, base.Known && base.Seq > 0)
		v.Begin(0, stream.Orders, nil)
		maker, err := fixorder.NewMaker(fixorder.FIX42, stream.ID)
		if err != nil {
			r.Unread = append(r.Unread, fmt.Sprintf("stream %d: %v", s, err))
			continue
		}
		for i := range entries {
			v.Entry(entryOf(&entries[i], s, stream, maker))
		}
		c, err := v.Finish()
		if !whole {
			c.Lost = 0
		}
		if s == firstStream(h, p) { // dense and chained, or not: the same for all streams
			sum.Gaps, sum.ChainBreaks = c.Gaps, c.ChainBreaks
		}
		sum.Lost, sum.found = sum.Lost+c.Lost, sum.found+c.UnknownFound
		sum.Duplicates = max(sum.Duplicates, c.Duplicates)
		if c.Violations() > 0 && (whole || c.Duplicates+c.Gaps+c.ChainBreaks+c.Corrupt+c.Misplaced+c.Refused > 0) {
			r.say(fmt.Sprintf("%s: %s, stream %d: lost %d, duplicates %d, gaps %d, chain breaks %d, misplaced %d, refused but there %d, corrupt %d: %s",
				p, where, s, c.Lost, c.Duplicates, c.Gaps, c.ChainBreaks, c.Misplaced, c.Refused, c.Corrupt, strings.Join(v.Examples(), "; ")))
		}
		if err != nil {
			sum.control = false
			r.Unread = append(r.Unread, fmt.Sprintf("%s: %s, stream %d: %v", p, where, s, err))
		}
	}
	return sum
}

func firstStream(h *history.History, p wire.PartitionID) int {
	for s := range h.Streams {
		if h.Streams[s].Partition == p {
			return s
		}
	}
	return -1
}

// entryOf converts an entry for the ledger. The message was compared with the sent one when it was
// read; it is regenerated here.
func entryOf(e *history.Entry, s int, stream *history.Stream, maker *fixorder.Maker) ledger.Entry {
	out := ledger.Entry{Seq: e.Seq, PrevHash: e.Prev, Hash: e.Hash, IsOrder: e.Stream == s}
	if out.IsOrder {
		out.ClOrdID = []byte(stream.ID.ClOrdID(e.Index))
		if !e.Corrupt {
			out.FIX = maker.Make(e.Index, 1, time.Time{}, time.Time{})
		}
	}
	return out
}

// epochsRise: the epoch of entries never falls.
func epochsRise(p wire.PartitionID, l *history.Log) (out []string) {
	for i := 1; i < len(l.Entries); i++ {
		if a, b := l.Entries[i-1], l.Entries[i]; b.Epoch < a.Epoch {
			out = append(out, fmt.Sprintf("%s: %s: entry %d of epoch %d follows one of epoch %d", p, l.Where, b.Seq, b.Epoch, a.Epoch))
		}
	}
	return out
}

// differ compares a copy with the longest one, as far as it goes.
func differ(p wire.PartitionID, longest, l *history.Log) (out []string) {
	for i := range l.Entries {
		if a, b := longest.Entries[i], l.Entries[i]; a.Seq != b.Seq || a.Hash != b.Hash {
			out = append(out, fmt.Sprintf("%s: entry %d differs: %s has hash %016x, %s has entry %d with %016x", p, a.Seq, longest.Where, a.Hash, l.Where, b.Seq, b.Hash))
			break // the chain makes all following entries differ too
		}
	}
	return out
}
