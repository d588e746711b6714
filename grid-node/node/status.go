package node

import (
	"encoding/json"
	"net/http"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// serveStatus tells which processes are here and what they go by. Unlike /readyz
// it judges nothing: an answer is 200 whatever state the node is in.
func (n *Node) serveStatus(w http.ResponseWriter, _ *http.Request) {
	var s nodestatus.Node
	var plain *nodestatus.PlainClients
	if err := n.onLoop(func() { s, plain = n.status(), n.plainClients() }); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s.TLS = tlsStatus(n.cfg.TLS) // looks at files: not on the loop
	if s.TLS != nil {
		s.TLS.Transition, s.TLS.PlainClients = string(n.cfg.TLSTransition), plain
	}
	writePage(w, s)
}

// writePage answers with v as JSON that people can read, too.
func writePage(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the asker is gone; nobody to tell
}

func (n *Node) status() nodestatus.Node {
	s := nodestatus.Node{LayoutRevision: n.layout.Revision, Grid: n.cfg.Grid, Pod: n.cfg.Pod, BootID: wire.FormatBootID(n.boot), Stopping: n.stopping}
	if replica.Faulty {
		dropped, every := replica.Dropped()
		s.Faulty = &nodestatus.Faulty{DropEvery: every, Dropped: dropped}
	}
	for _, p := range n.parts {
		r := p.replica.Status()
		ps := nodestatus.Partition{
			Record: p.name, Partition: p.id.String(), Member: p.inc.self.ID, BootID: wire.FormatBootID(p.inc.self.Boot),
			Role: r.Role.String(), Suspended: r.Suspended, Draining: r.Draining, InSync: []string{}, LastSeq: r.LastSeq, CommitSeq: r.CommitSeq,
			Closed: r.Closed, AdmissionRevision: r.AdmissionRevision, CursorSeq: r.CursorSeq, DataSeq: r.DataSeq, SinkSeq: p.sinkPosition(),
		}
		if p.closedAt != 0 && r.Closed {
			ps.ClosedForNs = n.loop.Clock().Mono() - p.closedAt
		}
		if c := r.Config; c != nil {
			ps.Epoch, ps.Lineage, ps.ChangeID, ps.Primary = c.Epoch, c.Lineage, c.ChangeID, c.Primary.ID
			for _, m := range c.InSync {
				ps.InSync = append(ps.InSync, m.ID)
			}
		}
		s.Partitions = append(s.Partitions, ps)
	}
	return s
}
