package replica_test

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Frames that no healthy replica sends.

// corrupt sends the second pod a Prepare of the first whose entry does not chain.
func (s *script) corrupt(pods []string) {
	from, to := s.w.node(pods[0]), s.w.node(pods[1])
	last, _ := to.st.Last()
	e := order.Entry{Size: order.HeaderSize + 16, Kind: order.KindNoop, Seq: last + 1, PrevHash: 0xbad, Epoch: 1}
	entry := make([]byte, e.Size)
	e.Put(entry)
	s.w.send(from, to.address, wire.AppendPrepare(nil, partition, &wire.Prepare{
		PeerHead: wire.PeerHead{Epoch: from.r.Status().Config.Epoch, From: from.self.Boot, To: to.self.Boot}, Entries: entry,
	}), false)
	s.w.deliver()
}

// zombie lets an older process of a pod ask the primary for a place.
func (s *script) zombie(n *node) {
	primary := n.r.Status().Config.Primary
	id := wire.FormatMemberID(n.pod, n.boot(99))
	s.w.send(n, primary.Address, wire.AppendJoin(nil, partition, &wire.Join{
		PeerHead: wire.PeerHead{Epoch: 1, From: n.boot(99), To: primary.Boot}, Member: []byte(id), Address: []byte(n.address),
	}), false)
	s.w.deliver()
}
