package node

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// answerTable sends a client the locations of the grid's partitions: those of this node by
// its replicas, the others by their records, ordered by number.
func (d *directory) answerTable(l *link, frame []byte) error {
	var req wire.Request
	if err := wire.DecodeRequest(frame, wire.TypeTableRequest, &req); err != nil {
		return l.goaway(wire.GoawayProtocol, err.Error())
	}
	// Asked at connect and after a redirect, never per order: built anew each time.
	t := wire.Table{ReqID: req.ReqID, Partitions: uint16(d.cfg.Partitions), BySymbol: d.cfg.Execution != nil}
	t.Parts = slices.Clone(d.gridMap.all())
	for _, p := range d.parts.list {
		t.Parts = putPart(t.Parts, p.tablePart())
	}
	if l.outside {
		d.outside.translate(&t)
	}
	l.conn.SetOut(wire.AppendTable(l.conn.Out(), &t))
	return nil
}

// putPart puts a part in its place among others, in place of one of an older epoch.
func putPart(parts []wire.TablePart, part wire.TablePart) []wire.TablePart {
	i, there := slices.BinarySearchFunc(parts, part.Partition, comparePart)
	switch {
	case !there:
		return slices.Insert(parts, i, part)
	case part.Epoch >= parts[i].Epoch:
		parts[i] = part
	}
	return parts
}

func comparePart(p wire.TablePart, id wire.PartitionID) int { return cmp.Compare(p.Partition, id) }

func (p *partition) tablePart() wire.TablePart {
	s := p.replica.Status()
	return partOf(p.id, s.Config, s.Learners)
}

// partOf converts a configuration, nil if unknown, for clients.
func partOf(id wire.PartitionID, c *replica.Config, learners []replica.Member) wire.TablePart {
	part := wire.TablePart{Partition: id, Primary: wire.NoPrimary}
	if c == nil || c.Epoch == 0 {
		return part
	}
	part.Epoch, part.Lineage, part.NInSync = c.Epoch, uint32(c.Lineage), uint8(len(c.InSync))
	add := func(m replica.Member) {
		if len(part.Members) < wire.MaxTableMembers {
			part.Members = append(part.Members, wire.TableMember{Address: []byte(m.Address), Member: []byte(m.ID)})
		}
	}
	for i, m := range c.InSync {
		if m.Boot == c.Primary.Boot {
			part.Primary = uint8(i)
		}
		add(m)
	}
	for _, m := range learners {
		if !c.Has(m.Boot) {
			add(m)
		}
	}
	return part
}

// notServed answers a request for a partition whose replica has ended and is about to be
// replaced.
func (d *directory) notServed(l *link, p *partition, t wire.Type, frame []byte) error {
	reqID, slot, err := wire.RequestID(frame)
	if err != nil {
		return d.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	m := wire.NotPrimary{RequestID: reqID, Slot: slot, ForType: t}
	if c := p.status.Config; c != nil {
		m.Epoch = c.Epoch
		if c.Primary.Boot != p.inc.self.Boot {
			m.Address, m.Member = []byte(c.Primary.Address), []byte(c.Primary.ID)
			if l.outside {
				m.Address = d.outside.address(m.Member)
			}
		}
	}
	d.counters.Redirects++
	l.conn.SetOut(wire.AppendNotPrimary(l.conn.Out(), p.id, &m))
	return nil
}

// notHere answers a request for a partition that this node does not hold.
func (d *directory) notHere(l *link, t wire.Type, frame []byte) error {
	id := wire.FramePartition(frame)
	reqID, slot, err := wire.RequestID(frame)
	if err != nil {
		return d.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	if int(id) < d.cfg.Partitions {
		part, known := d.gridMap.find(id)
		m := wire.NotPrimary{RequestID: reqID, Slot: slot, ForType: t}
		if known && int(part.Primary) < len(part.Members) {
			m.Epoch, m.Address, m.Member = part.Epoch, part.Members[part.Primary].Address, part.Members[part.Primary].Member
			if l.outside {
				m.Address = d.outside.address(m.Member)
			}
		}
		d.counters.Redirects++
		l.conn.SetOut(wire.AppendNotPrimary(l.conn.Out(), id, &m))
		return nil
	}
	l.conn.SetOut(wire.AppendReject(l.conn.Out(), id, &wire.Reject{RequestID: reqID, Slot: slot, Code: wire.CodeUnsupported, ForType: t,
		Text: fmt.Appendf(nil, "partition %s does not exist, allowed: p0..p%d", id, d.cfg.Partitions-1)}))
	return nil
}
