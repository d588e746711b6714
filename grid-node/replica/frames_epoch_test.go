package replica_test

import (
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// stored is the acknowledgement of a member in an epoch.
func (m *member) stored(epoch uint64, primary *member, seq uint64) []byte {
	hash := uint64(0)
	if seq > 0 {
		hash = storedHash(primary, seq)
	}
	return wire.AppendPrepareAck(nil, partition, &wire.PrepareAck{PeerHead: m.headTo(epoch, primary), StoredSeq: seq, Hash: hash})
}

func (m *member) headTo(epoch uint64, to *member) wire.PeerHead {
	return wire.PeerHead{Epoch: epoch, From: m.self.Boot, To: to.self.Boot}
}

// frames are those the last step sent to other replicas.
func (m *member) frames() (types []wire.Type) {
	for i := range m.out.Actions {
		if a := &m.out.Actions[i]; a.Kind == replica.ActionSend {
			types = append(types, wire.FrameType(m.out.Head(a)))
		}
	}
	return types
}

// config steps a member into an epoch.
func (m *member) config(epoch, lineage uint64, primary *member, inSync ...*member) {
	c := &replica.Config{Epoch: epoch, Lineage: lineage, ChangeID: string(rune('a' + epoch)), Primary: primary.self, InSync: []replica.Member{primary.self}}
	for _, o := range inSync {
		c.InSync = append(c.InSync, o.self)
	}
	m.step(m.clock+1, replica.Event{Kind: replica.EventConfig, Config: c, Fresh: true})
}

// A frame of another epoch than its receiver's, older or later, changes nothing: it is
// counted, no frame answers it, and a later epoch causes a read of the arbiter.
func TestFramesOfAnotherEpoch(t *testing.T) {
	const epoch = 5
	noop := func() []byte {
		e := order.Entry{Size: order.HeaderSize + 16, Kind: order.KindNoop, Seq: 1, Epoch: 1}
		entry := make([]byte, e.Size)
		e.Put(entry)
		return entry
	}
	// Each returns the receiver, and the frame of an epoch.
	for name, to := range map[string]func(a, b *member) (*member, func(uint64) []byte){
		"PrepareAck": func(a, b *member) (*member, func(uint64) []byte) {
			return primaryOf(a, epoch, b), func(e uint64) []byte { return b.stored(e, a, a.r.Status().LastSeq) }
		},
		"Nack": func(a, b *member) (*member, func(uint64) []byte) {
			primaryOf(a, epoch, b)
			a.step(a.clock+1, replica.Event{Kind: replica.EventPeerFrame, Frame: b.stored(epoch, a, 0)})
			return a, func(e uint64) []byte {
				return wire.AppendNack(nil, partition, &wire.Nack{PeerHead: b.headTo(e, a), Expected: 1})
			}
		},
		"SnapshotRequest": func(a, b *member) (*member, func(uint64) []byte) {
			a.takeBase(epoch-2, 9, b)
			primaryOf(a, epoch)
			a.step(a.clock+1, replica.Event{Kind: replica.EventPeerFrame, Frame: wire.AppendJoin(nil, partition, &wire.Join{PeerHead: b.headTo(epoch, a), Member: []byte(b.self.ID), Address: []byte(b.self.Address)})})
			return a, func(e uint64) []byte {
				return wire.AppendSnapshotRequest(nil, partition, &wire.SnapshotRequest{PeerHead: b.headTo(e, a), Base: 9})
			}
		},
		"Prepare": func(a, b *member) (*member, func(uint64) []byte) {
			b.config(epoch, 1, a, b)
			return b, func(e uint64) []byte {
				return wire.AppendPrepare(nil, partition, &wire.Prepare{PeerHead: a.headTo(e, b), Entries: noop(), CommitSeq: 1})
			}
		},
		"Beacon": func(a, b *member) (*member, func(uint64) []byte) {
			b.config(epoch, 1, a, b)
			return b, func(e uint64) []byte {
				return wire.AppendBeacon(nil, partition, &wire.Beacon{PeerHead: a.headTo(e, b)})
			}
		},
		"JoinReply": func(a, b *member) (*member, func(uint64) []byte) {
			b.config(epoch, 1, a)
			return b, func(e uint64) []byte {
				return wire.AppendJoinReply(nil, partition, &wire.JoinReply{PeerHead: a.headTo(e, b), Code: wire.JoinAccepted, FromSeq: 1})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, e := range []uint64{epoch - 1, epoch + 1} {
				told, frame := to(newMember(t, "1", 0xa, false), newMember(t, "2", 0xb, false))
				before, count := told.r.Status(), told.r.Counters()
				f := frame(e)
				told.step(told.clock, replica.Event{Kind: replica.EventPeerFrame, Frame: f})
				if sent := told.frames(); len(sent) != 0 {
					t.Errorf("epoch %d in epoch %d: it is answered with %v", e, epoch, sent)
				}
				asks := false
				for i := range told.out.Actions {
					asks = asks || told.out.Actions[i].Kind == replica.ActionReadConfig
				}
				now, counted := told.r.Status(), told.r.Counters()
				if now.LastSeq != before.LastSeq || now.CommitSeq != before.CommitSeq || now.Role != before.Role || now.Config.Epoch != epoch {
					t.Errorf("epoch %d in epoch %d: %+v becomes %+v", e, epoch, before, now)
				}
				if counted.StaleFrames == count.StaleFrames && name != "JoinReply" || asks && e < epoch {
					t.Errorf("epoch %d in epoch %d: %d frames counted as stale, the arbiter asked: %t", e, epoch, counted.StaleFrames-count.StaleFrames, asks)
				}
			}
		})
	}
}

// takeBase has m restore the state of a log whose entries up to base are freed, as a
// learner.
func (m *member) takeBase(epoch, base uint64, primary *member) {
	var state machine.Machine
	state.Begin(512, base)
	part, slots := state.AppendSnapshot(nil, 0)
	m.config(epoch, 1, primary)
	for _, frame := range [][]byte{
		wire.AppendJoinReply(nil, partition, &wire.JoinReply{PeerHead: primary.headTo(epoch, m), Code: wire.JoinAccepted, FromSeq: base + 1}),
		wire.AppendSnapshot(nil, partition, &wire.Snapshot{PeerHead: primary.headTo(epoch, m), Base: base, Hash: 1, Next: slots, Slots: slots, State: part}),
	} {
		m.step(m.clock+1, replica.Event{Kind: replica.EventPeerFrame, Frame: frame})
	}
	if s := m.r.Status(); s.FreedSeq != base {
		m.tb.Fatalf("the base state is not taken in: %+v", s)
	}
}

// primaryOf makes m the primary of an epoch.
func primaryOf(m *member, epoch uint64, inSync ...*member) *member {
	m.config(epoch, 1, m, inSync...)
	return m
}

// A backup accepts frames of its epoch from its primary only.
func TestFramesOfAnotherSender(t *testing.T) {
	a, b := twoMembers(t, false)
	c := newMember(t, "3", 0xc, false)
	for _, from := range []*member{c, a} {
		b.step(b.clock+1, replica.Event{Kind: replica.EventPeerFrame, Frame: wire.AppendBeacon(nil, partition, &wire.Beacon{PeerHead: from.headTo(2, b)})})
		if answers := len(b.frames()); answers != 0 != (from == a) {
			t.Errorf("%d answers to %s", answers, from.self.ID)
		}
	}
}

// The committed prefix that the primary announced in an epoch, by heartbeats, does not
// apply to the next one: with a loss accepted, that may be of another lineage.
func TestWhatWasToldEndsWithItsEpoch(t *testing.T) {
	a, b := twoMembers(t, false)
	c := newMember(t, "3", 0xc, false)
	e := order.Entry{Size: order.HeaderSize + 16, Kind: order.KindNoop, Seq: 1, Epoch: 2}
	entry := make([]byte, e.Size)
	e.Put(entry)
	b.step(b.clock+1, replica.Event{Kind: replica.EventPeerFrame, Frame: wire.AppendPrepare(nil, partition, &wire.Prepare{PeerHead: a.headTo(2, b), Entries: entry})})
	b.hear(b.clock+2, said{row: wire.HeartbeatRow{PeerHead: a.headTo(2, b), CommitSeq: 1, Partition: partition}})
	// One wake-up brings the next configuration and a tick.
	now := replica.Time{Mono: b.clock + 3, Wall: wallStart}
	next := &replica.Config{Epoch: 3, Lineage: 2, ChangeID: "y", Primary: c.self, InSync: []replica.Member{c.self, b.self}}
	b.r.Step(now, &replica.Event{Kind: replica.EventConfig, Config: next, Fresh: true}, &b.out)
	b.r.Step(now, &replica.Event{Kind: replica.EventTick}, &b.out)
	if s := b.r.Status(); s.Config.Epoch != 3 || s.LastSeq != 1 || s.CommitSeq != 0 {
		t.Errorf("epoch %d lineage %d: %d entries, %d committed; want 1 and none", s.Config.Epoch, s.Config.Lineage, s.LastSeq, s.CommitSeq)
	}
}

// A member in sync stores what is committed. One that was told of the epoch by a forgery, before
// it began, acknowledged less in it: that frame, late on its way, changes nothing, and what the
// member acknowledges then counts. If that is too little still, the invariant is broken.
func TestAcknowledgementOfBeforeTheEpoch(t *testing.T) {
	for name, honest := range map[string]bool{"honest": true, "lost its entries": false} {
		t.Run(name, func(t *testing.T) {
			a, b := newMember(t, "1", 0xa, false), newMember(t, "2", 0xb, false)
			primaryOf(a, 4)
			primaryOf(a, 5, b)
			before := a.r.Status()
			if before.CommitSeq == 0 || before.LastSeq == before.CommitSeq {
				t.Fatalf("%+v: something has to be committed, and something to wait for the member", before)
			}
			short := replica.Event{Kind: replica.EventPeerFrame, Frame: b.stored(5, a, 0)}
			stale := a.r.Counters().StaleFrames
			a.step(a.clock+1, short)
			if s := a.r.Status(); s.Role != replica.RolePrimary || s.CommitSeq != before.CommitSeq || a.r.Counters().StaleFrames != stale+1 {
				t.Fatalf("after the late frame: %+v", s)
			}
			if honest {
				a.step(a.clock+1, replica.Event{Kind: replica.EventPeerFrame, Frame: b.stored(5, a, before.LastSeq)})
				if s := a.r.Status(); s.Role != replica.RolePrimary || s.CommitSeq != before.LastSeq {
					t.Errorf("after the member's own: %+v", s)
				}
				return
			}
			a.step(a.clock+int64(time.Second), short)
			if s := a.r.Status(); s.Role == replica.RolePrimary {
				t.Errorf("a member in sync lost entries, and is counted: %+v", s)
			}
		})
	}
}
