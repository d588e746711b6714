package node

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// Regions are the keyed objects of a grid. All nodes have the same.
type Regions struct {
	// Memory is what the regions of all partitions take on a node, in bytes. It is taken from
	// what is for orders.
	Memory int64
	// Regions by name. MaxBytes are of all partitions together.
	Regions []replica.RegionSpec
}

// leastRegions is what regions need at least in a partition.
const leastRegions = 64 << 10

// regionsEvery is the interval of reading the file of regions.
const regionsEvery = time.Second

// regionMemory is for the regions of all partitions.
func (c *Config) regionMemory() int64 {
	if c.Regions == nil {
		return 0
	}
	return c.Regions.Memory
}

// of returns the options of one of n partitions; nil for none. Each has an equal part, half of
// it for the state behind the freed log, so that a hash that spreads keys badly meets the bound
// of its partition first.
func (x *Regions) of(n int64) *replica.Regions {
	if x == nil {
		return nil
	}
	o := &replica.Regions{Bytes: x.Memory / 2 / n}
	for _, s := range x.Regions {
		if s.MaxBytes > 0 {
			s.MaxBytes = max(s.MaxBytes/n, region.BlockSize)
		}
		o.Regions = append(o.Regions, s)
	}
	return o
}

// checkRegions rejects what does not fit the node.
func (c *Config) checkRegions() error {
	if c.Regions == nil {
		return nil
	}
	n := int64(max(c.Partitions, 1))
	least := 2 * leastRegions * n
	switch {
	case c.Execution != nil:
		return errors.New("--regions: a file, allowed: none with --execution=match")
	case c.Regions.Memory < least || c.Regions.Memory > c.MemoryLimit/2:
		return fmt.Errorf("--regions: memory is %d bytes, allowed: %d (128 KiB a partition) to %d, half of --memory-limit", c.Regions.Memory, least, c.MemoryLimit/2)
	}
	if err := c.Regions.of(n).Check(); err != nil {
		return fmt.Errorf("--regions: %w", err)
	}
	return nil
}

// regionsRead is the file of regions, as it was read last. Of the data loop.
type regionsRead struct {
	now    *Regions // those in use; nil without a file
	sha256 string   // of the file that they are of
	failed string   // why the present content of the file is not taken, "" if it is
}

// options of one of the node's partitions.
func (ps *partitions) regionOptions() *replica.Regions {
	return ps.regions.now.of(int64(max(ps.cfg.Partitions, 1)))
}

// watchRegions follows the file. What cannot be read changes nothing.
func (n *Node) watchRegions() {
	ticker := time.NewTicker(regionsEvery)
	defer ticker.Stop()
	last, failed := "", ""
	for {
		x, digest, err := n.cfg.ReadRegions()
		if err == nil {
			x.Memory = n.cfg.Regions.Memory
			err = x.of(int64(max(n.cfg.Partitions, 1))).Check()
		}
		now := ""
		if err != nil {
			now = fmt.Sprintf("%.1000s", err)
		}
		if now != failed {
			if failed = now; err != nil {
				n.log.Error("the regions cannot be read, those before stay", "reason", err)
			}
			n.loop.Post(func() { n.data.parts.regions.failed = now })
		}
		if err == nil && digest != last {
			last = digest
			n.loop.Post(func() { n.data.parts.setRegions(x, digest) })
		}
		select {
		case <-ticker.C:
		case <-n.ctx.Done():
			return
		}
	}
}

// setRegions gives all partitions the regions that their primaries put in the log.
func (ps *partitions) setRegions(x *Regions, digest string) {
	ps.regions.now, ps.regions.sha256 = x, digest
	ps.log.Info("regions read", "regions", len(x.Regions), "sha256", digest)
	for _, p := range ps.list {
		if !p.ended {
			p.replica.SetRegions(ps.regionOptions())
			p.step(&replica.Event{Kind: replica.EventTick})
		}
	}
}

// regionsLoaded is the state of the regions for the page of the memory; nil in a node without
// a file of regions. On the loop.
func (ps *partitions) regionsLoaded() *nodestatus.Regions {
	if ps.regions.now == nil {
		return nil
	}
	s := &nodestatus.Regions{SHA256: ps.regions.sha256, MemoryBytes: ps.regions.now.Memory, Error: ps.regions.failed}
	for _, p := range ps.list {
		if p.status.Role != replica.RolePrimary && p.status.Role != replica.RoleBackup {
			continue
		}
		row := nodestatus.PartitionRegions{Partition: p.id.String()}
		p.replica.RegionsAwaited(func(name string) {
			if name == "" {
				row.BoundAwaited = true
				return
			}
			row.Awaited = append(row.Awaited, name)
		})
		p.replica.RegionsLater(func(name string) { row.Later = append(row.Later, name) })
		s.Partitions = append(s.Partitions, row)
		if p.status.Role == replica.RolePrimary {
			s.Use = p.addRegionUse(s.Use)
		}
	}
	return s
}

// addRegionUse adds what this partition has to the sums by region.
func (p *partition) addRegionUse(sums []nodestatus.RegionUse) []nodestatus.RegionUse {
	p.replica.EachRegion(func(u *replica.RegionUse) {
		i := slices.IndexFunc(sums, func(s nodestatus.RegionUse) bool { return s.Name == u.Name })
		if i < 0 {
			i, sums = len(sums), append(sums, nodestatus.RegionUse{Name: u.Name})
		}
		s := &sums[i]
		s.Partitions, s.Entries, s.Bytes = s.Partitions+1, s.Entries+u.Entries, s.Bytes+u.Blocks*region.BlockSize
		if u.Full && len(s.Full) < nodestatus.MaxFull {
			s.Full = append(s.Full, p.id.String())
		}
	})
	return sums
}

// regionRows are the regions of the partition for pages.
func (p *partition) regionRows() (rows []nodestatus.Region) {
	p.replica.EachRegion(func(u *replica.RegionUse) {
		rows = append(rows, nodestatus.Region{Name: u.Name, Entries: u.Entries, Bytes: u.Blocks * region.BlockSize, MaxBytes: u.MaxBytes, Full: u.Full})
	})
	return rows
}

// regionSnapshot is what metrics have of the regions; nil without.
func (p *partition) regionSnapshot() *metrics.Regions {
	x := p.replica.Regions()
	if x == nil {
		return nil
	}
	m := &metrics.Regions{Used: x.Used(), Limit: x.Limit()}
	p.replica.EachRegion(func(u *replica.RegionUse) { m.List = append(m.List, *u) })
	return m
}
