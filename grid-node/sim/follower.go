package sim

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// outsideReader is the name of the reader that is outside the grid, in worlds that have one.
const outsideReader = "link"

// follower follows the committed log as it grows, at any member in sync, and goes on at another
// one with the number and hash of the last entry it holds. As a reader outside the grid it tells what it holds, now
// and then, to whom it takes for the primary.
type follower struct {
	w        *world
	name     string // of its reader, or ""
	conn     *conn
	advances *conn
	reqID    uint64
	seq      uint64 // last entry it holds
	hash     uint64
	lineage  uint64
	advanced uint64 // the highest that it ever said
}

func (w *world) addFollowers() {
	if !w.profile.follows {
		return
	}
	for _, name := range []string{"", w.profile.outside} {
		f := &follower{w: w, name: name}
		w.followers = append(w.followers, f)
		f.schedule()
	}
}

func (f *follower) schedule() {
	f.w.after(f.w.between(15*millisecond, 45*millisecond), func() {
		f.act()
		f.schedule()
	})
}

// act goes on elsewhere, or tells what the follower holds.
func (f *follower) act() {
	w := f.w
	if f.conn == nil || f.conn.proc == nil || w.rng.IntN(8) == 0 {
		if f.conn != nil {
			f.conn.gaveUp = true
		}
		if f.conn = w.net.dial(f, w.anyPod()); f.conn == nil {
			return
		}
		f.follow()
	}
	if f.name != "" && f.seq > 0 && w.rng.IntN(4) == 0 {
		if f.advances == nil || f.advances.proc == nil || f.advances.gaveUp {
			if f.advances = w.net.dial(f, w.anyPod()); f.advances == nil {
				return
			}
		}
		f.reqID++
		f.advanced = max(f.advanced, f.seq)
		f.advances.send(wire.AppendAdvance(nil, partition, &wire.Advance{ReqID: f.reqID, Seq: f.seq, Hash: f.hash, Name: []byte(f.name)}))
	}
}

func (f *follower) follow() {
	f.reqID++
	f.conn.send(wire.AppendFollow(nil, partition, &wire.Follow{ReqID: f.reqID, FromSeq: f.seq + 1, FromHash: f.hash, Lineage: uint32(f.lineage), Window: 1, Name: []byte(f.name)}))
}

func (f *follower) closed(cn *conn) {
	if f.conn == cn {
		f.conn = nil
	}
	if f.advances == cn {
		f.advances = nil
	}
}

func (f *follower) got(cn *conn, frame []byte, lineage uint64) {
	switch t := wire.FrameType(frame); {
	case cn == f.advances && (t == wire.TypeNotPrimary || t == wire.TypeReject):
		cn.gaveUp = true // another one may be the primary
	case cn != f.conn:
	case t == wire.TypeFollowEntries:
		f.take(frame, lineage)
	case t == wire.TypeFollowEnd:
		f.ended(frame, lineage)
	}
}

// take checks I8: each entry once, in order, and committed, at whichever replica.
func (f *follower) take(frame []byte, lineage uint64) {
	w := f.w
	var m wire.FollowEntries
	if err := wire.DecodeFollowEntries(frame, &m); err != nil {
		w.violation("I8", "a follower gets what is no frame: %v", err)
		return
	}
	t := w.shown(lineage)
	if m.From != f.seq+1 {
		w.violation("I8", "a follower that holds entry %d is sent on with entry %d", f.seq, m.From)
		return
	}
	for rest := m.Entries; len(rest) > 0; {
		var e order.Entry
		entry, after, err := order.NextEntry(rest, &e)
		rest = after
		switch {
		case err != nil:
			w.violation("I8", "a follower gets what is no entry: %v", err)
		case e.Seq != f.seq+1:
			w.violation("I8", "a follower that holds entry %d gets entry %d", f.seq, e.Seq)
		case e.PrevHash != f.hash:
			w.violation("I8", "a follower gets entry %d, which does not follow the one it holds", e.Seq)
		case e.Seq > uint64(len(t.hashes)) || order.Hash(entry) != t.hashes[e.Seq-1]:
			w.violation("I8", "a follower gets entry %d, which is not a committed one", e.Seq)
		}
		if w.stopped {
			return
		}
		f.seq, f.hash = e.Seq, order.Hash(entry)
		w.stats.Followed++
	}
	if f.seq != m.Through || f.seq > 0 && f.hash != m.ThroughHash {
		w.violation("I8", "a follower has entry %d with hash %016x; it is told that it has entry %d with hash %016x", f.seq, f.hash, m.Through, m.ThroughHash)
	}
	f.lineage = max(f.lineage, uint64(m.Lineage))
}

