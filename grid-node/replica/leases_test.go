package replica_test

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// leased reports whether a leased read is answered at once, on the lease.
func (m *member) leased(clock int64) bool {
	m.step(clock, replica.Event{Kind: replica.EventTick})
	before := m.r.Counters().ReadsLeased
	m.step(clock, replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: wire.AppendGet(nil, partition, &wire.Get{By: wire.ByID, Mode: wire.ModeLeased, Seq: 1})})
	return m.r.Counters().ReadsLeased > before
}

// A primary that continues in the next epoch has no lease there until a member has
// answered in it: a member admitted or kept by that change may take over without waiting
// for a lease that it never saw.
func TestLeaseIsEarnedAnewInEveryEpoch(t *testing.T) {
	for name, earn := range map[string]func(a, b *member){
		"heartbeats": func(a, b *member) {
			for _, beat := range a.beat(a.clock + 20*ms) {
				for _, answer := range b.hear(a.clock+20*ms, beat) {
					a.answered(a.clock+20*ms, answer)
				}
			}
		},
		"data": func(a, b *member) {
			a.step(a.clock+2, replica.Event{Kind: replica.EventPeerFrame, Frame: wire.AppendPrepareAck(nil, partition, &wire.PrepareAck{PeerHead: b.headTo(a.r.Status().Config.Epoch, a), EchoNs: a.clock + 1})})
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := twoMembers(t, true)
			a.step(a.clock+1, replica.Event{Kind: replica.EventPeerFrame, Frame: b.stored(2, a, a.r.Status().LastSeq)}) // no reads before
			earn(a, b)
			if !a.leased(a.clock + 30*ms) {
				t.Fatal("no lease: the test is inconclusive")
			}
			a.config(3, 1, a, b)
			if a.leased(a.clock + 30*ms) {
				t.Error("the lease of epoch 2 is alive in epoch 3")
			}
			b.config(3, 1, a, b) // held until the primary sends in it
			b.step(b.clock+1, replica.Event{Kind: replica.EventPeerFrame, Frame: wire.AppendBeacon(nil, partition, &wire.Beacon{PeerHead: a.headTo(3, b)})})
			a.step(a.clock+1, replica.Event{Kind: replica.EventPeerFrame, Frame: b.stored(3, a, a.r.Status().LastSeq)})
			earn(a, b)
			if !a.leased(a.clock + 30*ms) {
				t.Error("the lease of epoch 3 is not alive")
			}
		})
	}
}

// A backup knows that its primary answers leased reads: from data, without a beacon yet.
// In the next epoch of the same primary it still waits the lease out.
func TestLeasedIsRememberedOfData(t *testing.T) {
	a, b := twoMembers(t, true)
	b.step(b.clock+1, replica.Event{Kind: replica.EventPeerFrame, Frame: wire.AppendBeacon(nil, partition,
		&wire.Beacon{PeerHead: a.headTo(2, b), Flags: wire.FlagLeased})})
	b.config(3, 1, a, b)
	b.step(b.clock+1, replica.Event{Kind: replica.EventPeerDown, Address: a.self.Address})
	if s := b.r.Status(); s.Role != replica.RoleBackup || s.Config.Epoch != 3 {
		t.Errorf("%s at epoch %d while the lease may be alive", s.Role, s.Config.Epoch)
	}
	for range 23 {
		b.step(b.clock+10*ms, replica.Event{Kind: replica.EventTick})
	}
	if s := b.r.Status(); s.Role != replica.RoleFenced {
		t.Errorf("%s after the lease, want a take-over", s.Role)
	}
}
