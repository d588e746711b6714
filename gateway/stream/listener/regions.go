package listener

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Regions is the first token of the topics of entries of regions: region.{name}.{key}.
const Regions = server.Region

// AllRegions of Config.Regions stands for all that the grid has.
const AllRegions = "*"

// CheckRegions returns why Config.Regions are not valid, or nil.
func CheckRegions(list []string) error {
	for _, name := range list {
		if name != AllRegions && !order.IsRegionName(name) {
			return fmt.Errorf("value %.60q, allowed: names of regions (1 to %d lowercase letters, digits and underscores, a letter first), or %s for all", name, order.MaxRegionName, AllRegions)
		}
	}
	if len(list) > order.MaxRegions || slices.Contains(list, AllRegions) && len(list) > 1 {
		return fmt.Errorf("%d values, allowed: at most %d names, or %s alone", len(list), order.MaxRegions, AllRegions)
	}
	return nil
}

// names reports whether a list that CheckRegions takes has a region.
func names(list []string, region string) bool {
	return slices.Contains(list, region) || slices.Contains(list, AllRegions)
}

// streams reports whether changes of a region are streamed.
func (c *Config) streams(region string) bool { return names(c.Regions, region) }

// streamsRegions reports whether changes of regions are streamed. A grid that matches has none.
func (g *generation) streamsRegions() bool { return len(g.l.cfg.Regions) > 0 && !g.matches() }

// refuse is server.Config.Refuse. It names no region that the client did not.
func (g *generation) refuse(p topics.Pattern) error {
	first, literal := p.First()
	if !literal || first != Regions {
		return nil
	}
	switch {
	case g.matches():
		return fmt.Errorf("topics are %.80q, allowed: those of orders, executions and books: a grid that matches has no regions", p)
	case len(g.l.cfg.Regions) == 0:
		return fmt.Errorf("topics are %.80q, allowed: those of a region only where the gateway streams it (--websocket-regions)", p)
	}
	if name, fixed := p.Token(1); fixed && !g.l.cfg.streams(string(name)) {
		return fmt.Errorf("topics are %.80q, allowed: those of regions that the gateway streams (--websocket-regions)", p)
	}
	return nil
}

// regionNames are the regions of a partition by number, which is what the log has. A number is of one region for as long
// as the log has its history.
type regionNames struct{ list atomic.Pointer[[]string] }

// of returns the name of a region that learn has seen in an entry.
func (n *regionNames) of(number uint16) string { return (*n.list.Load())[number] }

// knows reports whether so many are known.
func (n *regionNames) knows(count int) bool {
	list := n.list.Load()
	return list != nil && count <= len(*list)
}

// keep takes a list, if more is not known: it is asked for by the reader of the log and by those of histories.
func (n *regionNames) keep(list []string) {
	for {
		old := n.list.Load()
		if old != nil && len(*old) >= len(list) || n.list.CompareAndSwap(old, &list) {
			return
		}
	}
}

// learn asks for the names of regions that a part of the log is about, if there are new ones. The replica that sent the part
// is asked: it has committed what defined them, so that no other number can be theirs. Those that it has beyond may not be
// committed, and are not kept.
func (p *partition) learn(ctx context.Context, part *client.FollowBatch) error {
	if p.regions == nil {
		return nil
	}
	count := 0
	for i := range part.Entries {
		if e := &part.Entries[i]; e.Kind == order.KindRegion {
			if o := order.RegionOf(order.Payload(e.Bytes)); o.Op >= order.RegionPut {
				count = max(count, int(o.Region)+1)
			}
		}
	}
	if p.regions.knows(count) || count == 0 {
		return nil
	}
	list, err := p.g.regionsAt(ctx, p.id, part.Address)
	if err != nil {
		return err
	}
	if len(list) < count {
		return fmt.Errorf("%s has %d regions of %s, and has sent a change of number %d", part.Address, len(list), p.id, count-1)
	}
	p.regions.keep(list[:count:count])
	return nil
}

// regionsAt returns the names of the regions that a replica has.
func (g *generation) regionsAt(ctx context.Context, p wire.PartitionID, replica string) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	of, err := g.l.cfg.Client.RegionsAt(ctx, p, replica)
	if errors.Is(err, client.ErrNotPermitted) {
		return nil, fmt.Errorf("--websocket-regions takes the permission Read in the grid: %w", err)
	}
	for i := range of.Regions {
		names = append(names, of.Regions[i].Name)
	}
	return names, err
}
