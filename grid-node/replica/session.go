package replica

import (
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// maxSlots bounds what another replica can make this one allocate.
const maxSlots = 1 << 16

// session is the exactly-once state of one client session. Everything but
// expected is a function of the log, so every replica has it.
type session struct {
	id         [2]uint64
	generation uint32
	open       bool
	last       uint64   // highest clientSeq applied
	touched    uint64   // seq of the last entry that belongs to it
	ring       []uint64 // seq per clientSeq & mask, 0 for one that was refused
	expected   uint64   // primary only: next clientSeq not seen yet, 0 before the first
	conn       uint64   // primary only: the connection that opened it last, 0 for none since the take-over
	client     uint64   // primary only: whose that is, see evict.go
	attempt    uint64   // primary only: of that OpenSession
	ackFlags   uint8    // primary only: what it asked for, as flags of its Acks
}

// SessionBytes is what a session with this window takes, for store.Options: as it
// is, and as it was at the base of the log.
func SessionBytes(window int) int64 {
	return 2 * (int64(unsafe.Sizeof(session{})) + int64(window)*8 + 64)
}

// bind fences off every connection but conn: what was sent on another one, and
// may still be under way, is refused from now on. An OpenSession that was itself
// delayed must not undo that: its attempt is lower.
func (s *session) bind(conn uint64, m *wire.OpenSession) bool {
	if m.Attempt < s.attempt || m.Attempt == s.attempt && conn != s.conn && !mutant(mutAttemptEqual) {
		return false
	}
	s.conn, s.attempt, s.ackFlags = conn, m.Attempt, 0
	if m.WantHash {
		s.ackFlags = wire.AckHash
	}
	return true
}

type sessionTable struct {
	slots  []session
	byID   map[[2]uint64]uint32
	window uint64
	limit  int
	owners owners
}

func (t *sessionTable) init(l *Limits) {
	t.byID = map[[2]uint64]uint32{}
	t.window, t.limit = uint64(l.Window), l.Sessions
	t.owners = owners{limit: l.ClientSessions, sessions: map[uint64]int{}}
}

func (t *sessionTable) find(slot, generation uint32) *session {
	if int(slot) >= len(t.slots) {
		return nil
	}
	if s := &t.slots[slot]; s.open && s.generation == generation {
		return s
	}
	return nil
}

type seqVerdict uint8

const (
	seqNew     seqVerdict = iota // not applied
	seqApplied                   // applied as entry seq
	seqTooOld                    // forgotten; seq is the lowest clientSeq kept
	seqGap                       // clientSeqs between are missing; seq is the one expected
)

// classify says what to do with a clientSeq. One that was refused took no
// entry; it may come again and is then looked at anew.
func (s *session) classify(c uint64, t *sessionTable) (seqVerdict, uint64) {
	if c <= s.last {
		if s.last-c >= t.window && !(mutant(mutWindowEdge) && s.last-c == t.window) {
			return seqTooOld, s.last - t.window + 1
		}
		if seq := s.ring[c&(t.window-1)]; seq != 0 {
			return seqApplied, seq
		}
		return seqNew, 0
	}
	if s.expected != 0 {
		// An older clientSeq that had been refused may have come first.
		if next := max(s.expected, s.last+1); c > next {
			return seqGap, next
		}
	} else if c > s.last+t.window { // the first frame since this primary took over
		return seqGap, s.last + 1
	}
	return seqNew, 0
}

// apply records that clientSeq c became entry seq.
func (s *session) apply(c, seq uint64, t *sessionTable) {
	mask := t.window - 1
	s.touched = seq
	if c <= s.last {
		if s.last-c < t.window {
			s.ring[c&mask] = seq
		}
		return
	}
	if s.ring == nil {
		s.ring = make([]uint64, t.window)
	}
	if c-s.last > t.window {
		clear(s.ring)
	} else {
		for x := s.last + 1; x < c; x++ {
			s.ring[x&mask] = 0
		}
	}
	s.ring[c&mask] = seq
	s.last = c
}

// openSlot makes slot the session id, whoever had it.
func (t *sessionTable) openSlot(slot, generation uint32, id [2]uint64, seq uint64) {
	for int(slot) >= len(t.slots) {
		t.slots = append(t.slots, session{})
	}
	s := &t.slots[slot]
	if s.open {
		delete(t.byID, s.id)
	}
	t.owners.set(s, 0)
	*s = session{id: id, generation: generation, open: true, touched: seq}
	t.byID[id] = slot
}

// forgetClients is for a new primary: nobody has opened a session here yet, even
// on a connection from when this replica was the primary before, and what it
// will see first is not known.
func (t *sessionTable) forgetClients() {
	for i := range t.slots {
		s := &t.slots[i]
		t.owners.set(s, 0)
		s.expected = 0
		if !mutant(mutConnectionsKept) {
			s.conn, s.attempt = 0, 0
		}
	}
}

// openSession opens a session by a log entry, or finds the one that is there.
func (r *Replica) openSession(conn, client uint64, frame []byte) error {
	var m wire.OpenSession
	if err := wire.DecodeOpenSession(frame, &m); err != nil {
		return err
	}
	if !r.serves(m.Epoch) {
		r.notPrimary(conn, wire.TypeOpenSession, m.ReqID, 0)
		return nil
	}
	id := [2]uint64{m.IDHi, m.IDLo}
	if slot, ok := r.sessions.byID[id]; ok {
		r.reopen(conn, client, &m, slot)
		return nil
	}
	if r.parking() && r.park(conn, m.ReqID, 0, wire.TypeOpenSession) {
		return nil
	}
	last, _ := r.store.Last()
	slot, evict, ok := r.sessions.choose(client, r.commit)
	switch {
	case r.closed:
		r.reject(conn, wire.TypeOpenSession, m.ReqID, 0, wire.CodePartitionClosed, 0, r.admissionRevision, closedText)
	case r.stopping:
		r.reject(conn, wire.TypeOpenSession, m.ReqID, 0, wire.CodeDraining, 0, 0, "the node is stopping; retry")
	case len(r.cfg.InSync) < r.opt.MinInSync:
		r.reject(conn, wire.TypeOpenSession, m.ReqID, 0, wire.CodeInsufficientInSync, 0, uint64(len(r.cfg.InSync)), "fewer in-sync copies than spec.minInSync; retry later")
	case !ok || r.parking() || r.windowFull():
		r.reject(conn, wire.TypeOpenSession, m.ReqID, 0, wire.CodeOverloaded, 0, last-r.commit, "too much waits for replication; retry")
	default:
		r.logSession(conn, client, &m, slot, evict)
	}
	return nil
}

func (r *Replica) logSession(conn, client uint64, m *wire.OpenSession, slot uint32, evict bool) {
	id := [2]uint64{m.IDHi, m.IDLo}
	generation := uint32(1)
	if evict {
		generation = r.sessions.slots[slot].generation + 1
	}
	e := order.Entry{Kind: order.KindSessionOpen, Epoch: uint32(r.epoch), Session: slot, ClientSeq: uint64(generation), TimeNs: r.now.Wall}
	var payload [16]byte
	le.PutUint64(payload[:], id[0])
	le.PutUint64(payload[8:], id[1])
	if err := r.store.Append(&e, payload[:]); err != nil {
		r.rejectAppend(conn, wire.TypeOpenSession, m.ReqID, 0, err)
		return
	}
	r.count.EntriesStored++
	r.count.SessionsOpened++
	if evict {
		r.count.SessionsEvicted++
	}
	r.sessions.openSlot(slot, generation, id, e.Seq)
	r.sessions.slots[slot].bind(conn, m)
	r.sessions.owners.set(&r.sessions.slots[slot], client)
	r.cursor.dataSeq = e.Seq
	r.primary.pend.put(e.Seq, pending{conn: conn, requestID: m.ReqID, slot: slot, size: e.Size, epoch: e.Epoch, kind: pendingOpen})
}

// reopen answers for a session that exists. LastClientSeq must not come from a
// primary that was replaced, so the answer is confirmed like a read. Bound from
// now on, the session cannot get past it meanwhile.
func (r *Replica) reopen(conn, client uint64, m *wire.OpenSession, slot uint32) {
	s, reqID := &r.sessions.slots[slot], m.ReqID
	if !s.bind(conn, m) {
		r.reject(conn, wire.TypeOpenSession, reqID, slot, wire.CodeSessionMoved, 0, s.attempt, "attempt is not higher than that of the connection which opened the session last; open it with a higher one")
		return
	}
	r.sessions.owners.set(s, client)
	if s.touched > r.commit {
		if p := r.primary.pend.at(s.touched); p.seq == s.touched && p.kind == pendingOpen {
			p.conn, p.requestID = conn, reqID
			return
		}
	}
	r.confirm(read{conn: conn, reqID: reqID, kind: readSession, slot: slot, seq: s.last, commit: uint64(s.generation), need: s.touched})
}

func (r *Replica) sessionOpened(conn, reqID uint64, slot, generation uint32, last uint64) {
	off := len(r.out.buf)
	r.out.buf = wire.AppendSessionOpened(r.out.buf, r.part, &wire.SessionOpened{
		ReqID: reqID, Slot: slot, Generation: generation, Window: uint32(r.sessions.window), LastClientSeq: last, Epoch: r.epoch,
	})
	r.out.reply(conn, off, nil)
}
