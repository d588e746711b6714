package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// status returns the processes here and their views; on the data loop.
func (d *dataLoop) status() nodestatus.Node {
	s := nodestatus.Node{Grid: d.cfg.Grid, Pod: d.cfg.Pod, BootID: wire.FormatBootID(d.boot), Stopping: d.parts.stopping}
	if replica.Faulty {
		dropped, every := replica.Dropped()
		s.Faulty = &nodestatus.Faulty{DropEvery: every, Dropped: dropped}
	}
	s.Functions, s.Posts, s.Computes = d.parts.functions.status(), d.parts.postStatus(), d.parts.computes.status()
	for _, p := range d.parts.list {
		r := p.replica.Status()
		ps := nodestatus.Partition{
			Record: p.record.name, Partition: p.id.String(), Member: p.inc.self.ID, BootID: wire.FormatBootID(p.inc.self.Boot),
			Role: r.Role.String(), Suspended: r.Suspended, Draining: r.Draining, InSync: []string{}, LastSeq: r.LastSeq, CommitSeq: r.CommitSeq,
			FreedSeq: r.FreedSeq, Bytes: int64(p.store.Bytes(r.FreedSeq+1, r.LastSeq)), CursorSeq: r.CursorSeq, DataSeq: r.DataSeq, SinkSeq: p.sinkPosition(),
		}
		if c := r.Config; c != nil {
			ps.Epoch, ps.Lineage, ps.ChangeID, ps.Primary = c.Epoch, c.Lineage, c.ChangeID, c.Primary.ID
			ps.InSync = memberIDs(c.InSync)
			ps.Standby, ps.Term, ps.FencedBy = c.Standby, c.Term, p.replica.FencedBy()
		}
		ps.Regions, ps.DropCopies = p.regionRows(), p.dropCopyRows()
		ps.View = p.inc.view.status(r.CommitSeq)
		if point, ok := p.replica.Restoring(); ok {
			ps.Restore = &nodestatus.Restore{ThroughSeq: point.Seq, Error: p.loadError}
		}
		s.Partitions = append(s.Partitions, ps)
	}
	return s
}

// dropCopyRows are the FIX sessions of the partition that get copies.
func (p *partition) dropCopyRows() (rows []nodestatus.DropCopy) {
	for _, c := range p.replica.DropCopies() {
		id := c.Session.ID
		rows = append(rows, nodestatus.DropCopy{Session: fmt.Sprintf("%016x%016x", id[0], id[1]), Slot: c.Slot, Sources: c.Sources, SinceSeq: c.Since,
			Day: time.Unix(int64(c.Session.Day)*86400, 0).UTC().Format(time.DateOnly), Open: c.Bound})
	}
	return rows
}

// lacks returns why this process is not in sync in the partition, "" if it is, or if all
// wanted copies exist without it.
func (p *partition) lacks(s *replica.Status) string {
	c := s.Config
	switch {
	case c == nil:
		return "its configuration has not been read from the arbiter yet"
	case c.Epoch == 0 && c.Restore != nil:
		why := fmt.Sprintf("it is loaded from the archive, up to entry %d of %d", s.LastSeq, c.Restore.Seq)
		if p.loadError != "" {
			why += ": " + p.loadError
		}
		return why
	case c.Epoch == 0:
		return "it is unclaimed"
	case !c.Has(p.inc.self.Boot) && p.record.copies > 0 && len(c.InSync) >= p.record.copies && !p.former(c):
		return "" // it moves here
	case !c.Has(p.inc.self.Boot):
		return "this member is not in its inSync: it has to catch up with " + c.Primary.ID
	case s.Role != replica.RolePrimary && s.Role != replica.RoleBackup:
		return "this member is " + s.Role.String()
	}
	return ""
}

// former reports whether a configuration counts an earlier process of this pod, or
// incarnation of this replica: the change is not detected yet.
func (p *partition) former(c *replica.Config) bool {
	return slices.ContainsFunc(c.InSync, func(m replica.Member) bool { return m.Pod() == p.cfg.Pod && m.Boot != p.inc.self.Boot })
}

// Readiness is the body of /readyz.
type Readiness struct {
	Ready      bool                 `json:"ready"`
	Member     string               `json:"member"`
	Missing    []string             `json:"missing,omitempty"` // why it is not ready, as text
	Partitions []PartitionReadiness `json:"partitions"`
}

// PartitionReadiness is one partition's part of Readiness.
type PartitionReadiness struct {
	Partition string   `json:"partition"`
	Member    string   `json:"member"` // this node's incarnation in the partition
	Role      string   `json:"role"`
	Epoch     uint64   `json:"epoch"`
	InSync    []string `json:"inSync"`
	LastSeq   uint64   `json:"lastSeq"`
	CommitSeq uint64   `json:"commitSeq"`
}

// readiness is ready when this process is in sync in every partition of its shard: a
// restarted node that still catches up is not, whatever its pod's name.
func (ps *partitions) readiness() Readiness {
	r := Readiness{Member: ps.self, Ready: true}
	for _, p := range ps.list {
		s := p.replica.Status()
		pr := PartitionReadiness{Partition: p.id.String(), Member: p.inc.self.ID, Role: s.Role.String(), LastSeq: s.LastSeq, CommitSeq: s.CommitSeq}
		why := p.lacks(&s)
		if s.Config != nil {
			pr.Epoch = s.Config.Epoch
			for _, m := range s.Config.InSync { // null while there are none
				pr.InSync = append(pr.InSync, m.ID)
			}
		}
		if why != "" {
			r.Ready = false
			r.Missing = append(r.Missing, "partition "+pr.Partition+": "+why)
		}
		r.Partitions = append(r.Partitions, pr)
	}
	if !ps.held.heard {
		r.Ready = false
		r.Missing = append(r.Missing, "the records of the grid have not been read from the arbiter yet")
	}
	for _, id := range slices.Sorted(maps.Keys(ps.held.due)) {
		r.Ready = false
		r.Missing = append(r.Missing, "partition "+id.String()+": it is to be opened")
	}
	if ps.stopping {
		r.Ready = false
		r.Missing = append(r.Missing, "the node is stopping")
	}
	return r
}
