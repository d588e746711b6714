package sim

import (
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// The file of regions (docs/adr/0080) changes in half of the worlds with regions: each pod reads the new one at a time of its
// own, its processes to come begin with it. In the end every log has what the file has.

const (
	laterRegion  = "quotes"
	changedBound = 512 << 10 // of the first region; never met
)

// regionFile decides whether the file changes, with a random source of its own.
func regionFile(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x66696c65)); p.regions != nil && rng.IntN(2) == 0 {
		p.regionFile = rng
	}
	regionSources(p, seed)
}

// regionOptions of a process of the pod.
func (p *pod) regionOptions() *replica.Regions {
	switch {
	case p.w.profile.regions == nil:
		return nil
	case p.w.regionFiles != nil:
		return p.w.regionFiles[p.regionFile]
	case !p.newRegions:
		return &replica.Regions{Bytes: 1 << 20, Regions: []replica.RegionSpec{{Name: regionName}}}
	}
	return &replica.Regions{Bytes: 1 << 20, Regions: []replica.RegionSpec{{Name: regionName, MaxBytes: changedBound}, {Name: laterRegion, LifeNs: int64(second)}}}
}

// scheduleRegionFile has every pod read the new file.
func (w *world) scheduleRegionFile() {
	w.scheduleRegionFiles()
	rng := w.profile.regionFile
	if rng == nil || w.regionFiles != nil {
		return
	}
	at := rng.Int64N(w.profile.chaos)
	for _, p := range w.pods {
		w.after(at+rng.Int64N(second), func() {
			p.newRegions = true
			w.logf("%s reads another file of regions", p.name)
			if p.proc != nil {
				p.proc.deliver(p.proc.readRegions)
			}
		})
	}
}

func (p *process) readRegions() {
	if p.alive && !p.w.stopped {
		p.r.SetRegions(p.pod.regionOptions())
		p.step(&replica.Event{Kind: replica.EventTick})
	}
}

// regionsAwaited returns which copy says that its log lacks what the file has, and whether the state of the log does.
func (w *world) regionsAwaited() (why string) {
	if w.profile.regions == nil || w.profile.regionFile == nil {
		return ""
	}
	last := []replica.RegionSpec{{Name: regionName, MaxBytes: changedBound}, {Name: laterRegion, LifeNs: int64(second)}}
	if w.regionFiles != nil {
		last = w.regionFiles[regionContents-1].Regions
	}
	for _, p := range w.placed() {
		p.proc.r.RegionsAwaited(func(name string) { why = p.proc.name + " awaits region " + name })
		if s := p.proc.r.Regions(); why == "" && (s == nil || len(s.Regions()) != 2 || !s.Regions()[0].Is(&last[0]) || s.Regions()[1].Name != laterRegion || !s.Regions()[1].Is(&last[1])) {
			why = p.proc.name + " has not the regions of the file"
		}
	}
	return why
}
