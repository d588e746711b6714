package replica

import (
	"bytes"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Limits, see docs/adr/0062: a primary checks an order before it is an entry, all copies
// count it when it is one. Profiles and kills are entries.

// guardState is what a replica has beside the machine.
type guardState struct {
	profile []byte          // to be in force; nil: what the log has
	parsed  *limits.Profile // the same
	plain   []byte          // the same without its source; nil if it has none
	refused []byte          // a profile that the log cannot have, not tried again
	why     string
	fields  order.Fields // of the order that is being checked
}

// hold copies f, so that the entry that f is of stays on the stack.
func (g *guardState) hold(f *order.Fields) *order.Fields {
	g.fields = *f
	return &g.fields
}

// SetProfile changes the limits that this replica puts in force as a primary, as
// limits.Profile writes them; nil: those that the log has stay.
func (r *Replica) SetProfile(text []byte) { r.limits, r.restTill = newGuardState(text), 0 }

func newGuardState(text []byte) guardState {
	g := guardState{profile: text, parsed: &limits.Profile{}}
	if p, err := limits.ParseProfile(text); err == nil { // else the log refuses it
		if g.parsed = p; p.Source != nil {
			g.plain = p.Plain().Canonical()
		}
	}
	return g
}

// ProfileRefused returns why the log cannot have the profile, empty if it can.
func (r *Replica) ProfileRefused() string { return r.limits.why }

// Guard returns the kills and the profile of everything that is stored here. They must not
// be changed, and are valid until the next Step.
func (r *Replica) Guard() *machine.Guard { return r.live.Guard }

// Limits returns the profile in force and its entry, and how many kills are in effect, as the committed log has them; there is
// no text if it has no profile. The text must not be changed.
func (r *Replica) Limits() (text []byte, at machine.Decree, kills int) {
	g := r.live.Guard
	if g == nil {
		return nil, at, 0
	}
	if text, at = g.Profile(); at.Entry > r.commit {
		text, at = nil, machine.Decree{}
	}
	for i := range g.Kills() {
		if g.Kills()[i].Entry <= r.commit {
			kills++
		}
	}
	return text, at, kills
}

// profileDue reports whether this primary has limits to put in force.
func (r *Replica) profileDue() bool { return r.profileWanted() != nil }

// profileWanted returns the limits that this primary has to put in force; nil: those that the log
// has stay, which are the same, or later ones.
func (r *Replica) profileWanted() []byte {
	s, g := &r.limits, r.live.Guard
	if r.role != RolePrimary || s.profile == nil || !r.makesEntries() || bytes.Equal(s.profile, s.refused) {
		return nil
	}
	if r.live.Books != nil && !r.live.Books.Ready() {
		return nil
	}
	want := s.profile
	if s.plain != nil && g.Source() == nil && !r.allHere(wire.FeatureLimitSource) {
		want = s.plain // as releases before do
	}
	if g != nil {
		if text, _ := g.Profile(); bytes.Equal(text, want) || !g.Supersedes(s.parsed) {
			return nil
		}
	}
	if !r.knowGuard() {
		return nil
	}
	return want
}

// ProfileWaits returns why this primary does not put its limits in force although the log could
// have them: it has later ones. Empty if that is not so. A file that is behind is the reason, as
// a rule, and its next content the end of it.
func (r *Replica) ProfileWaits() string {
	s, g := &r.limits, r.live.Guard
	if r.role != RolePrimary || s.profile == nil || g == nil || g.Supersedes(s.parsed) {
		return ""
	}
	if text, _ := g.Profile(); bytes.Equal(text, s.profile) {
		return ""
	}
	return fmt.Sprintf("the file has %v, and the log %v, which stays in force until the file has a later one", s.parsed.Source, g.Source())
}

// knowGuard reports whether every replica knows entries with limits. Once there is one, all
// that hold it do.
func (r *Replica) knowGuard() bool {
	if r.live.Guard != nil || mutant(mutGuardUnasked) {
		return true
	}
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; !p.knowsGuard && !r.gone(p) {
			return false
		}
	}
	return true
}

