package replica_test

import (
	"fmt"

	"github.com/cockroachdb/datadriven"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// archive keeps the entries of a replica up to to=, all that are committed without it. What
// the replica has freed is kept from before.
func (s *script) archive(d *datadriven.TestData, n *node) {
	to := n.st.Committed()
	arg(d, "to", &to)
	base, _ := n.st.Base()
	s.archived = s.archived[:min(base, to)]
	for seq := base + 1; seq <= to; seq++ {
		s.archived = append(s.archived, pad(n.st.Get(seq)))
	}
}

func pad(entry []byte) []byte {
	return append(append([]byte(nil), entry...), make([]byte, order.Padded(len(entry))-len(entry))...)
}

// restore makes the record anew, to be restored to the end of the archive. Its epoch and
// lineage are those of the arbiter's record now, unless they are given.
func (s *script) restore(d *datadriven.TestData) {
	a := &s.w.arb
	var e order.Entry
	entry, _, err := order.NextEntry(s.archived[len(s.archived)-1], &e)
	if err != nil {
		s.t.Fatal(err)
	}
	p := replica.Restore{Seq: e.Seq, Hash: order.Hash(entry), Epoch: a.rec.Epoch, Lineage: a.rec.Lineage}
	arg(d, "epoch", &p.Epoch)
	arg(d, "lineage", &p.Lineage)
	if d.HasArg("other") {
		p.Hash++
	}
	a.version++
	a.spec.Restore = &p
	a.rec = replica.Config{Version: fmt.Sprint(a.version)}
	a.tellAll()
	s.w.deliver()
}

// load gives a replica the entries of the archive behind those that it has, up to to=. With
// skip= one is left out, with bad= one has another session.
func (s *script) load(d *datadriven.TestData, n *node) {
	to, skip, bad := uint64(len(s.archived)), uint64(0), uint64(0)
	arg(d, "to", &to)
	arg(d, "skip", &skip)
	arg(d, "bad", &bad)
	var part []byte
	from, _ := n.st.Last()
	for seq := from + 1; seq <= to; seq++ {
		if seq == skip {
			continue
		}
		entry := pad(s.archived[seq-1])
		if seq == bad {
			entry[len(entry)-8] ^= 1
		}
		part = append(part, entry...)
	}
	if err := n.r.Load(part); err != nil {
		s.w.logf("%s: %v", n.name(), err)
	}
	last, _ := n.st.Last()
	_, more := n.r.Loads()
	s.w.logf("%s has %d entries, asks for more: %v", n.name(), last, more)
	if !d.HasArg("hold") {
		n.step(replica.Event{Kind: replica.EventTick})
		s.w.deliver()
	}
}
