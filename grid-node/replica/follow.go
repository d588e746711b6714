package replica

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// FollowFrom judges a request for the committed log as it grows. It returns the first entry
// that the follower gets, or how its stream ends at once. Only a member in sync serves: what
// a learner holds as committed may be another history. Within a lineage the committed prefix
// is one, so a hash that differs in it is of another lineage, or of another log.
func (r *Replica) FollowFrom(m *wire.Follow) (from uint64, end *wire.FollowEnd) {
	base, _ := r.store.Base()
	last, _ := r.store.Last()
	from = m.FromSeq
	if from == 0 {
		from = r.commit + 1
	}
	before := from - 1
	ended := func(reason wire.EndReason, seq, hash uint64, format string, args ...any) (uint64, *wire.FollowEnd) {
		return 0, &wire.FollowEnd{ReqID: m.ReqID, Reason: reason, Seq: seq, Hash: hash, Text: fmt.Appendf(nil, format, args...)}
	}
	switch serves := r.role == RolePrimary || r.role == RoleBackup; {
	case !serves && !mutant(mutFollowLearner):
		return ended(wire.EndBehind, r.commit, 0, "%s is %s here, allowed: to follow the primary, or a backup", r.part, r.role)
	case serves && uint64(m.Lineage) > r.lineage():
		return ended(wire.EndBehind, r.commit, 0, "the follower holds entries of lineage %d, this replica is of lineage %d: go on at another, or later", m.Lineage, r.lineage())
	case before < base:
		return ended(wire.EndSnapshotRequired, base+1, r.store.HashAt(base), "entry %d is freed, as all up to %d: follow from entry %d on; what is freed is downstream", from, base, base+1)
	case before > last && m.Lineage != 0 && uint64(m.Lineage) < r.live.Orders.Lineage:
		// What this lineage took over of the one before is here, and it ends before.
		return ended(wire.EndDiverged, before, 0, "the follower holds entry %d with hash %016x, of lineage %d; the loss of data was accepted since, and the log of lineage %d ends with entry %d", before, m.FromHash, m.Lineage, r.live.Orders.Lineage, last)
	case before > r.commit:
		return ended(wire.EndBehind, r.commit, 0, "entry %d is not committed here, entries up to %d are: go on at another replica, or later", before, r.commit)
	}
	if hash := r.store.HashAt(before); m.FromHash != 0 && m.FromHash != hash && !mutant(mutFollowUnchecked) {
		return ended(wire.EndDiverged, before, hash, "entry %d of the follower has hash %016x, that of the log %016x: it holds another history", before, m.FromHash, hash)
	}
	if mutant(mutFollowSkips) && m.FromHash != 0 && from <= r.commit {
		from++
	}
	return from, nil
}

// outside reports whether a reader of the configuration is outside the grid: it says by
// Advance what it holds.
func (r *Replica) outside(name []byte) bool { return slices.Contains(r.opt.Outside, string(name)) }

// advanceReader takes in what a reader outside holds. It is logged with the next flush, and what it
// holds of another history never is.
func (r *Replica) advanceReader(conn uint64, frame []byte) error {
	var m wire.Advance
	if err := wire.DecodeAdvance(frame, &m); err != nil {
		return err
	}
	reject := func(code wire.Code, detail uint64, format string, args ...any) error {
		r.reject(conn, wire.TypeAdvance, m.ReqID, 0, code, 0, detail, fmt.Sprintf(format, args...))
		return nil
	}
	base, _ := r.store.Base()
	switch {
	case r.role != RolePrimary:
		r.notPrimary(conn, wire.TypeAdvance, m.ReqID, 0)
		return nil
	case r.refusesClients(conn, wire.TypeAdvance, m.ReqID, 0):
		return nil
	case !r.outside(m.Name):
		return reject(wire.CodeReaderUnknown, 0, "%s", UnknownReader(string(m.Name), r.opt.Outside))
	case m.Seq > r.commit:
		return reject(wire.CodeReaderAhead, r.commit, "reader %q holds entry %d, entries up to %d are committed here: say it again later", m.Name, m.Seq, r.commit)
	}
	// What is freed every reader has said before.
	if hash := r.store.HashAt(m.Seq); m.Seq >= base && hash != m.Hash && !mutant(mutAdvanceUnchecked) {
		return reject(wire.CodeDiverged, hash, "entry %d of reader %q has hash %016x, that of the log %016x: it holds another history, and its position stays as it was", m.Seq, m.Name, m.Hash, hash)
	}
	for i := range r.readers {
		if d := &r.readers[i]; d.name == string(m.Name) {
			r.advanced(d)
			d.reached = max(d.reached, m.Seq)
			d.asked = asked{conn: conn, reqID: m.ReqID, seq: m.Seq, waits: true}
		}
	}
	return nil
}

// answerAdvances answers what readers outside said, once the committed log says it too. An entry that
// would say nothing but that positions were logged is not written: see cursorDue.
func (r *Replica) answerAdvances() {
	for i := range r.readers {
		d := &r.readers[i]
		if !d.asked.waits {
			continue
		}
		said := r.position(d.name)
		switch {
		case r.role != RolePrimary:
			r.notPrimary(d.asked.conn, wire.TypeAdvance, d.asked.reqID, 0)
			d.asked.waits = false
		case d.committed >= d.asked.seq, d.known && said.Entry <= r.commit && r.live.Cursors.Data <= said.To:
			r.advanced(d)
		}
	}
}

// advanced answers the last Advance of a reader.
func (r *Replica) advanced(d *reader) {
	if !d.asked.waits {
		return
	}
	d.asked.waits = false
	off := len(r.out.buf)
	r.out.buf = wire.AppendAdvanced(r.out.buf, r.part, &wire.Advanced{ReqID: d.asked.reqID, Seq: d.committed})
	r.out.reply(d.asked.conn, off, nil)
}

// UnknownReader says that there is no reader outside of a name, and which there are.
func UnknownReader(name string, outside []string) string {
	allowed := "none is configured"
	if len(outside) > 0 {
		allowed = strings.Join(outside, ", ")
	}
	return fmt.Sprintf("reader %.40q, allowed: %s (spec.sinks[] with type: External, --external-sink)", name, allowed)
}
