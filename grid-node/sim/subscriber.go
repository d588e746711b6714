package sim

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// subscriber follows the committed log on whatever replica answers.
type subscriber struct {
	w     *world
	conn  *conn
	reqID uint64
	next  uint64 // sequence number it wants
	hash  uint64 // of the entry before
}

func (w *world) addSubscriber() {
	s := &subscriber{w: w, next: 1}
	w.subs = append(w.subs, s)
	s.schedule()
}

func (s *subscriber) schedule() {
	s.w.after(s.w.between(15*millisecond, 45*millisecond), func() {
		s.act()
		s.schedule()
	})
}

func (s *subscriber) act() {
	w := s.w
	if s.conn == nil || s.conn.proc == nil || w.rng.IntN(10) == 0 {
		if s.conn != nil {
			s.conn.gaveUp = true
		}
		if s.conn = w.net.dial(s, w.anyPod()); s.conn == nil {
			return
		}
	}
	s.reqID++
	s.conn.send(wire.AppendReadLog(nil, partition, &wire.ReadLog{ReqID: s.reqID, FromSeq: s.next, MaxBytes: 4096}))
}

func (s *subscriber) closed(cn *conn) {
	if s.conn == cn {
		s.conn = nil
	}
}

// refused is answered that its next entry is freed, and up to where: it continues after
// that, the rest is downstream.
func (s *subscriber) refused(cn *conn, frame []byte, lineage uint64) {
	var m wire.Reject
	if cn != s.conn || wire.DecodeReject(frame, &m) != nil || m.RequestID != s.reqID || m.Code != wire.CodeSnapshotRequired {
		return
	}
	t := s.w.shown(lineage)
	if m.Detail < s.next || m.Detail > t.freeable {
		s.w.violation("I8", "a subscriber that wants entry %d is answered that entries up to %d are freed; a committed entry allows up to %d", s.next, m.Detail, t.freeable)
		return
	}
	s.next, s.hash = m.Detail+1, t.hashes[m.Detail-1]
}

func (s *subscriber) got(cn *conn, frame []byte, lineage uint64) {
	if wire.FrameType(frame) == wire.TypeReject {
		s.refused(cn, frame, lineage)
		return
	}
	var m wire.LogChunk
	if cn != s.conn || wire.DecodeLogChunk(frame, &m) != nil || m.ReqID != s.reqID {
		return
	}
	for rest := m.Entries; len(rest) > 0; {
		var e order.Entry
		entry, after, err := order.NextEntry(rest, &e)
		if err != nil {
			s.w.violation("I8", "a subscriber gets an invalid entry: %v", err)
			return
		}
		rest = after
		if !s.w.checkI8(s, &e, entry, lineage) {
			return
		}
		s.next, s.hash = e.Seq+1, order.Hash(entry)
		s.w.stats.Delivered++
	}
}
