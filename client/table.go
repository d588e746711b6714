package client

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Member is a replica of a partition.
type Member struct {
	ID      string // "<pod>/<bootID>"
	Address string // "ip:port"
	InSync  bool   // false: it is catching up
}

// PartitionInfo is what the client knows of a partition.
type PartitionInfo struct {
	ID      wire.PartitionID
	Epoch   uint64 // 0: no node has reported it
	Lineage uint32
	Primary Member // zero if there is none at present
	Members []Member
}

// known reports whether a node has reported the partition.
func (p *PartitionInfo) known() bool { return p.Epoch != 0 || len(p.Members) > 0 }

// table is an immutable snapshot of the routing information.
type table struct {
	parts   []PartitionInfo // all partitions of the grid by number, known or not; empty: no node has reported the number
	symbol  bool            // orders go by symbol: a node has said so
	changed chan struct{}   // closed when a table with another epoch of a partition replaces this one
}

func (t *table) find(id wire.PartitionID) (*PartitionInfo, bool) {
	if int(id) >= len(t.parts) {
		return nil, false
	}
	return &t.parts[id], true
}

// whole reports whether all partitions are known.
func (t *table) whole() bool {
	return len(t.parts) > 0 && !slices.ContainsFunc(t.parts, func(p PartitionInfo) bool { return !p.known() })
}

// merge returns t with a node's rows. Of two rows of a partition the one with the higher epoch
// counts; epochs only rise, so the order in which nodes answer does not matter.
func (t *table) merge(m *wire.Table) (*table, error) {
	n := int(m.Partitions)
	if n == 0 || len(t.parts) != 0 && n != len(t.parts) {
		return nil, fmt.Errorf("Table.partitions is %d, allowed: %d, as a node of this grid reported before. "+
			"The number never changes; a grid recreated under its name needs a new Client", n, len(t.parts))
	}
	next := &table{parts: make([]PartitionInfo, n), changed: t.changed, symbol: t.symbol || m.BySymbol}
	for i := range next.parts {
		next.parts[i].ID = wire.PartitionID(i)
	}
	copy(next.parts, t.parts)
	for i := range m.Parts {
		p := infoOf(&m.Parts[i])
		old, ok := next.find(p.ID)
		if !ok || p.Epoch < old.Epoch {
			continue
		}
		if p.Epoch != old.Epoch && next.changed == t.changed {
			next.changed = make(chan struct{})
		}
		*old = p
	}
	return next, nil
}

func infoOf(p *wire.TablePart) PartitionInfo {
	info := PartitionInfo{ID: p.Partition, Epoch: p.Epoch, Lineage: p.Lineage}
	for i, m := range p.Members {
		info.Members = append(info.Members, Member{ID: string(m.Member), Address: string(m.Address), InSync: i < int(p.NInSync)})
	}
	if p.Primary != wire.NoPrimary && int(p.Primary) < len(info.Members) {
		info.Primary = info.Members[p.Primary]
	}
	return info
}

// maxTargets bounds how many nodes are asked at a time: a refresh must not become a scan of a large
// grid.
const maxTargets = 16

// targets lists the addresses to ask about a partition, best first: its n members,
// the endpoints, then the members of others; avoid, which has just failed, comes last.
func (t *table) targets(id wire.PartitionID, avoid string, endpoints []string) (out []string, n int) {
	add := func(a string) {
		if a != "" && a != avoid && len(out) < maxTargets && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	for i := range t.parts {
		for _, m := range t.parts[(int(id)+i)%len(t.parts)].Members {
			add(m.Address)
		}
		if i == 0 {
			n = len(out)
			for _, a := range endpoints {
				add(a)
			}
		}
	}
	if avoid != "" {
		out = append(out, avoid)
	}
	return out, n
}

// addresses are those of all members, and the endpoints.
func (t *table) addresses(endpoints []string) []string {
	seen, out := make(map[string]bool), []string(nil)
	add := func(a string) {
		if a != "" && !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	for i := range t.parts {
		for _, m := range t.parts[i].Members {
			add(m.Address)
		}
	}
	for _, a := range endpoints {
		add(a)
	}
	return out
}
