package replica_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// source is the partition of another grid whose log a standby copies: a world of its own, of
// two replicas.
type source struct {
	*script
	orders int
}

func newSource(t *testing.T, frees bool) *source {
	s := &source{script: &script{t: t, sessions: map[uint64]sessionKey{}, attempts: map[int]int{}}}
	opt := worldOptions{replicas: 2, minInSync: 1, limits: replica.Limits{Window: 8}, proved: true}
	if frees {
		opt.retention = replica.Retention{FreeDownstream: true, High: 8, Critical: 1 << 40}
	}
	s.w = newWorld(t, opt)
	s.w.quiet = true
	s.w.deliver()
	s.w.tick(200 * ms)
	s.open()
	return s
}

// addSource makes the source of a standby.
func (s *script) addSource(d *datadriven.TestData) {
	if s.source = nil; d.HasArg("standby") {
		s.source = newSource(s.t, d.HasArg("source-frees"))
	}
}

// primary of the source.
func (s *source) primary() *node {
	for _, n := range s.w.nodes {
		if n.up && n.r.Status().Role == replica.RolePrimary {
			return n
		}
	}
	s.t.Fatal("the source has no primary")
	return nil
}

// open opens the session of client 1, again after a failover.
func (s *source) open() {
	s.attempts[1]++
	s.send(s.primary(), 1, wire.AppendOpenSession(nil, partition, &wire.OpenSession{ReqID: 1, IDHi: 1, IDLo: 7, Attempt: uint64(s.attempts[1])}))
	s.w.deliver()
}

// make makes n orders.
func (s *source) make(n int) {
	for range n {
		s.orders++
		k := s.sessions[1]
		s.send(s.primary(), 1, wire.AppendSubmit(nil, partition, &wire.Submit{Slot: k.slot, Generation: k.generation, ClientSeq: uint64(s.orders), Payload: fixOrder(fmt.Sprintf("c1-%d", s.orders), 0)}))
		s.w.deliver()
	}
	s.w.tick(50 * ms)
}

// failOver kills the primary, and starts its pod again.
func (s *source) failOver() {
	n := s.primary()
	s.w.crash(n, true)
	s.w.tick(500 * ms)
	n.start()
	s.w.tick(500 * ms)
	s.open()
}

// link runs the commands of a link from the source, and of promotion.
func (s *script) link(d *datadriven.TestData) bool {
	client, on, term := uint64(9), "a", uint64(0)
	arg(d, "client", &client)
	arg(d, "on", &on)
	arg(d, "term", &term)
	switch d.Cmd {
	case "source":
		n, sink := 0, 0
		arg(d, "orders", &n)
		if arg(d, "sink", &sink); sink > 0 {
			s.source.primary().step(replica.Event{Kind: replica.EventCursor, Seq: uint64(sink)})
			s.source.w.deliver()
			s.source.w.tick(50 * ms)
		}
		if d.HasArg("fails-over") {
			s.source.failOver()
		}
		s.source.make(n)
		st := s.source.primary().r.Status()
		s.w.logf("the source ends with entry %d, %d committed, epoch %d lineage %d", st.LastSeq, st.CommitSeq, st.Config.Epoch, st.Config.Lineage)
	case "linkopen":
		m := wire.LinkOpen{ReqID: 1, Term: term, Source: []byte("orders-a")}
		if d.HasArg("asks") {
			m.Source = nil
		}
		s.send(s.w.node(on), client, wire.AppendLinkOpen(nil, partition, &m))
	case "link":
		s.sendLinked(d, s.w.node(on), client, term)
	case "promote":
		s.promote(d, term)
	case "demote":
		s.w.arb.spec.Demotion = replica.Demotion{Wanted: !d.HasArg("withdrawn"), Term: term}
		s.decided()
	default:
		return false
	}
	if !d.HasArg("hold") {
		s.w.deliver()
	}
	return true
}

// sendLinked sends entries of the source; with bad the first one is of another history.
func (s *script) sendLinked(d *datadriven.TestData, n *node, client, term uint64) {
	var from, to int
	arg(d, "from", &from)
	to = from
	arg(d, "to", &to)
	var entries []byte
	for seq := from; seq <= to; seq++ {
		entry := append([]byte(nil), s.source.primary().st.Get(uint64(seq))...)
		if d.HasArg("bad") && seq == from {
			entry[16] ^= 1 // its prevHash
		}
		entries = append(append(entries, entry...), make([]byte, order.Padded(len(entry))-len(entry))...)
	}
	s.send(n, client, wire.AppendLinkEntries(nil, partition, &wire.LinkEntries{ReqID: 1, Term: term, Entries: entries}))
}

// promote decides that the standby's site makes the entries: with the token of the source's
// log as it ends now, or forced.
func (s *script) promote(d *datadriven.TestData, term uint64) {
	a := &s.w.arb
	last, hash := s.source.primary().st.Last()
	a.spec.Promotion = replica.Promotion{Term: term, Seq: last, Hash: hash}
	if d.HasArg("forced") {
		a.spec.Promotion = replica.Promotion{Term: term, Forced: true}
	}
	if d.HasArg("bad") {
		a.spec.Promotion.Hash ^= 1
	}
	s.decided()
}

// decided shows a decision to the replicas.
func (s *script) decided() {
	a := &s.w.arb
	if a.spec.Replicas == 0 {
		a.spec.Replicas = s.w.opt.replicas
	}
	a.touch()
	a.tellAll()
	s.w.tick(20 * ms)
}

// checkStandby compares every replica of a standby with its source: each log is a prefix of
// what that has committed.
func (s *script) checkStandby() {
	if s.source == nil || s.w == nil || s.w.arb.rec.Epoch > 0 && !s.w.arb.rec.Standby {
		return
	}
	from := s.source.primary()
	for _, n := range s.w.nodes {
		if !n.up {
			continue
		}
		last, hash := n.st.Last()
		if last > from.st.Committed() || hash != from.st.HashAt(last) {
			s.t.Errorf("%s holds entry %d with hash %016x; the source has committed %d, and there it is %016x", n.name(), last, hash, from.st.Committed(), from.st.HashAt(min(last, from.st.Committed())))
		}
	}
}