// ended checks what a follower is told instead of entries.
func (f *follower) ended(frame []byte, lineage uint64) {
	w := f.w
	var m wire.FollowEnd
	_ = wire.DecodeFollowEnd(frame, &m)
	t := w.shown(lineage)
	switch m.Reason {
	case wire.EndSnapshotRequired:
		freed := m.Seq - 1
		switch first, began := t.readers[f.name]; {
		case freed <= f.seq || freed > t.freeable || m.Hash != t.hashes[freed-1]:
			w.violation("I8", "a follower that holds entry %d is told that entries up to %d are freed; a committed entry allows up to %d", f.seq, freed, t.freeable)
		case f.name != "" && began && freed > max(first, f.advanced):
			w.violation("I14", "entries up to %d are freed; reader %s outside has said that it holds entry %d", freed, f.name, f.advanced)
		}
		if w.stopped {
			return
		}
		f.seq, f.hash = freed, m.Hash
	case wire.EndDiverged:
		if f.seq > 0 && f.seq <= uint64(len(t.hashes)) && t.hashes[f.seq-1] == f.hash {
			w.violation("I8", "a follower is told that entry %d, which is committed in lineage %d, is of another history", f.seq, lineage)
			return
		}
		w.stats.Diverged++
		f.seq, f.hash, f.lineage = 0, 0, 0 // it begins anew
	}
	f.conn.gaveUp = true
	f.conn = nil
}

// follow serves a follower as the node does: the replica judges, and what is committed is read
// beside it.
func (p *process) follow(c *conn, frame []byte) {
	var m wire.Follow
	_ = wire.DecodeFollow(frame, &m)
	from, end := p.r.FollowFrom(&m)
	if end != nil {
		p.w.net.reply(p, c.id, wire.AppendFollowEnd(nil, partition, end), p.lineage())
		return
	}
	p.r.SetFollowed(true)
	tape, _ := p.r.ExecTape(from)
	p.stream(c, m.ReqID, from, p.st.HashAt(from-1), tape)
}

// stream sends what is committed from an entry on, a little later. tape has what the entries
// did, nil in a partition that does not match.
func (p *process) stream(c *conn, reqID, next, hash uint64, tape *replica.ExecTape) {
	w := p.w
	w.after(w.between(200*microsecond, 8*millisecond), func() {
		p.deliver(func() {
			if !p.alive || c.proc != p || c.gaveUp {
				return
			}
			p.sendFollower(c, reqID, next, hash, tape)
		})
	})
}

func (p *process) sendFollower(c *conn, reqID, next, hash uint64, tape *replica.ExecTape) {
	const most = 16
	end := func(m *wire.FollowEnd) {
		p.w.net.reply(p, c.id, wire.AppendFollowEnd(nil, partition, m), p.lineage())
	}
	st := p.r.Status()
	base, baseHash := p.st.Base()
	switch {
	case st.Role != replica.RolePrimary && st.Role != replica.RoleBackup:
		end(&wire.FollowEnd{ReqID: reqID, Reason: wire.EndBehind})
		return
	case next <= base:
		end(&wire.FollowEnd{ReqID: reqID, Reason: wire.EndSnapshotRequired, Seq: base + 1, Hash: baseHash})
		return
	}
	to := p.st.Committed()
	if operatorMutant(mutFollowUncommitted) {
		to, _ = p.st.Last()
	}
	m := wire.FollowEntries{ReqID: reqID, From: next, CommitSeq: to, Lineage: uint32(p.lineage())}
	for ; next <= to && next < m.From+most; next++ {
		entry := p.st.Get(next)
		m.Entries = append(m.Entries, entry...)
		m.Entries = append(m.Entries, make([]byte, order.Padded(len(entry))-len(entry))...)
		hash = order.Hash(entry)
		if tape != nil {
			p.checkTape(next, hash, tape.Next(nil))
		}
	}
	m.Through, m.ThroughHash = next-1, hash
	p.w.net.reply(p, c.id, wire.AppendFollowEntries(nil, partition, &m), p.lineage())
	p.stream(c, reqID, next, hash, tape)
}

// checkTape: who follows executions gets those that the entry had, at every copy (I52).
func (p *process) checkTape(seq, hash uint64, records []match.Record) {
	w := p.w
	x, ok := w.check.executions[hash]
	if p.spoiled || w.check.spoiled || !ok {
		return
	}
	if !slices.Equal(records, x.records) {
		w.violation("I52", "%s streams %d executions of entry %d, which has %d, or other ones", p.name, len(records), seq, len(x.records))
	}
	w.stats.Taped += uint64(len(records))
}
