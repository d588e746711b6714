package replica

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Executions leave at commit, to the connections of the sessions whose orders they are of,
// and are read from there on at any replica in sync.

// execOf is a record of an entry.
type execOf struct {
	owner uint32
	n     uint32 // in its entry, from 1
	at    uint64 // among all
}

// pushExecutions sends what an entry did to the sessions that have a connection here, and
// asked for it; with only, to that connection alone.
func (r *Replica) pushExecutions(seq uint64, only uint64) {
	first, n := r.execs.of(seq)
	list := r.pushes[:0]
	for i := range n {
		if o := r.execs.records.at(first + i).Owner; o != 0 {
			list = append(list, execOf{owner: o, n: uint32(i) + 1, at: first + i})
		}
	}
	r.pushes = list
	slices.SortFunc(list, func(a, b execOf) int {
		return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.n, b.n))
	})
	for len(list) > 0 {
		k := 1
		for k < len(list) && list[k].owner == list[0].owner && k < wire.MaxExecutions {
			k++
		}
		r.pushTo(seq, list[:k], only)
		list = list[k:]
	}
}

// pushTo sends records of one owner.
func (r *Replica) pushTo(seq uint64, list []execOf, only uint64) {
	slot, open := r.live.Books.SlotOf(list[0].owner)
	if !open {
		return
	}
	seat := r.seats.at(slot)
	conn := seat.conn
	if conn == 0 || !seat.wants || only != 0 && conn != only {
		return
	}
	r.text = r.text[:0]
	for i := range list {
		r.text = le.AppendUint64(r.text, uint64(list[i].n))
		r.text = r.execs.records.at(list[i].at).AppendTo(r.text)
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendExecutions(r.out.buf, r.part, &wire.Executions{Entry: seq, Hash: r.store.HashAt(seq), Slot: slot, Records: r.text})
	r.out.reply(conn, off, nil)
}

// readExecutions sends records of committed entries.
func (r *Replica) readExecutions(conn uint64, frame []byte) error {
	var m wire.ReadExecutions
	if err := wire.DecodeReadExecutions(frame, &m); err != nil {
		return err
	}
	if r.execs == nil {
		r.reject(conn, wire.TypeReadExecutions, m.ReqID, 0, wire.CodeUnsupported, 0, 0, "the partition stores orders and does not match")
		return nil
	}
	if r.ofOlderLineage() || r.role != RolePrimary && r.role != RoleBackup {
		r.notPrimary(conn, wire.TypeReadExecutions, m.ReqID, 0)
		return nil
	}
	if base, _ := r.store.Base(); m.From <= base {
		r.reject(conn, wire.TypeReadExecutions, m.ReqID, 0, wire.CodeSnapshotRequired, 0, base, fmt.Sprintf("entry %d is freed, as all up to %d, and what they did with them: continue after it", m.From, base))
		return nil
	}
	most := uint64(wire.MaxExecutionsRead)
	if m.MaxBytes != 0 {
		most = min(most, uint64(m.MaxBytes)/wire.ExecReadSize)
	}
	reply := wire.ExecutionsRead{ReqID: m.ReqID, CommitSeq: r.commit, Through: m.From - 1}
	r.text = r.text[:0]
	for sent := uint64(0); reply.Through < r.commit; {
		seq := reply.Through + 1
		first, n := r.execs.of(seq)
		if sent += n; sent > most && sent > n || seq-m.From == readEntries {
			break
		}
		for i := range n {
			r.text = le.AppendUint64(le.AppendUint64(r.text, seq), i+1)
			r.text = r.execs.records.at(first + i).AppendTo(r.text)
		}
		reply.Through = seq
	}
	reply.Records = r.text
	off := len(r.out.buf)
	r.out.buf = wire.AppendExecutionsRead(r.out.buf, r.part, &reply)
	r.out.reply(conn, off, nil)
	return nil
}

// readEntries bounds the entries that one answer looks at.
const readEntries = 16384

// ExecutionsOf calls f for each record of an entry that is held, and reports whether it is.
// It is for the simulator and for tools that look at a copy.
func (r *Replica) ExecutionsOf(seq uint64, f func(n int, record *match.Record)) (match.Position, bool) {
	base, _ := r.store.Base()
	if last, _ := r.store.Last(); r.execs == nil || seq <= base || seq > last {
		return match.Position{}, false
	}
	first, n := r.execs.of(seq)
	for i := range n {
		f(int(i)+1, r.execs.records.at(first+i))
	}
	return r.execs.at(seq), true
}

// Executed returns the position after an entry, from the last one freed to the last one
// stored, of a partition that matches.
func (r *Replica) Executed(seq uint64) (match.Position, bool) {
	base, _ := r.store.Base()
	if last, _ := r.store.Last(); r.execs == nil || seq < base || seq > last {
		return match.Position{}, false
	}
	return r.execs.at(seq), true
}

// BooksPending reports whether a mass cancel or an auction is under way.
func (r *Replica) BooksPending() bool { return r.execs != nil && r.live.Books.Pending() }

// SpoilBooks is for the simulator: it changes the books of this replica so that they do
// not match its log, as after a bug or a bit flip. What that did counts as the next entry's:
// positions number the records that are held.
func (r *Replica) SpoilBooks() {
	r.live.Books.Spoil()
	for i := range r.live.Books.Records() {
		r.execs.records.push(&r.live.Books.Records()[i])
	}
	r.execs.share()
}
