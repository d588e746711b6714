package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// read is an answer that waits for the ack set to confirm that this replica was still the
// primary after the request arrived. The value is fixed at arrival: once confirmed, it was
// current at that moment. No pointers.
type read struct {
	conn   uint64
	reqID  uint64
	seq    uint64 // entry found, 0 if none; lastClientSeq of a session
	commit uint64 // committed prefix at arrival; generation of a session
	round  uint64 // answered when the ack set echoed this round,
	need   uint64 // and this entry is committed
	slot   uint32
	size   uint32      // bytes of the entry,
	at     store.Place // and where it lies, as long as it is not freed
	kind   readKind
}

type readKind uint8

const (
	readOrder readKind = iota
	readSession
	readFixSession
	readFixSources // of a session that gets copies, and has those
	readRegion     // an answer about a region, or to a call that failed, which is kept at place seq; commit is the type of the request
	readCondition  // a RegionApply or RegionBatch whose condition does not hold; seq is the version of the value, commit the type of the request
	readDuplicate  // a Submit whose ClOrdID a prepared order has: rejected when that one is committed
)

func (rd *read) frameType() wire.Type {
	switch rd.kind {
	case readSession:
		return wire.TypeOpenSession
	case readFixSession:
		return wire.TypeFixOpen
	case readFixSources:
		return wire.TypeFixStep
	case readDuplicate:
		return wire.TypeSubmit
	case readRegion, readCondition:
		return wire.Type(rd.commit)
	}
	return wire.TypeGet
}

// readQueue is a bounded ring of reads in order of arrival.
type readQueue struct {
	ring       []read
	head, tail uint64
	bytes      int // of the entries to be sent
}

func (q *readQueue) init(n int)  { q.ring = make([]read, n) }
func (q *readQueue) empty() bool { return q.head == q.tail }
func (q *readQueue) full() bool  { return q.tail-q.head == uint64(len(q.ring)) }
func (q *readQueue) first() *read {
	return &q.ring[q.head&uint64(len(q.ring)-1)]
}
func (q *readQueue) pop() read {
	v := *q.first()
	q.head++
	q.bytes -= int(v.size)
	return v
}
func (q *readQueue) push(v read) {
	q.ring[q.tail&uint64(len(q.ring)-1)] = v
	q.tail++
	q.bytes += int(v.size)
}

// readsAhead is how far ahead of the answered read entries are prefetched: they have left
// the caches since their lookup.
const readsAhead = 8

// ahead returns the read n places behind the first if it found an order, else nil.
func (q *readQueue) ahead(n uint64) *read {
	if q.tail-q.head <= n {
		return nil
	}
	if rd := &q.ring[(q.head+n)&uint64(len(q.ring)-1)]; rd.size > 0 {
		return rd
	}
	return nil
}

// newest returns the round the last read waits for, 0 if none waits.
func (q *readQueue) newest() uint64 {
	if q.empty() {
		return 0
	}
	return q.ring[(q.tail-1)&uint64(len(q.ring)-1)].round
}

// confirm answers at once when no other replica could be the primary, and waits for the
// next round otherwise.
func (r *Replica) confirm(rd read) {
	if !r.primary.suspended && r.copies() == 1 && rd.need <= r.commit || mutant(mutReadSuspended) && r.primary.suspended {
		r.answer(&rd)
		return
	}
	q := &r.primary.reads
	if q.full() || !q.empty() && q.bytes+int(rd.size) > r.opt.Limits.PendingReadBytes {
		r.forget(&rd)
		r.reject(rd.conn, rd.frameType(), rd.reqID, rd.slot, wire.CodeOverloaded, 0, uint64(len(q.ring)), "too many reads wait for confirmation; retry, slower")
		return
	}
	rd.round = r.primary.round + 1 // sent at the next flush, after this read arrived
	if mutant(mutReadOldEcho) {
		rd.round = r.primary.round
	}
	q.push(rd)
}

// confirmReads answers the reads whose round was echoed by the whole ack set. One that
// needs an uncommitted entry makes way for those behind it: with fewer copies than
// minInSync that may take indefinitely.
func (r *Replica) confirmReads() {
	if r.primary.reads.empty() || r.primary.suspended {
		return
	}
	round := r.echoed()
	if round < r.primary.awake {
		return
	}
	base, _ := r.store.Base()
	for !r.primary.reads.empty() {
		if rd := r.primary.reads.first(); rd.round > round {
			return
		}
		if next := r.primary.reads.ahead(readsAhead); next != nil && next.seq > base {
			r.store.PrefetchAt(next.at)
		}
		if rd := r.primary.reads.pop(); rd.need > r.commit {
			r.waitForCommit(&rd)
		} else {
			r.answer(&rd)
		}
	}
}

// waitForCommit keeps a confirmed read until the entry that it needs is committed.
func (r *Replica) waitForCommit(rd *read) {
	q := &r.primary.waits
	if q.full() {
		r.forget(rd)
		r.reject(rd.conn, rd.frameType(), rd.reqID, rd.slot, wire.CodeOverloaded, 0, uint64(len(q.ring)), "too many requests wait for an entry to be committed; retry, slower")
		return
	}
	q.push(*rd)
}

// answerWaits answers those whose entry is committed now.
func (r *Replica) answerWaits() {
	q := &r.primary.waits
	for n := q.tail - q.head; n > 0; n-- {
		if rd := q.pop(); rd.need > r.commit {
			q.push(rd)
		} else {
			r.answer(&rd)
		}
	}
}

