package replica_test

import (
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
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

// forge sends a pod a NewConfig, of a stranger (z) or in the name of a process.
func (s *script) forge(d *datadriven.TestData) {
	from, to, members, epoch := "z", "a", "", 0
	arg(d, "from", &from)
	arg(d, "to", &to)
	arg(d, "epoch", &epoch)
	arg(d, "members", &members)
	member := func(pod string) replica.Member {
		if pod == "z" {
			m, _ := replica.NewMember(wire.FormatMemberID("z", 0xbad), "10.0.0.99:7400")
			return m
		}
		return s.w.node(pod).self
	}
	n := s.w.node(to)
	c := n.r.Status().Config
	m := wire.NewConfig{PeerHead: wire.PeerHead{Epoch: uint64(epoch), From: member(from).Boot, To: n.self.Boot}, Lineage: c.Lineage, ChangeID: []byte("forged"), Version: []byte(c.Version)}
	for _, pod := range strings.Split(members, ",") {
		mb := member(pod)
		m.Members[m.N] = wire.TableMember{Address: []byte(mb.Address), Member: []byte(mb.ID)}
		m.N++
	}
	s.w.logf("forged by %s -> %s: NewConfig epoch %d [%s]", from, n.name(), epoch, members)
	n.step(replica.Event{Kind: replica.EventPeerFrame, Frame: wire.AppendNewConfig(nil, partition, &m)})
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
