package replica

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// gets are the reads that arrived in this wake-up. They are looked up together at its end,
// before the round that confirms them is sent: many reads share the waits for memory, for
// the lease's clock and for the ack set. No pointers.
type gets struct {
	list []get
	keys []byte // ClOrdIDs, end to end
}

type get struct {
	conn   uint64
	reqID  uint64
	seq    uint64 // requested by id; then the one found
	keyOff uint32
	hint   uint32      // of the ClOrdID, for the store
	size   uint32      // bytes of the entry found,
	at     store.Place // and where it lies
	keyLen uint8
	mode   uint8
}

// maxGets bounds the reads answered at once: more would produce output that the
// connection's limit has not counted yet.
const maxGets = 16

func (g *gets) init() {
	g.list = make([]get, 0, maxGets)
	g.keys = make([]byte, 0, maxGets*wire.MaxKey)
}

func (g *gets) key(q *get) []byte { return g.keys[q.keyOff:][:q.keyLen] }

// get queues a read of one order of the committed prefix.
func (r *Replica) get(conn uint64, frame []byte) error {
	var m wire.Get
	if err := wire.DecodeGet(frame, &m); err != nil {
		return err
	}
	g := &r.gets
	q := get{conn: conn, reqID: m.ReqID, seq: m.Seq, mode: m.Mode}
	if m.By == wire.ByFix {
		r.getFix(&q, m.Key)
	} else if m.By == wire.ByClOrdID {
		q.seq, q.keyOff, q.keyLen = 0, uint32(len(g.keys)), uint8(len(m.Key))
		g.keys = append(g.keys, m.Key...)
		q.hint = r.store.Hint(m.Key)
	} else {
		r.store.PrefetchSeq(m.Seq)
	}
	if g.list = append(g.list, q); len(g.list) == maxGets {
		r.flushGets()
	}
	return nil
}

// getFix looks for an order of a FIX session. The index tells days apart that are less than
// 128 days from each other; those before have no orders, or none that is asked for.
func (r *Replica) getFix(q *get, key []byte) {
	id, day, clOrdID := wire.SplitFixKey(key)
	slot, ok := r.live.Fix.SlotOf(id)
	if q.seq = noOrder; !ok {
		return
	}
	today := r.live.Fix.At(slot).Day
	if day == wire.FixToday {
		day = today
	}
	if day > today || today-day >= 128 {
		return
	}
	g := &r.gets
	q.seq, q.keyOff, q.keyLen = 0, uint32(len(g.keys)), uint8(len(clOrdID))
	g.keys = append(g.keys, clOrdID...)
	q.hint = r.store.HintFix(clOrdID, slot, order.FixFlags(day))
}

// flushGets answers the reads that can be answered now; the others wait for the round that
// is sent next.
func (r *Replica) flushGets() {
	g := &r.gets
	if len(g.list) == 0 {
		return
	}
	if serves := r.role == RolePrimary || r.role == RoleBackup; serves {
		r.lookUp()
	}
	leased := r.role == RolePrimary && r.leaseAlive()
	for i := range g.list {
		r.answerGet(&g.list[i], leased)
	}
	g.list, g.keys = g.list[:0], g.keys[:0]
}

// noOrder is the seq of a read by id without an order. One by ClOrdID has 0: the order may
// have been freed.
const noOrder = ^uint64(0)

// lookUp finds the orders in the committed prefix.
func (r *Replica) lookUp() {
	g := &r.gets
	base, _ := r.store.Base()
	for i := range g.list {
		q := &g.list[i]
		if q.keyLen > 0 {
			r.store.Prefetch(q.hint)
		} else if at, ok := r.store.PlaceOf(q.seq); ok {
			q.at = at
			r.store.PrefetchAt(at)
		} else if q.seq == 0 || q.seq > base {
			q.seq = noOrder
		} // else it is freed: getReply reports that
	}
	for i := range g.list {
		q := &g.list[i]
		found, ok := q.at, q.seq > base && q.seq != noOrder
		if q.keyLen > 0 {
			found, ok = r.store.FindHinted(q.hint, g.key(q))
		}
		if !ok {
			continue
		}
		e := r.store.At(found)
		switch seq := order.Seq(e); {
		case seq <= r.commit && order.Kind(e[4]).IsOrder():
			q.seq, q.at, q.size = seq, found, uint32(len(e))
			r.count.ReadBytes += uint64(len(e))
		case q.keyLen == 0:
			q.seq = noOrder
		}
	}
}

func (r *Replica) answerGet(q *get, leased bool) {
	if q.mode == wire.ModeBackup {
		if r.role != RolePrimary && r.role != RoleBackup {
			r.notPrimary(q.conn, wire.TypeGet, q.reqID, 0)
			return
		}
		r.count.ReadsBackup++
		r.getReply(q.conn, q.reqID, q.seq, q.at, r.commit)
		return
	}
	if r.role != RolePrimary {
		r.notPrimary(q.conn, wire.TypeGet, q.reqID, 0)
		return
	}
	if r.refusesClients(q.conn, wire.TypeGet, q.reqID, 0) {
		return
	}
	if r.commit < r.primary.floor && !mutant(mutReadBeforeFloor) {
		r.reject(q.conn, wire.TypeGet, q.reqID, 0, wire.CodeOverloaded, 0, r.primary.floor-r.commit, "the new primary is still committing entries it took over; retry")
		return
	}
	if q.mode == wire.ModeLeased && leased {
		r.count.ReadsLeased++
		r.getReply(q.conn, q.reqID, q.seq, q.at, r.commit)
		return
	}
	r.confirm(read{conn: q.conn, reqID: q.reqID, kind: readOrder, seq: q.seq, at: q.at, size: q.size, commit: r.commit})
}
