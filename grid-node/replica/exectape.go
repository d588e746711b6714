package replica

import (
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
)

// ExecTape reads what the entries of a partition that matches did, one entry after another,
// on a goroutine beside the writer's. Its next entry has to be committed and kept from being
// freed (store.PinBy): then nothing of what it reads changes.
type ExecTape struct {
	log  *execLog
	next uint64
	at   uint64 // records up to the entry before next
}

// ExecTape returns a tape that begins with an entry: one that is held, or the next one. It is
// called where the replica steps. false: the partition does not match.
func (r *Replica) ExecTape(from uint64) (*ExecTape, bool) {
	if r.execs == nil {
		return nil, false
	}
	t := &ExecTape{log: r.execs, next: from, at: r.execs.at(from - 1).ExecSeq}
	if mutant(mutTapeBehind) {
		last, _ := r.store.Last()
		t.at = r.execs.at(min(from, last)).ExecSeq
	}
	return t, true
}

// Next appends the records of the next entry to out.
func (t *ExecTape) Next(out []match.Record) []match.Record {
	v := t.log.shared.Load()
	end := v.entries.at(t.next).ExecSeq
	for ; t.at < end; t.at++ {
		out = append(out, *v.records.at(t.at))
	}
	t.next++
	return out
}

// Skip passes over the next entry.
func (t *ExecTape) Skip() {
	v := t.log.shared.Load()
	t.at = v.entries.at(t.next).ExecSeq
	t.next++
}

// Instruments returns those that the partition trades, by number of their book: all that
// there were when the next entry was committed, and maybe more. The list is not changed.
func (t *ExecTape) Instruments() []machine.Instrument {
	if list := t.log.traded.Load(); list != nil {
		return *list
	}
	return nil
}
