package node

import (
	"cmp"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// gridMap is the location of the grid's partitions, by their records: for clients, of
// partitions that this node does not hold. Of the data loop.
type gridMap struct {
	parts map[string]wire.TablePart // by the record's name
	list  []wire.TablePart          // the same by id, made when it is asked for; nil: anew
}

// maxMapBytes is what the parts may take of a Table frame; the rest is for the node's own
// partitions and the seeds. A grid of 1,024 partitions of 3 copies takes half of it.
const maxMapBytes = wire.MaxFrame - 256<<10

// hear handles a watch event of the records.
func (g *gridMap) hear(grid string, news *arbiter.News) {
	if news.All || g.parts == nil {
		g.parts = make(map[string]wire.TablePart, len(news.Records))
	}
	for i := range news.Records {
		rec := &news.Records[i]
		if part, ok := partOfRecord(grid, rec); ok {
			g.parts[rec.Name] = part
		} else {
			delete(g.parts, rec.Name)
		}
	}
	for _, name := range news.Gone {
		delete(g.parts, name)
	}
	g.list = nil
}

// partOfRecord converts a record for clients; false if it is not the grid's, or invalid.
func partOfRecord(grid string, rec *arbiter.Record) (wire.TablePart, bool) {
	id, ok := idOf(grid, rec)
	if !ok {
		return wire.TablePart{}, false
	}
	c, err := configOf(*rec)
	if err != nil {
		return wire.TablePart{}, false
	}
	return partOf(id, c, nil), true
}

// all are the parts in the order of their ids, as many as a Table has room for.
func (g *gridMap) all() []wire.TablePart {
	if g.list != nil || len(g.parts) == 0 {
		return g.list
	}
	g.list = make([]wire.TablePart, 0, len(g.parts))
	for _, p := range g.parts {
		g.list = append(g.list, p)
	}
	slices.SortFunc(g.list, func(a, b wire.TablePart) int { return cmp.Compare(a.Partition, b.Partition) })
	bytes := 0
	for i := range g.list {
		if bytes += g.list[i].Size(); bytes > maxMapBytes {
			g.list = g.list[:i]
			break
		}
	}
	return g.list
}

// find is the part of a partition.
func (g *gridMap) find(id wire.PartitionID) (*wire.TablePart, bool) {
	list := g.all()
	i, ok := slices.BinarySearchFunc(list, id, comparePart)
	if !ok {
		return nil, false
	}
	return &list[i], true
}
