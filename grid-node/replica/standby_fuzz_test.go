package replica_test

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// linkedEntry is a first entry of a log.
func linkedEntry(kind order.Kind, epoch uint32, payload []byte) []byte {
	b := make([]byte, order.Padded(order.HeaderSize+len(payload)))
	e := order.Entry{Size: uint32(order.HeaderSize + len(payload)), Kind: kind, Seq: 1, Epoch: epoch}
	e.Put(b)
	copy(b[order.HeaderSize:], payload)
	return b
}

// linkTo gives a fresh standby entries of a link, and returns it and the answers' text.
func linkTo(tb testing.TB, entries []byte) (w *world, n *node) {
	w = newWorld(tb, worldOptions{replicas: 2, minInSync: 1, standby: true, limits: replica.Limits{Window: 8, InFlight: 16}})
	w.quiet = true
	w.deliver()
	w.tick(200 * ms)
	w.quiet = false
	n = w.node("a")
	n.step(replica.Event{Kind: replica.EventClientFrame, Conn: 2, Frame: wire.AppendLinkOpen(nil, partition, &wire.LinkOpen{ReqID: 1, Source: []byte("a")})})
	n.step(replica.Event{Kind: replica.EventClientFrame, Conn: 2, Frame: wire.AppendLinkEntries(nil, partition, &wire.LinkEntries{ReqID: 1, Entries: entries})})
	w.deliver()
	w.tick(20 * ms)
	return w, n
}

// FuzzLink gives a standby any entries. It must not panic, nor may its backup, and what it
// stores both have.
func FuzzLink(f *testing.F) {
	noop := linkedEntry(order.KindNoop, 1, make([]byte, 16))
	f.Add(noop)
	f.Add(append(append([]byte(nil), noop...), noop...))
	f.Add(linkedEntry(order.KindSessionOpen, 1, make([]byte, 16)))
	f.Add(linkedEntry(order.KindTruncate, 1, make([]byte, 8)))
	f.Add(linkedEntry(order.KindCursor, 1, make([]byte, 8)))
	f.Add(linkedEntry(order.KindReader, 1, order.AppendReader(nil, 0, "kafka")))
	f.Add(linkedEntry(order.KindOrder, 1, fixOrder("z", 0)))
	f.Fuzz(func(t *testing.T, entries []byte) {
		_, n := linkTo(t, entries[:min(len(entries), wire.MaxLinkEntries)])
		last, hash := n.st.Last()
		if l, h := n.w.node("b").st.Last(); l != last || h != hash {
			t.Errorf("the standby's primary holds %d entries with hash %016x, its backup %d with %016x", last, hash, l, h)
		}
	})
}

// TestLinkEpochs: a source cannot use up the epochs, which a promotion has to rise above.
func TestLinkEpochs(t *testing.T) {
	for epoch, want := range map[uint32]uint64{replica.MaxLinkEpoch: 1, replica.MaxLinkEpoch + 1: 0} {
		_, n := linkTo(t, linkedEntry(order.KindNoop, epoch, make([]byte, 16)))
		if last, _ := n.st.Last(); last != want {
			t.Errorf("with epoch %d the standby holds %d entries, want %d", epoch, last, want)
		}
	}
}
