// Package plan decides what a FailoverDrill does: which faults, in which order, on which targets. It is a pure function
// of the spec, the shape of the grid and the seed; Resolve maps roles to pods right before the injection. Suites are the
// lists of faults that come with the operator; ResolveSuite completes a spec with the settings of its suite.
package plan

import (
	"fmt"
	"math/rand/v2"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Shape is what a plan needs of a grid.
type Shape struct {
	Shards, Replicas int32
	Partitions       int32 // of the grid
}

// ShapeOf a grid.
func ShapeOf(g *api.OrderGrid) Shape {
	return Shape{Shards: g.Spec.Shards, Replicas: g.Spec.Replicas, Partitions: g.Spec.Partitions}
}

// Step is one injection of one fault. Steps are carried out one after the other; one that starts Held is carried out
// while the one before it is in place.
type Step struct {
	Index      int // in the whole drill, from 0
	Repetition int // from 1
	// Fault with all defaults filled in.
	Fault api.DrillFault
	// Partition of the step; -1 for the whole grid. With a Shard, -1 for none, it is one of those on it when the step
	// begins: partitions move, so Resolve chooses it.
	Shard, Partition int32
	// Pick selects one of several pods with the role.
	Pick uint64
	// Duration the fault stays and After, waited before it; 0 where there is none.
	Duration, After time.Duration
	Start           api.DrillStart
}

// PartitionName names the GridPartition of the step; "" for the whole grid, or one of a shard.
func (s *Step) PartitionName(grid string) string {
	if s.Partition < 0 || s.Shard >= 0 {
		return ""
	}
	return api.PartitionName(grid, s.Partition)
}

// stream separates the random numbers of a plan from others with the same seed.
const stream = 0x6472696c6c // "drill"

// Seed draws a seed for a drill without one.
func Seed() int64 { return 1 + rand.Int64N(1<<53-1) }

// Steps plans a drill. The spec must have been completed by suites.Resolve. The same arguments give the same steps. An
// error names the invalid field, for a message.
func Steps(spec *api.FailoverDrillSpec, shape Shape, seed int64) ([]Step, error) {
	if err := check(spec, shape); err != nil {
		return nil, err
	}
	groups := group(spec.Faults)
	draw := rand.New(rand.NewPCG(uint64(seed), stream))
	repetitions := int(*spec.Repetitions)
	steps := make([]Step, 0, repetitions*len(spec.Faults))
	for r := range repetitions {
		order := make([]int, len(groups))
		for i := range order {
			order[i] = i
		}
		if spec.Order == api.OrderRandom {
			draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, g := range order {
			for i, f := range groups[g] {
				s := step(f, shape, draw)
				if i > 0 {
					follow(&s, &steps[len(steps)-1])
				}
				s.Index, s.Repetition = len(steps), r+1
				steps = append(steps, s)
			}
		}
	}
	return steps, nil
}

// group puts faults that start Served or Held together with the one before them, which they depend on.
func group(faults []api.DrillFault) [][]api.DrillFault {
	var groups [][]api.DrillFault
	for _, f := range faults {
		if n := len(groups); n > 0 && f.Start != api.StartRedundant {
			groups[n-1] = append(groups[n-1], f)
			continue
		}
		groups = append(groups, []api.DrillFault{f})
	}
	return groups
}

// step makes all random choices, needed or not, so that naming a shard in one fault changes no other step.
func step(f api.DrillFault, shape Shape, draw *rand.Rand) Step {
	s := Step{
		Fault: *f.DeepCopy(), Start: f.Start, Shard: -1, Partition: draw.Int32N(shape.Partitions), Pick: draw.Uint64(),
	}
	if f.Duration != nil {
		s.Duration = f.Duration.Duration
	}
	if f.After != nil {
		s.After = f.After.Duration
	}
	if f.Type.GridWide() {
		s.Partition = -1
		return s
	}
	switch t := f.Target; {
	case t.Partition != nil:
		s.Partition = *t.Partition
	case t.Shard != nil:
		s.Shard = *t.Shard
	}
	return s
}

// follow gives a step the target of the step before it, unless it names another.
func follow(s, before *Step) {
	if s.Partition >= 0 && before.Partition >= 0 && s.Fault.Target.Shard == nil && s.Fault.Target.Partition == nil {
		s.Shard, s.Partition = before.Shard, before.Partition
	}
}

// check refuses what is invalid for the shape of the grid, or the order of faults.
func check(spec *api.FailoverDrillSpec, shape Shape) error {
	if len(spec.Faults) == 0 || spec.Repetitions == nil || shape.Shards < 1 || shape.Replicas < 1 || shape.Partitions < 1 {
		return fmt.Errorf("nothing to plan: %d faults, grid with %d shards of %d replicas and %d partitions", len(spec.Faults), shape.Shards, shape.Replicas, shape.Partitions)
	}
	for i := range spec.Faults {
		f := &spec.Faults[i]
		where := fmt.Sprintf("fault %s", f.Name)
		if f.Start != api.StartRedundant && i == 0 {
			return fmt.Errorf("%s: start: %s, but there is no fault before it; put it after another, or set start: Redundant", where, f.Start)
		}
		if f.Start == api.StartHeld && spec.Faults[i-1].Type.Momentary() {
			return fmt.Errorf("%s: start: Held, but %s before it is over in a moment; put it after a fault with a duration, or set start: Served", where, spec.Faults[i-1].Type)
		}
		if t := f.Target; t != nil {
			if err := checkTarget(t, shape); err != nil {
				return fmt.Errorf("%s: target.%w", where, err)
			}
		}
		if shape.Replicas == 1 && f.Type == api.FaultHandOver {
			return fmt.Errorf("%s: type HandOver needs a second copy, and the grid has replicas: 1; remove the fault, or choose a grid with replicas: 2", where)
		}
	}
	return nil
}

func checkTarget(t *api.DrillTarget, shape Shape) error {
	switch {
	case t.Shard != nil && *t.Shard >= shape.Shards:
		return fmt.Errorf("shard: the grid has no shard %d; allowed are 0 to %d", *t.Shard, shape.Shards-1)
	case t.Partition != nil && *t.Partition >= shape.Partitions:
		return fmt.Errorf("partition: the grid has no partition %d; allowed are 0 to %d", *t.Partition, shape.Partitions-1)
	case shape.Replicas == 1 && (t.Role == api.RoleBackup || t.Role == api.RoleBackups):
		return fmt.Errorf("role: %s needs a second copy, and the grid has replicas: 1; set role: Primary, or choose a grid with replicas: 2", t.Role)
	case shape.Replicas == 1 && t.Peer == api.PeerCopies:
		return fmt.Errorf("peer: Copies needs a second copy, and the grid has replicas: 1; set peer: Everything or Clients")
	}
	return nil
}