// logProfile puts the limits of the options in force, as a primary.
func (r *Replica) logProfile() {
	want := r.profileWanted()
	if want == nil || r.parking() || r.closing() || r.windowFull() {
		return
	}
	g := order.Guard{Op: order.GuardProfile, Who: []byte(r.self.ID), Profile: want}
	e := order.Entry{Kind: order.KindGuard}
	payload := g.Append(nil)
	if err := r.live.Check(&e, payload); err != nil {
		r.limits.refused, r.limits.why = r.limits.profile, err.Error()
		return
	}
	_ = r.append(&e, payload, 0, pending{}) // a full store: later
}

// namesDue reports whether this primary has to begin that kills cancel what rests: as a
// partition begins, or when all its copies are there and know it, not in the middle of an
// update.
func (r *Replica) namesDue() bool {
	b := r.live.Books
	if !b.Ready() || r.live.Guard.Names() || len(b.Instruments()) > 0 && len(r.cfg.InSync) < r.opt.Replicas {
		return false
	}
	return r.allKnow(wire.FeatureKillCancels)
}

// logNames makes the entry from which on the books know who answers for an order, before the
// first one if every copy is of this release.
func (r *Replica) logNames() {
	if !r.namesDue() || !r.mayLogExecution() {
		return
	}
	g := order.Guard{Op: order.GuardNames, Who: []byte(r.self.ID)}
	_ = r.append(&order.Entry{Kind: order.KindGuard}, g.Append(nil), 0, pending{}) // a full store: later
}

// limited returns why the limits in force refuse an order, limits.None if they do not.
func (r *Replica) limited(o *machine.Offer) limits.Reason {
	o.TimeNs = r.now.Wall
	if mutant(mutGuardUnchecked) && r.epoch > 1 {
		return limits.None
	}
	why := r.live.Admit(o)
	if why != limits.None {
		r.count.LimitRefusals[why]++
		r.text = append(r.text[:0], r.live.Explain(o, why)...)
	}
	return why
}

// limitText returns OrdRejReason (103) and the text of what limited has just refused.
func (r *Replica) limitText(why limits.Reason) (reason uint64, text string) {
	return rejReason(why), string(r.text)
}

func (r *Replica) rejectLimit(conn uint64, m *wire.Submit, why limits.Reason) {
	reason, text := r.limitText(why)
	r.rejectSubmit(conn, m, wire.CodeLimitRefused, reason, text)
}

// rejReason returns OrdRejReason (103) of FIX 4.4. It is a part of the refusal that FIX sessions have in the log: what it
// is of a reason is what reports say whenever they are asked for.
func rejReason(why limits.Reason) uint64 {
	switch why {
	case limits.MaxVolume, limits.MaxValue, limits.Overflow, limits.PriceCollar, limits.ClientCredit, limits.TotalCredit:
		return 3 // order exceeds limit
	case limits.Duplicate:
		return 6 // duplicate order
	case limits.Killed, limits.Halted, limits.RestrictedSymbol, limits.NotAuthorised, limits.TooManyMessages:
		return 0 // broker or exchange option
	case limits.UnknownSymbol:
		return 1 // unknown symbol
	case limits.BadQty:
		return 13 // incorrect quantity
	}
	return reasonOther
}

