package replica_test

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// reads gives the primary n Gets of one wake-up, by ClOrdID and by id in turn.
func (p *pair) reads(n int, mode uint8, frame []byte) []byte {
	for i := range n {
		m := wire.Get{ReqID: uint64(i + 1), By: wire.ByID, Mode: mode, Seq: 3}
		if i%2 == 0 {
			m.By, m.Key, m.Seq = wire.ByClOrdID, p.frame[p.off:p.off+p.n], 0
		}
		frame = wire.AppendGet(frame[:0], partition, &m)
		p.a.Step(p.now, &replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: frame}, &p.ao)
	}
	return frame
}

// TestReadsOfAWakeUpShareARound: however many, one question to the backup.
func TestReadsOfAWakeUpShareARound(t *testing.T) {
	p := newPair(t, seedOrder(t))
	p.submit()
	p.exchange()
	p.bytesOut = 0
	const n = 100
	p.reads(n, wire.ModeConfirmed, nil)
	if p.count(); p.bytesOut != 0 {
		t.Fatalf("%d bytes were answered before anybody confirmed them", p.bytesOut)
	}
	p.a.Step(p.now, &replica.Event{Kind: replica.EventFlush}, &p.ao)
	asked := 0
	for i := range p.ao.Actions {
		if p.ao.Actions[i].Kind == replica.ActionSend {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("%d messages to the backup for %d reads, want 1", asked, n)
	}
	p.carry(&p.ao, p.b, &p.bo)
	p.b.Step(p.now, &replica.Event{Kind: replica.EventFlush}, &p.bo)
	p.carry(&p.bo, p.a, &p.ao)
	var replies []byte
	actions := 0
	for i := range p.ao.Actions {
		if a := &p.ao.Actions[i]; a.Kind == replica.ActionReply {
			replies = append(replies, p.ao.Head(a)...)
			actions++
		}
	}
	if actions != 1 {
		t.Errorf("%d writes for %d answers to one connection, want 1", actions, n)
	}
	for i := range uint64(n) {
		var m wire.GetReply
		frame, rest, err := wire.Split(replies)
		if err != nil || frame == nil {
			t.Fatalf("answer %d: %v", i+1, err)
		}
		if err := wire.DecodeGetReply(frame, &m); err != nil || m.ReqID != i+1 || m.Status != wire.GetFound {
			t.Fatalf("answer %d is %+v, error %v, want it in order and found", i+1, m, err)
		}
		replies = rest
	}
}

func TestReadsDoNotAllocate(t *testing.T) {
	for name, mode := range map[string]uint8{"confirmed": wire.ModeConfirmed, "leased": wire.ModeLeased, "backup": wire.ModeBackup} {
		p := newPair(t, seedOrder(t))
		p.submit()
		p.exchange()
		var frame []byte
		batch := func() {
			frame = p.reads(100, mode, frame)
			p.exchange()
		}
		batch()
		p.bytesOut = 0
		if n := testing.AllocsPerRun(100, batch); n != 0 {
			t.Errorf("%s: %v allocations for 100 reads, want 0", name, n)
		}
		if p.bytesOut < 101*100*len(p.frame) {
			t.Errorf("%s: answered with %d bytes, want each read answered", name, p.bytesOut)
		}
	}
}

// TestWaitingReadsAreBoundedInBytes: what waits for a round leaves at once when it
// comes, so it must fit a connection's output.
func TestWaitingReadsAreBoundedInBytes(t *testing.T) {
	p := newPair(t, seedOrder(t), func(l *replica.Limits) { l.PendingReadBytes = 1000 })
	p.submit()
	p.exchange()
	p.reads(10, wire.ModeConfirmed, nil)
	p.a.Step(p.now, &replica.Event{Kind: replica.EventFlush}, &p.ao)
	refused := 0
	for i := range p.ao.Actions {
		if a := &p.ao.Actions[i]; a.Kind == replica.ActionReply {
			for frames := p.ao.Head(a); len(frames) > 0; {
				var m wire.Reject
				frame, rest, _ := wire.Split(frames)
				if err := wire.DecodeReject(frame, &m); err != nil || m.Code != wire.CodeOverloaded || m.ForType != wire.TypeGet {
					t.Fatalf("%+v, error %v, want a refused read", m, err)
				}
				refused++
				frames = rest
			}
		}
	}
	if want := 10 - 1000/(order.HeaderSize+len(seedOrder(t))); refused != want {
		t.Errorf("%d of 10 reads refused, want %d: what is beyond 1000 bytes", refused, want)
	}
}
