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

// observeLayout takes over what the record of a partition says of the grid. The
// records are written one after the other: the latest decision counts.
func (n *Node) observeLayout(p *partition, s *arbiter.Spec) {
	if s.Admission == arbiter.AdmissionRetired && !p.retired {
		p.retired = true
		n.log.Info("the partition is retired: its orders are downstream, its pods may go", "partition", p.id.String())
		if n.stopping {
			n.stop(p, "it is retired")
		}
	}
	l := s.Layout
	if l.Revision <= n.layout.Revision || l.Shards < 1 || l.Shards > wire.MaxShards || l.Open < 1 || l.Open > l.Shards {
		return
	}
	n.layout = wire.Layout{Revision: l.Revision, Shards: uint16(l.Shards), Open: uint16(l.Open), Removed: uint16(min(max(l.Removed, 0), 1<<16-1))}
	n.log.Info("shards of the grid", "revision", l.Revision, "shards", l.Shards, "open", l.Open)
}

// shards is how many a client may ask.
func (n *Node) shards() int {
	if n.layout.Revision != 0 {
		return int(n.layout.Shards)
	}
	return n.cfg.Shards
}

// seeds are addresses of the other shards.
func (n *Node) seeds() (list [][]byte) {
	for _, s := range n.cfg.Seeds {
		list = append(list, []byte(s))
	}
	if n.cfg.SeedPattern == "" {
		return list
	}
	for shard := range n.shards() {
		if shard != n.cfg.Shard {
			list = append(list, fmt.Appendf(nil, n.cfg.SeedPattern, shard))
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