// kill makes an entry of a kill or its end. One that is in effect gets another entry, which
// changes nothing: the log keeps who asked.
func (r *Replica) kill(conn uint64, frame []byte) error {
	var m wire.Kill
	if err := wire.DecodeKill(frame, &m); err != nil {
		return err
	}
	refuse := func(code wire.Code, text string) {
		r.reject(conn, wire.TypeKill, m.ReqID, 0, code, 0, 0, text)
	}
	if r.role != RolePrimary {
		r.notPrimary(conn, wire.TypeKill, m.ReqID, 0)
		return nil
	}
	if r.refusesClients(conn, wire.TypeKill, m.ReqID, 0) {
		return nil
	}
	switch {
	case r.parking() || r.stopping || r.windowFull() || r.live.Books != nil && !r.live.Books.Ready():
		refuse(wire.CodeOverloaded, "the partition moves, stops, or waits for replication; retry")
		return nil
	case !r.knowGuard():
		refuse(wire.CodeUnsupported, "a copy of the partition is of a release without limits; retry when all nodes are of this one")
		return nil
	}
	if g := (order.Guard{Op: order.GuardOp(m.Op), Scope: order.GuardScope(m.Scope), Name: m.Name}); g.Op == order.GuardKill && r.live.KillsFull(&g) {
		refuse(wire.CodeOverloaded, "as many kills as there can be are cancelling what rests; retry")
		return nil
	}
	g := order.Guard{Op: order.GuardOp(m.Op), Scope: order.GuardScope(m.Scope), Name: m.Name, Who: m.Who, Why: m.Why}
	e := order.Entry{Kind: order.KindGuard}
	payload := g.Append(nil)
	if err := order.CheckGuard(payload); err != nil {
		refuse(wire.CodeUnsupported, err.Error())
		return nil
	}
	if err := r.live.Check(&e, payload); err != nil {
		refuse(wire.CodeUnsupported, err.Error())
		return nil
	}
	kind := pendingKill
	if is := r.live.Guard != nil && r.live.Guard.Killed(g.Scope, g.Name); is == (g.Op == order.GuardKill) {
		kind = pendingRekill
	}
	if err := r.append(&e, payload, 0, pending{conn: conn, requestID: m.ReqID, kind: kind}); err != nil {
		r.rejectAppend(conn, wire.TypeKill, m.ReqID, 0, err)
		return nil
	}
	if last, _ := r.store.Last(); mutant(mutKillUncommitted) {
		p := r.primary.pend.take(last)
		r.killDone(&p, last)
	}
	return nil
}

// killDone answers a Kill whose entry is committed now.
func (r *Replica) killDone(p *pending, seq uint64) {
	m := wire.KillDone{ReqID: p.requestID, Entry: seq, TimeNs: order.Received(r.store.Get(seq)), Was: p.kind == pendingRekill}
	off := len(r.out.buf)
	r.out.buf = wire.AppendKillDone(r.out.buf, r.part, &m)
	r.out.reply(p.conn, off, nil)
}

// readLimits answers with the limits of the committed prefix.
func (r *Replica) readLimits(conn uint64, frame []byte) error {
	var m wire.ReadLimits
	if err := wire.DecodeReadLimits(frame, &m); err != nil {
		return err
	}
	if r.ofOlderLineage() || r.role != RolePrimary && r.role != RoleBackup {
		r.notPrimary(conn, wire.TypeReadLimits, m.ReqID, 0)
		return nil
	}
	reply := wire.LimitsAre{ReqID: m.ReqID, CommitSeq: r.commit}
	if g := r.live.Guard; g != nil {
		decree := func(d *machine.Decree) wire.Decree {
			return wire.Decree{Entry: d.Entry, TimeNs: d.TimeNs, Who: []byte(d.Who), Why: []byte(d.Why)}
		}
		if text, at := g.Profile(); at.Entry <= r.commit {
			reply.Decree, reply.Text = decree(&at), text
		}
		for i := range g.Kills() {
			if k := &g.Kills()[i]; k.Entry <= r.commit {
				reply.Kills = append(reply.Kills, wire.ActiveKill{Decree: decree(&k.Decree), Scope: uint8(k.Scope), Name: []byte(k.Name)})
			}
		}
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendLimitsAre(r.out.buf, r.part, &reply)
	r.out.reply(conn, off, nil)
	return nil
}

// refusesOnBackup is what a backup with mutGuardOnBackup does: it checks orders anew, by its
// own clock, and does not count those that it would refuse.
func (r *Replica) refusesOnBackup(e *order.Entry, payload []byte) bool {
	if r.role == RolePrimary || r.live.Guard == nil || e.Kind != order.KindOrder || e.Flags != 0 {
		return false
	}
	o := machine.Offer{TimeNs: r.now.Wall - 1e9, Session: e.Session, Message: payload, Fields: &e.Fields}
	if r.live.Admit(&o) == limits.None {
		return false
	}
	kept := r.live.Guard
	r.live.Guard = nil
	r.live.Apply(e, payload)
	r.live.Guard = kept
	return true
}
