package replica_test

import (
	"bytes"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// reads gives the primary n Gets in one wake-up, by ClOrdID and by id in turn.
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

// TestReadsOfAWakeUpShareARound: however many, one round to the backup.
func TestReadsOfAWakeUpShareARound(t *testing.T) {
	p := newPair(t, seedOrder(t))
	p.submit()
	p.exchange()
	p.bytesOut = 0
	const n = 100
	p.reads(n, wire.ModeConfirmed, nil)
	if p.count(); p.bytesOut != 0 {
		t.Fatalf("%d bytes were answered before the backup confirmed them", p.bytesOut)
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
	if got := answers(t, replies); got != n {
		t.Errorf("%d answers, want %d", got, n)
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

// TestDirectAnswers: answers of the connection being served are appended to its output,
// those of others that were looked up with them become an action.
func TestDirectAnswers(t *testing.T) {
	p := newPair(t, seedOrder(t))
	p.submit()
	p.exchange()
	const others = 5
	p.reads(others, wire.ModeBackup, nil) // of connection 1; they wait for more
	kept := []byte("what is there already")
	var direct []byte
	own := 0
	for n := uint64(1); len(p.ao.Actions) == 0 && n < 100; n++ {
		frame := wire.AppendGet(nil, partition, &wire.Get{ReqID: n, By: wire.ByID, Mode: wire.ModeBackup, Seq: 3})
		p.ao.Direct(2, kept)
		p.a.Step(p.now, &replica.Event{Kind: replica.EventClientFrame, Conn: 2, Frame: frame}, &p.ao)
		direct = p.ao.Taken()
		own++
	}
	direct, ok := bytes.CutPrefix(direct, kept)
	if !ok {
		t.Fatalf("the earlier output is lost: %.50q", direct)
	}
	if got := answers(t, direct); got != own {
		t.Errorf("%d answers behind the output of the connection, want %d", got, own)
	}
	if len(p.ao.Actions) != 1 || p.ao.Actions[0].Conn != 1 || answers(t, p.ao.Head(&p.ao.Actions[0])) != others {
		t.Errorf("actions %+v, want one for connection 1 with %d answers", p.ao.Actions, others)
	}
	p.ao.Reset()
	p.reads(1, wire.ModeBackup, nil) // nothing is direct after Taken
	p.a.Step(p.now, &replica.Event{Kind: replica.EventFlush}, &p.ao)
	if len(p.ao.Actions) != 1 || answers(t, p.ao.Head(&p.ao.Actions[0])) != 1 {
		t.Errorf("actions %+v, want one with the answer", p.ao.Actions)
	}
}

// answers counts the found orders in b, numbered from 1 on.
func answers(t *testing.T, b []byte) (n int) {
	t.Helper()
	for len(b) > 0 {
		var m wire.GetReply
		frame, rest, err := wire.Split(b)
		if err != nil || frame == nil {
			t.Fatalf("answer %d: %v", n+1, err)
		}
		if err := wire.DecodeGetReply(frame, &m); err != nil || m.ReqID != uint64(n+1) || m.Status != wire.GetFound {
			t.Fatalf("answer %d is %+v, error %v, want it in order and found", n+1, m, err)
		}
		n, b = n+1, rest
	}
	return n
}

// TestWaitingReadsAreBoundedInBytes: all reads waiting for a round are answered at once,
// so they must fit a connection's output.
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
