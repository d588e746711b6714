package replica_test

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestSoloAnswersWhatWaitsForCommit: the only copy of a partition answers a request that needs an entry which is not
// committed when it arrives, here a session opened again in the wake-up of its order, once the entry is. It kept it until
// another copy joined: reads of regions beside writes got no answer, and the process did not end.
func TestSoloAnswersWhatWaitsForCommit(t *testing.T) {
	st, err := store.New(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	self, _ := replica.NewMember(wire.FormatMemberID("a", 1), "10.0.0.1:7400")
	r, err := replica.New(replica.Options{Partition: partition, Self: self, Store: st})
	if err != nil {
		t.Fatal(err)
	}
	now := replica.Time{Mono: 1e9, Wall: wallStart}
	var out replica.Outbox
	var replies []byte
	step := func(e replica.Event) {
		r.Step(now, &e, &out)
		for i := range out.Actions {
			if a := &out.Actions[i]; a.Kind == replica.ActionReply {
				replies = append(replies, out.Head(a)...)
			}
		}
		out.Reset()
	}
	client := func(frame []byte) { step(replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: frame}) }
	step(replica.Event{Kind: replica.EventConfig, Config: &replica.Config{Epoch: 1, Lineage: 1, ChangeID: "x", Primary: self, InSync: []replica.Member{self}}, Fresh: true})
	step(replica.Event{Kind: replica.EventFlush})
	open := wire.AppendOpenSession(nil, partition, &wire.OpenSession{IDHi: 1, Attempt: 1})
	client(open)
	step(replica.Event{Kind: replica.EventFlush})
	opened := replies
	replies = nil
	client(wire.AppendSubmit(nil, partition, &wire.Submit{Generation: 1, ClientSeq: 1, Payload: seedOrder(t)}))
	client(open)
	step(replica.Event{Kind: replica.EventFlush})
	if n := len(replies); n != wire.AckSize+len(opened) {
		t.Errorf("answered with %d bytes, want an acknowledgement and a session, %d; status %+v", n, wire.AckSize+len(opened), r.Status())
	}
}
