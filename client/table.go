package client

import (
	"fmt"
	"net"
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
	Epoch   uint64
	Lineage uint32
	Primary Member // zero if there is none at present
	Members []Member
	Closed  bool // it takes no new sessions and orders: its shard is new, or about to be removed
}

// table is an immutable snapshot of the routing information.
type table struct {
	shards  int
	parts   []PartitionInfo             // sorted by ID
	placing []wire.PartitionID          // those that take orders, sorted: the order that routing counts in
	layout  wire.Layout                 // the latest that a node told, zero if none did
	refused map[wire.PartitionID]uint64 // partitions that refused as closed, with the revision they did it by
	seeds   []string                    // addresses of nodes of other shards, of a node that does not know the whole grid
	missing []int                       // shards of which no partition is known
	ahead   uint64                      // the layout whose added shards are not placed yet: sessions of them are being opened; 0: none
	changed chan struct{}               // closed when a table with another epoch of a partition replaces this one
}

func (t *table) find(id wire.PartitionID) (*PartitionInfo, bool) {
	i, ok := slices.BinarySearchFunc(t.parts, id, func(p PartitionInfo, id wire.PartitionID) int { return int(p.ID) - int(id) })
	if !ok {
		return nil, false
	}
	return &t.parts[i], true
}

// merge returns t with what a node said. Of two rows of a partition the one
// with the higher epoch counts; epochs only rise, so the order in which nodes
// answer does not matter.
func (t *table) merge(m *wire.Table) (*table, error) {
	if m.NShards == 0 || m.NShards > wire.MaxShards {
		return nil, &wire.FrameError{Type: wire.TypeTable, Field: "nShards", Value: uint64(m.NShards), Allowed: fmt.Sprintf("1..%d", wire.MaxShards)}
	}
	next := &table{shards: int(m.NShards), changed: t.changed, layout: t.layout, refused: t.refused, ahead: t.ahead}
	if m.Layout.Revision > t.layout.Revision {
		next.layout = m.Layout
	}
	if next.layout.Revision != 0 {
		next.shards = int(next.layout.Shards) // whatever a node says that does not know yet
	}
	known := make(map[wire.PartitionID]PartitionInfo, len(t.parts)+len(m.Parts))
	for _, p := range t.parts {
		known[p.ID] = p
	}
	for i := range m.Parts {
		p := infoOf(&m.Parts[i])
		if old, ok := known[p.ID]; !ok || p.Epoch >= old.Epoch {
			if p.Epoch != old.Epoch && next.changed == t.changed {
				next.changed = make(chan struct{})
			}
			known[p.ID] = p
		}
	}
	seen := make([]bool, next.shards)
	for id, p := range known {
		if id.Shard() < next.shards {
			next.parts = append(next.parts, p)
			seen[id.Shard()] = true
		}
	}
	slices.SortFunc(next.parts, func(a, b PartitionInfo) int { return int(a.ID) - int(b.ID) })
	for i, ok := range seen {
		if !ok {
			next.missing = append(next.missing, i)
		}
	}
	next.place(t)
	if next.layout.Revision == t.layout.Revision || len(m.Seeds) == 0 {
		next.seeds = slices.Clone(t.seeds) // otherwise there may be some of shards that are gone
	}
	for _, s := range m.Seeds {
		addr := string(s)
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" || slices.Contains(next.seeds, addr) || len(next.seeds) >= wire.MaxShards {
			continue
		}
		next.seeds = append(next.seeds, addr)
	}
	return next, nil
}

// place finds the partitions that take orders. Shards that were added count once
// all of them are known, so that one change of the grid is one change of routing,
// and once they are connected to, so that no order waits for that.
func (t *table) place(before *table) {
	open := t.shards
	if t.layout.Revision != 0 {
		open = int(t.layout.Open)
	}
	if was := before.open(); open > was && was > 0 &&
		(t.ahead != 0 && t.ahead == t.layout.Revision || slices.ContainsFunc(t.missing, func(shard int) bool { return shard < open })) {
		open = was
	}
	t.placing = make([]wire.PartitionID, 0, len(t.parts))
	for i := range t.parts {
		p := &t.parts[i]
		p.Closed = p.ID.Shard() >= open || t.refuses(p.ID)
		if !p.Closed {
			t.placing = append(t.placing, p.ID)
		}
	}
}

// open is one more than the highest shard that orders go to.
func (t *table) open() int {
	if len(t.placing) == 0 {
		return 0
	}
	return t.placing[len(t.placing)-1].Shard() + 1
}

// refuses says whether a partition has refused as closed, and no later layout has
// said that it is open.
func (t *table) refuses(p wire.PartitionID) bool {
	by, yes := t.refused[p]
	return yes && by >= t.layout.Revision
}

// closing is the table without p among those that take orders: it refused by the
// layout of that revision, which the table does not have yet.
func (t *table) closing(p wire.PartitionID, revision uint64) *table {
	next := *t
	next.parts = slices.Clone(t.parts)
	next.refused = map[wire.PartitionID]uint64{p: revision}
	for q, by := range t.refused {
		if by >= t.layout.Revision && (q != p || by > revision) {
			next.refused[q] = by
		}
	}
	next.place(t)
	return &next
}

// removed says whether an order may have been in a shard that is gone.
func (t *table) removed() bool { return t.layout.Removed > 0 }

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

// targets lists the addresses to ask about a shard, best first: its n members,
// then everybody else; avoid, which has just failed, comes last.
func (t *table) targets(shard int, avoid string, endpoints []string) (out []string, n int) {
	var own, other []string
	for i := range t.parts {
		for _, m := range t.parts[i].Members {
			if t.parts[i].ID.Shard() == shard {
				own = append(own, m.Address)
			} else {
				other = append(other, m.Address)
			}
		}
	}
	const most = 16 // a refresh must not become a scan of a large grid
	other = append(append([]string(nil), t.seeds...), other...)
	for i, list := range [][]string{own, endpoints, other} {
		for _, a := range list {
			if a != "" && a != avoid && len(out) < most && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
		if i == 0 {
			n = len(out)
		}
	}
	if avoid != "" {
		out = append(out, avoid)
	}
	return out, n
}
