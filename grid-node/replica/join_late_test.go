package replica_test

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The primary compared a learner's log with its own up to the end given in the request. An
// answer to an older request does not cover what the learner has stored since, perhaps
// from another primary: it neither accepts the learner nor commits anything.
func TestLateJoinReplyAcceptsNobody(t *testing.T) {
	f := newFeeding(t, 20_000, replica.Limits{JoinBound: 64})
	for range 10 {
		f.clock += 200_000
		f.deliver(&f.data)
		f.deliver(&f.bulk)
		f.answer()
	}
	before := f.l.Status()
	if before.LastSeq == 0 || before.LastSeq == f.a.Status().LastSeq {
		t.Fatalf("the learner has %d entries, want a part", before.LastSeq)
	}
	next := *f.cfg
	next.Epoch, next.ChangeID, next.Version = 2, "y", "2"
	f.stepL(replica.Event{Kind: replica.EventConfig, Config: &next, Fresh: true})
	head := wire.PeerHead{Epoch: 2, From: 0xa, To: 0xb}
	f.stepL(replica.Event{Kind: replica.EventPeerFrame, Frame: wire.AppendBeacon(nil, partition, &wire.Beacon{PeerHead: head})}) // the primary knows, too
	f.answers = nil

	accept := func(from uint64) {
		f.stepL(replica.Event{Kind: replica.EventPeerFrame, Frame: wire.AppendJoinReply(nil, partition, &wire.JoinReply{PeerHead: head, Code: wire.JoinAccepted, FromSeq: from})})
		f.stepL(replica.Event{Kind: replica.EventPeerFrame, Frame: wire.AppendBeacon(nil, partition, &wire.Beacon{PeerHead: head, CommitSeq: before.LastSeq, Round: 1})})
	}
	accept(before.LastSeq - 1)
	if now := f.l.Status(); now.CommitSeq != before.CommitSeq || len(f.answers) != 0 {
		t.Fatalf("committed %d (before: %d), %d answers: it counts as accepted", now.CommitSeq, before.CommitSeq, len(f.answers))
	}
	accept(before.LastSeq + 1)
	if now := f.l.Status(); now.CommitSeq != before.LastSeq || len(f.answers) == 0 {
		t.Fatalf("committed %d of %d, %d answers: the answer to its own request accepts it", now.CommitSeq, before.LastSeq, len(f.answers))
	}
}