// ReadsWaiting returns how full the queue of unconfirmed reads is, in bytes of their
// answers, or of its places where those are more.
func (r *Replica) ReadsWaiting() int {
	q := &r.primary.reads
	return max(q.bytes, int(q.tail-q.head)*readPlace)
}

// readPlace is the minimum size of a waiting read: the queue is half full with 512 KiB.
const readPlace = 64

// ReadBytes is Counters.ReadBytes.
func (r *Replica) ReadBytes() uint64 { return r.count.ReadBytes }

// Stored is Counters.EntriesStored.
func (r *Replica) Stored() uint64 { return r.count.EntriesStored }

// echoed returns the round that the whole ack set has answered; a solo primary needs no
// answer.
func (r *Replica) echoed() uint64 {
	round := ^uint64(0)
	if mutant(mutReadOneEcho) {
		return r.mutateEchoed()
	}
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.acks() {
			round = min(round, p.round)
		}
	}
	return round
}

func (r *Replica) answer(rd *read) {
	switch rd.kind {
	case readRegion:
		r.count.ReadsConfirmed++
		r.sendRegion(rd.conn, r.dropAnswer(uint32(rd.seq)))
		return
	case readCondition:
		r.reject(rd.conn, rd.frameType(), rd.reqID, rd.slot, wire.CodeConditionFailed, 0, rd.seq, "the value is not the one required, or there is none")
		return
	case readDuplicate:
		r.rejectDuplicate(rd.conn, rd.reqID, rd.slot, rd.seq)
		return
	case readFixSession:
		if s := r.live.Fix.Find(rd.slot, uint32(rd.seq)); s == nil || s.Attempt != uint32(rd.commit) {
			r.notPrimary(rd.conn, wire.TypeFixOpen, rd.reqID, 0) // opened anew in the meantime
			return
		}
		r.fixBound(rd.conn, rd.reqID, rd.slot)
		return
	case readFixSources:
		r.sourcesKnown(rd)
		return
	case readSession:
		if s := r.live.Sessions.Find(rd.slot, uint32(rd.commit)); s == nil {
			r.notPrimary(rd.conn, wire.TypeOpenSession, rd.reqID, 0) // evicted in the meantime: the client retries
			return
		}
		r.sessionOpened(rd.conn, rd.reqID, rd.slot, uint32(rd.commit), rd.seq)
		return
	}
	r.count.ReadsConfirmed++
	r.getReply(rd.conn, rd.reqID, rd.seq, rd.at, rd.commit)
}

func (r *Replica) getReply(conn, reqID, seq uint64, at store.Place, commit uint64) {
	m := wire.GetReply{ReqID: reqID, Epoch: r.epoch, CommitSeq: commit, Status: wire.GetNotFound}
	base, _ := r.store.Base()
	switch {
	case seq == noOrder:
	case seq > base:
		m.Status, m.Entry = wire.GetFound, r.store.At(at)
	case base > 0: // freed since the lookup, or before: then its ClOrdID was not found
		m.Status, m.Freed = wire.GetFreed, base
	}
	if o := r.out; o.direct && o.conn == conn {
		o.conned = wire.AppendGetReply(o.conned, r.part, &m)
		return
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendGetReply(r.out.buf, r.part, &m)
	r.out.reply(conn, off, nil)
}

// leaseAlive reports whether no other replica can have taken over yet. The clock is read
// here, after the value was: a suspension in between is detected.
func (r *Replica) leaseAlive() bool {
	if r.opt.LeaseClock == nil || r.primary.suspended || r.primary.hand.to != 0 && !mutant(mutHandOverLeases) {
		return false
	}
	now := r.opt.LeaseClock()
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.acks() && now-p.echoNs >= int64(r.opt.Timing.Lease) {
			return false
		}
	}
	return true
}

// readLog serves a part of the committed prefix, on any replica.
func (r *Replica) readLog(conn uint64, frame []byte) error {
	var m wire.ReadLog
	if err := wire.DecodeReadLog(frame, &m); err != nil {
		return err
	}
	if r.ofOlderLineage() {
		r.notPrimary(conn, wire.TypeReadLog, m.ReqID, 0)
		return nil
	}
	if base, _ := r.store.Base(); m.FromSeq <= base {
		r.reject(conn, wire.TypeReadLog, m.ReqID, 0, wire.CodeSnapshotRequired, 0, base, fmt.Sprintf("entry %d is freed, as all up to %d: continue after it; freed entries are downstream", m.FromSeq, base))
		return nil
	}
	limit := wire.MaxLogBytes
	if m.MaxBytes != 0 {
		limit = min(limit, int(m.MaxBytes))
	}
	last, hash := r.store.Last()
	reply := wire.LogChunk{ReqID: m.ReqID, Epoch: r.epoch, CommitSeq: r.commit, LastSeq: last, LastHash: hash, FirstSeq: m.FromSeq}
	entries, _ := r.store.Range(m.FromSeq, r.commit, limit)
	off := len(r.out.buf)
	r.out.buf = wire.AppendLogChunk(r.out.buf, r.part, &reply)
	wire.AddTail(r.out.buf[off:], len(entries))
	r.out.reply(conn, off, entries)
	return nil
}

// ofOlderLineage reports whether this is a learner with a log of an earlier lineage, not
// compared with the primary's yet: its committed entries may not be in the log of this
// lineage. So is one that has loaded an archive and has not claimed: the partition serves
// nothing yet.
func (r *Replica) ofOlderLineage() bool {
	return r.role == RoleClaiming && r.commit > 0 || r.role == RoleLearner && !r.backup.accepted && r.commit > 0 && r.live.Orders.Lineage < r.cfg.Lineage && !mutant(mutOlderLineageShown)
}
