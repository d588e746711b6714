package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// limited gives a sixth of the worlds limits, and a person with the kill switch: worlds of
// one lineage whose orders are all new ones. Started so that no seed in
// testdata/seeds.txt became another world.
func limited(p *profile, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, limitsBegin))
	if rng.IntN(6) == 0 && !p.mayLose && p.restores == nil && p.fixes == nil && p.views == nil && p.match == nil {
		p.guards = rng
	}
}

const limitsBegin = 0x6c696d6974730a11

// limitsText is the file of limits that a process is given as it starts: the
// administrator changed it meanwhile, or not.
func (p *pod) limitsText() []byte {
	w, rng := p.w, p.w.profile.guards
	switch {
	case rng == nil || w.profile.match != nil:
		return nil
	case w.profile.sources != nil:
		return w.limitsFiles[p.limitsFile]
	}
	text := fmt.Sprintf(`{"maxMessages":{"perSecond":%d,"burst":%d}}`, 20<<rng.IntN(4), 4+rng.IntN(12))
	return canonicalLimits(text)
}

func canonicalLimits(text string) []byte {
	p, err := limits.ParseProfile([]byte(text))
	if err != nil {
		panic(err) // a mistake in this package
	}
	return p.Canonical()
}

// officer kills and lets go, all senders or one trader without orders.
type officer struct {
	w      *world
	conn   *conn
	reqID  uint64
	killed bool // as far as the officer knows; true once it was asked for
	scope  int  // in the world match: of the last request, a client or 2 for all
	over   [3]bool
}

func (w *world) addOfficer() {
	if w.profile.guards == nil {
		return
	}
	o := &officer{w: w}
	o.schedule()
}

func (o *officer) schedule() {
	w := o.w
	w.after(5*millisecond+w.profile.guards.Int64N(60*millisecond), func() {
		if w.stopped {
			return
		}
		o.act()
		o.schedule()
	})
}

func (o *officer) act() {
	w, rng := o.w, o.w.profile.guards
	o.count()
	kill := !w.healing && w.phase == phaseChaos && rng.IntN(5) == 0
	if !kill && !o.killed && (w.healing || rng.IntN(4) > 0) {
		return
	}
	if o.conn == nil || o.conn.proc == nil || rng.IntN(4) == 0 {
		if o.conn != nil {
			o.conn.gaveUp = true
		}
		if o.conn = w.net.dial(o, w.anyPod()); o.conn == nil {
			return
		}
	}
	o.reqID++
	m := wire.Kill{ReqID: o.reqID, Op: wire.KillOff, Scope: uint8(order.GuardAll), Who: []byte("officer"), Why: []byte("simulated")}
	if w.profile.match != nil {
		if o.scope = int(o.reqID % 3); o.scope < 2 {
			m.Scope, m.Name = uint8(order.GuardClient), fmt.Appendf(nil, "acc%d", o.scope)
		}
	}
	if kill {
		m.Op, o.killed, o.over = wire.KillOn, true, [3]bool{}
	}
	o.conn.send(wire.AppendKill(nil, partition, &m))
}

// count asks in a partition that matches what the last kill has cancelled.
func (o *officer) count() {
	if o.w.profile.match == nil || o.conn == nil || o.conn.proc == nil || !o.killed {
		return
	}
	m := wire.ReadKill{ReqID: 1 << 40, Scope: uint8(order.GuardAll)}
	if o.scope < 2 {
		m.Scope, m.Name = uint8(order.GuardClient), fmt.Appendf(nil, "acc%d", o.scope)
	}
	o.conn.send(wire.AppendReadKill(nil, partition, &m))
}

func (o *officer) closed(cn *conn) {
	if o.conn == cn {
		o.conn = nil
	}
}

func (o *officer) got(cn *conn, frame []byte, lineage uint64) {
	var m wire.KillDone
	if cn != o.conn || wire.FrameType(frame) != wire.TypeKillDone || wire.DecodeKillDone(frame, &m) != nil || m.ReqID != o.reqID {
		return
	}
	o.w.stats.Kills++
	if o.w.timeline(lineage).limits.ops[m.Entry] == order.GuardUnkill {
		o.over[o.scope] = true
		o.killed = o.w.profile.match != nil && o.over != [3]bool{true, true, true}
	}
}

// limitsModel is what committed entries say of limits, with nothing of the machine: a bucket
// per session, and whether everybody is killed.
type limitsModel struct {
	ops    map[uint64]order.GuardOp // by entry
	rules  limits.Rules
	killed uint64           // the entry that did, 0: none
	names  map[string]bool  // of clients that are killed
	level  map[uint32]int64 // of a session slot, in billionths of a message
	at     map[uint32]int64
	file   int // which of world.limitsFiles is in force, from 1; 0: one without a source
}

