package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// The operator's file of regions (docs/adr/0118), in half of the worlds in which the file changes. Each change gives one
// or both GridRegions a later generation, or makes one anew. Each pod reads each content at a time of its own, so that a
// take-over finds files that are behind.

const regionContents = 7

// regionSources decides whether regions come from an operator, with a random source of its own.
func regionSources(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x726567736f7572)); p.regionFile != nil && rng.IntN(2) == 0 {
		p.regionSources = rng
	}
}

// makeRegionFiles makes the contents, oldest first. Every definition of a region is another one.
func (w *world) makeRegionFiles() {
	rng := w.profile.regionSources
	if rng == nil {
		return
	}
	sources := [2]limits.Source{}
	bounds := [2]int64{}
	for i := range sources {
		sources[i] = limits.Source{Grid: "g", Object: fmt.Sprintf("r%d", i), SinceMs: 1000, Generation: 1}
	}
	for n := range regionContents {
		for i := range sources {
			s := &sources[i]
			switch {
			case n == 0 || rng.IntN(3) == 0:
				continue
			case rng.IntN(2) == 0:
				s.Generation += 1 + rng.Int64N(3)
			default: // made anew: its generations begin again
				s.Object, s.SinceMs, s.Generation = fmt.Sprintf("r%d-%d", i, n), s.SinceMs+1+rng.Int64N(2), 1
			}
			bounds[i] = int64(n)
		}
		positions, quotes := sources[0], sources[1]
		w.regionFiles = append(w.regionFiles, &replica.Regions{Bytes: 1 << 20, Regions: []replica.RegionSpec{
			{Name: regionName, MaxBytes: changedBound + bounds[0]*region.BlockSize, Source: &positions},
			{Name: laterRegion, LifeNs: int64(second) + bounds[1], Source: &quotes},
		}})
	}
}

// scheduleRegionFiles has every pod read every content, some later than others.
func (w *world) scheduleRegionFiles() {
	w.scheduleFiles("regions", w.profile.regionSources, regionContents, func(p *pod) *int { return &p.regionFile }, (*process).readRegions)
}

// checkRegionSource: I60, once a definition of a region with its source is in force none that was given before it comes into
// force.
func (w *world) checkRegionSource(t *timeline, e *order.Entry, o *order.RegionOp) {
	if w.regionFiles == nil || o.Op != order.RegionDefine {
		return
	}
	if t.regionFile == nil {
		t.regionFile = map[string]int{}
	}
	file := 0 // from 1: the first content with this definition
	for n, x := range w.regionFiles {
		for i := range x.Regions {
			if s := &x.Regions[i]; file == 0 && s.Name == string(o.Key) && string(s.Definition(true)) == string(o.Value) {
				file = n + 1
			}
		}
	}
	if have := t.regionFile[string(o.Key)]; have > 0 && file <= have {
		w.violation("I60", "entry %d gives region %s the definition of file %d of %d again, that in force is of %d: %s", e.Seq, o.Key, file, regionContents, have, o.Value[16:])
		return
	}
	if t.regionFile[string(o.Key)] = file; file > 0 {
		w.stats.Definitions++
	}
}
