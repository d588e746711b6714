package replica_test

import (
	"github.com/cockroachdb/datadriven"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// follow asks a replica whether a follower may go on there. The hash that it brings is that of
// the log of like=, or another one.
func (s *script) follow(d *datadriven.TestData, n *node) {
	var from, lineage int
	like := ""
	arg(d, "from", &from)
	arg(d, "lineage", &lineage)
	arg(d, "like", &like)
	m := wire.Follow{FromSeq: uint64(from), Lineage: uint32(lineage), Window: 1}
	if like != "" {
		m.FromHash = s.w.node(like).st.HashAt(uint64(from) - 1)
	}
	if d.HasArg("bad") {
		m.FromHash = 0xbad
	}
	first, end := n.r.FollowFrom(&m)
	if end == nil {
		s.w.logf("%s sends entries from %d on", n.name(), first)
		return
	}
	s.w.logf("%s: %s, seq %d, hash known %v", n.name(), end.Reason, end.Seq, end.Hash != 0)
}

// advance is what a reader outside says that it holds.
func (s *script) advance(d *datadriven.TestData, n *node, client uint64) {
	var seq int
	name := "kafka"
	arg(d, "seq", &seq)
	arg(d, "reader", &name)
	s.reqID++
	m := wire.Advance{ReqID: s.reqID, Seq: uint64(seq), Hash: n.st.HashAt(uint64(seq)), Name: []byte(name)}
	if d.HasArg("bad") {
		m.Hash = 0xbad
	}
	s.send(n, client, wire.AppendAdvance(nil, partition, &m))
}