// checkLimits: I36, no order is committed beyond the limits in force at its position; I37,
// none behind a kill.
func (w *world) checkLimits(t *timeline, e *order.Entry, msg []byte) {
	if w.profile.guards == nil {
		return
	}
	m := &t.limits
	if m.ops == nil {
		*m = limitsModel{ops: map[uint64]order.GuardOp{}, names: map[string]bool{}, level: map[uint32]int64{}, at: map[uint32]int64{}}
	}
	switch e.Kind {
	case order.KindGuard:
		g := order.GuardOf(msg)
		m.ops[e.Seq] = g.Op
		switch g.Op {
		case order.GuardProfile:
			p, err := limits.ParseProfile(g.Profile)
			if err != nil {
				w.violation("I36", "entry %d has limits that are none: %v", e.Seq, err)
				return
			}
			m.rules, _ = p.Rules()
			w.checkSource(m, e, g.Profile)
		case order.GuardKill:
			if g.Scope == order.GuardClient {
				m.names[string(g.Name)] = true
			} else if m.killed == 0 {
				m.killed = e.Seq
			}
		case order.GuardUnkill:
			if g.Scope == order.GuardClient {
				delete(m.names, string(g.Name))
			} else {
				m.killed = 0
			}
		}
	case order.KindExecute:
		if account := accountIn(msg); (m.killed != 0 || m.names[account]) && !bytes.Contains(msg, []byte("\x0135=F\x01")) {
			w.violation("I37", "order %d of %s is committed behind a kill", e.Seq, account)
		}
	case order.KindOrder:
		if m.killed != 0 && !bytes.Contains(msg, []byte("\x0135=F\x01")) {
			w.violation("I37", "order %d is committed, and entry %d killed all orders", e.Seq, m.killed)
		}
		w.checkRate(m, e)
	}
}

// accountIn returns the Account (1) of a message.
func accountIn(msg []byte) string {
	_, rest, _ := bytes.Cut(msg, []byte("\x011="))
	account, _, _ := bytes.Cut(rest, []byte{1})
	return string(account)
}

// checkRate fills and empties the bucket of a session.
func (w *world) checkRate(m *limitsModel, e *order.Entry) {
	const one = 1_000_000_000
	if m.rules.Rate == 0 {
		return
	}
	full := int64(m.rules.Burst) * one
	level, known := m.level[e.Session]
	if !known {
		level = full
	}
	// A clock that was set back by longer than the bucket takes to fill has filled it.
	at, now := m.at[e.Session], e.TimeNs
	switch passed := min(max(now-at, at-now), 100*one) * int64(m.rules.Rate); {
	case passed > full:
		level = full
	case now < at:
		level, now = min(full, level), at
	default:
		level = min(full, level+passed)
	}
	if level < one {
		w.violation("I36", "order %d of session %d is committed beyond the limit of %d messages a second and %d at once", e.Seq, e.Session, m.rules.Rate, m.rules.Burst)
	}
	m.level[e.Session], m.at[e.Session] = level-one, now
}

// checkKillIs: I47, a kill that is said to be complete is so by a committed entry, and has cancelled
// as many orders as the committed entries up to there have cancels of it.
func (w *world) checkKillIs(p *process, frame []byte, lineage uint64) {
	var m wire.KillIs
	if err := wire.DecodeKillIs(frame, &m); err != nil {
		w.violation("wire", "%s: %v", p.name, err)
		return
	}
	t := w.shown(lineage)
	if p.spoiled || m.State != wire.KillComplete {
		return
	}
	if m.Complete > uint64(len(t.hashes)) || t.limits.ops[m.Entry] != order.GuardKill {
		w.violation("I47", "%s says that the kill of entry %d is complete with entry %d, which are not both committed", p.name, m.Entry, m.Complete)
		return
	}
	n := uint64(0)
	for seq := m.Entry; seq <= m.Complete; seq++ {
		for _, r := range w.check.executions[t.hashes[seq-1]].records {
			if r.Kind == match.Cancelled && r.Reason == match.Killed && r.Other == m.Entry {
				n++
			}
		}
	}
	if w.stats.KillCounts++; n != m.Cancelled {
		w.violation("I47", "%s says that the kill of entry %d cancelled %d orders; by the log it is %d", p.name, m.Entry, m.Cancelled, n)
	}
}

// checkKillDone: I37, a kill is acknowledged when its entry is committed.
func (w *world) checkKillDone(p *process, frame []byte, lineage uint64) {
	var m wire.KillDone
	_ = wire.DecodeKillDone(frame, &m)
	if t := w.timeline(lineage); t.limits.ops[m.Entry] == 0 {
		w.violation("I37", "%s acknowledges a kill as entry %d, which is not committed as one", p.name, m.Entry)
	}
}
