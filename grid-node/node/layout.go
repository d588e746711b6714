package node

import (
	"fmt"
	"net"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Which shards a grid has, and which of them take orders, changes while nodes run.
// The operator writes it into the records of all partitions; a node hands it to
// clients with the partition table.

// admissionOf is what a record says about new sessions and orders.
func admissionOf(s *arbiter.Spec) replica.Admission {
	switch {
	case s.Replicas == 0:
		return replica.AdmissionUnknown // not the arbiter's own word
	case s.Admission == arbiter.AdmissionDraining, s.Admission == arbiter.AdmissionRetired:
		return replica.AdmissionClosed
	}
	return replica.AdmissionOpen
}

// directory is what clients are told of where orders go: the shards of the grid, the nodes
// to ask for others, and addresses that lead there from outside. Of the data loop.
type directory struct {
	*process
	parts   *partitions
	layout  wire.Layout // which shards take orders; zero until a record says so
	outside external
	gridMap gridMap // those of the grid that this node does not hold
}

// observe takes over what the record of a partition says of the grid. The
// records are written one after the other: the latest decision counts.
func (d *directory) observe(s *arbiter.Spec) {
	d.observeExternal(s)
	l := s.Layout
	if l.Revision <= d.layout.Revision || l.Shards < 1 || l.Shards > wire.MaxShards || l.Open < 1 || l.Open > l.Shards {
		return
	}
	d.layout = wire.Layout{Revision: l.Revision, Shards: uint16(l.Shards), Open: uint16(l.Open), Removed: uint16(min(max(l.Removed, 0), 1<<16-1))}
	d.log.Info("shards of the grid", "revision", l.Revision, "shards", l.Shards, "open", l.Open)
}

// shards is how many a client may ask.
func (d *directory) shards() int {
	if d.layout.Revision != 0 {
		return int(d.layout.Shards)
	}
	return d.cfg.Shards
}

// seeds are addresses of the other shards.
func (d *directory) seeds() (list [][]byte) {
	for _, s := range d.cfg.Seeds {
		list = append(list, []byte(s))
	}
	if d.cfg.SeedPattern == "" {
		return list
	}
	for shard := range d.shards() {
		if shard != d.cfg.Shard {
			list = append(list, fmt.Appendf(nil, d.cfg.SeedPattern, shard))
		}
	}
	return list
}

func hostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	return err == nil && host != "" && port != ""
}

// checkSeedPattern wants one number and a port.
func (c *Config) checkSeedPattern() error {
	if c.SeedPattern == "" {
		return nil
	}
	if strings.Count(c.SeedPattern, "%") != 1 || strings.Count(c.SeedPattern, "%d") != 1 || !hostPort(fmt.Sprintf(c.SeedPattern, 1)) {
		return fmt.Errorf("--seed-pattern: value %q, allowed: host:port with one %%d for the number of the shard", c.SeedPattern)
	}
	return nil
}
