package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/placement"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// operator moves the partition as controllers/ordergrid does: the number of shards is
// changed, and stateless passes, two of which may overlap, read the record and the pods,
// plan with the operator's code, and write over the version that they read. Each step may
// be slow, or fail. The grid has other partitions, of which only the location is
// simulated; a plan for a single partition would be trivial.
type operator struct {
	w      *world
	rng    *rand.Rand
	shards int // that there can be, each of as many pods as copies are wanted
	wanted int // of those; the last ones leave
	limit  placement.Limits
	others []other
}

// other is a partition that is not simulated.
type other struct {
	home, from int
	till       int64 // moving until then
	version    int
	bytes      int64
}

// observed is the input of a pass.
type observed struct {
	rec        replica.Config
	wanted     int
	shards     []placement.Shard
	partitions []placement.Partition
	versions   []int // of the others
}

// plans lets an operator move the partition in half of the worlds with moves. It uses its
// own random source, started so that no seed in testdata/seeds.txt became another world.
func plans(p *profile, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x706c616e85))
	if p.moves != nil && rng.IntN(2) == 0 {
		p.plans, p.pods = rng, p.replicas*(2+rng.IntN(2))
	}
}

func (w *world) initOperator() {
	rng := w.profile.plans
	shards := w.profile.pods / w.profile.replicas
	o := &operator{w: w, rng: rng, shards: shards, wanted: shards, limit: placement.Limits{Concurrent: 1 + rng.IntN(2)}}
	for i := range 2 + rng.IntN(5) {
		o.others = append(o.others, other{home: placement.Home(i+int(partition)+1, shards), bytes: rng.Int64N(1000)})
	}
	w.operator = o
	w.api.rec.Pods = w.group(placement.Home(int(partition), shards))
	o.scheduleShards()
	o.schedule()
}

// scheduleShards draws how many shards are wanted next, and when that is set.
func (o *operator) scheduleShards() {
	mean := float64(2 * o.w.profile.every)
	if o.rng.IntN(3) == 0 { // taken back, or changed, half-way
		mean = float64(50 * millisecond)
	}
	o.w.after(int64(o.rng.ExpFloat64()*mean), func() {
		if !o.w.healing {
			o.want(o.another())
			o.scheduleShards()
		}
	})
}

// another draws another number of shards than is wanted now.
func (o *operator) another() int { return 1 + (o.wanted+o.rng.IntN(o.shards-1))%o.shards }

func (o *operator) want(shards int) {
	o.w.faults.hit(faultShards)
	o.w.logf("operator: %d of %d shards are wanted", shards, o.shards)
	o.wanted = shards
}

func (o *operator) schedule() {
	o.w.after(int64(o.rng.ExpFloat64()*float64(50*millisecond)), func() {
		if !o.w.stopped {
			o.pass()
			o.schedule()
		}
	})
}

// way of a call, and of an answer; some take long.
func (o *operator) way() int64 {
	d := 200*microsecond + o.rng.Int64N(2*millisecond)
	if !o.w.healing && o.rng.IntN(20) == 0 {
		d += o.rng.Int64N(second)
	}
	return d
}

func (o *operator) pass() {
	w := o.w
	w.after(o.way(), func() {
		if w.api.mode == apiAway {
			return
		}
		seen := o.observe()
		w.after(o.way(), func() {
			if w.api.mode != apiAway && !w.api.rewound { // an edit would apply to the old record
				o.act(seen)
			}
		})
	})
}

func (o *operator) observe() *observed {
	seen := &observed{rec: o.w.api.rec, wanted: o.wanted}
	for i := range o.shards {
		s := placement.Shard{ID: i, Leaves: i >= o.wanted}
		for _, p := range o.pods(i) {
			if p.proc == nil || p.proc.leaving {
				s.Closed = p.name + " is not ready"
			}
		}
		seen.shards = append(seen.shards, s)
	}
	seen.partitions = append(seen.partitions, o.partition())
	for i := range o.others {
		q := &o.others[i]
		at := placement.Partition{ID: int(partition) + 1 + i, Home: q.home, Held: []int{q.home}, Bytes: q.bytes, Moving: o.w.now < q.till}
		if at.Moving {
			at.Held = []int{min(q.from, q.home), max(q.from, q.home)}
		}
		seen.partitions = append(seen.partitions, at)
		seen.versions = append(seen.versions, q.version)
	}
	return seen
}

// partition is the record's view of the simulated partition.
func (o *operator) partition() placement.Partition {
	rec := &o.w.api.rec
	q := placement.Partition{ID: int(partition), Home: o.shardOf(rec.Pods[0]), Bytes: 500}
	for i := range rec.InSync {
		if at := o.shardOf(rec.InSync[i].Pod()); !slices.Contains(q.Held, at) {
			q.Held = append(q.Held, at)
		}
	}
	slices.Sort(q.Held)
	switch q.Moving = len(q.Held) > 0 && !slices.Equal(q.Held, []int{q.Home}); {
	case o.w.processOf(rec.Primary.Boot) == nil:
		q.Stays = "it has no primary"
	case len(rec.InSync) < rec.Replicas:
		q.Stays = fmt.Sprintf("it has %d of %d copies", len(rec.InSync), rec.Replicas)
	}
	return q
}

func (o *operator) pods(shard int) []*pod {
	n := o.w.profile.replicas
	return o.w.pods[shard*n:][:n]
}

func (o *operator) shardOf(name string) int {
	return slices.IndexFunc(o.w.pods, func(p *pod) bool { return p.name == name }) / o.w.profile.replicas
}

// act executes the plan of a pass.
func (o *operator) act(seen *observed) {
	w := o.w
	for _, m := range placement.Next(seen.shards, seen.partitions, o.limit).Begin {
		if m.Partition == int(partition) {
			o.begin(&seen.rec, m.To)
		} else if i := m.Partition - int(partition) - 1; o.others[i].version == seen.versions[i] {
			q := &o.others[i]
			q.from, q.home, q.till = q.home, m.To, w.now+int64(o.rng.ExpFloat64()*float64(200*millisecond))
			q.version++
		}
	}
	if rec := &w.api.rec; rec.PreferredPod != "" && !slices.Contains(rec.Pods, rec.PreferredPod) {
		w.api.touch(func(c *replica.Config) { c.PreferredPod = c.Pods[o.rng.IntN(len(c.Pods))] })
	}
	for i := range o.shards {
		o.scale(seen, i)
	}
}

// begin changes the shard of the partition, unless the record has changed since it was
// read.
func (o *operator) begin(seen *replica.Config, shard int) {
	w := o.w
	if seen.Version != w.api.rec.Version && !operatorMutant(mutPlanStale) {
		w.faults.hit(faultPlanRefused)
		w.logf("operator: the move to shard %d is refused, the record has another version than %s", shard, seen.Version)
		return
	}
	w.faults.hit(faultMove)
	w.logf("operator: the partition goes to shard %d", shard)
	w.checkI20(shard)
	w.move(w.group(shard))
}

// scale removes the pods of a leaving shard without partitions, or adds those that are
// needed: an old pass may have removed pods that a record names by now.
func (o *operator) scale(seen *observed, shard int) {
	w := o.w
	needed := shard < seen.wanted || slices.ContainsFunc(seen.partitions, func(q placement.Partition) bool {
		return q.Home == shard || slices.Contains(q.Held, shard)
	})
	for _, p := range o.pods(shard) {
		switch {
		case !needed && !p.absent && !w.oneIsKept():
			p.absent = true
			if p.proc != nil && !p.proc.leaving {
				w.logf("%s is drained, with its shard", p.proc.name)
				p.proc.leave(false)
			}
		case needed && p.absent:
			p.absent = false
			w.restart(p)
		}
	}
}

// unsettled returns what the operator has not done yet, "" if nothing is left.
func (o *operator) unsettled() string {
	seen := o.observe()
	for _, q := range seen.partitions {
		if q.Moving {
			return fmt.Sprintf("partition %d is on its way to shard %d", q.ID, q.Home)
		}
	}
	if p := placement.Next(seen.shards, seen.partitions, o.limit); len(p.Begin)+len(p.Queued)+len(p.Waiting) > 0 {
		return fmt.Sprintf("the plan is %+v", p)
	}
	for i := range o.shards {
		for _, p := range o.pods(i) {
			if gone := i >= o.wanted; p.absent != gone || (p.proc == nil) != gone {
				return fmt.Sprintf("%d shards are wanted, and pod %s is still or not yet there", o.wanted, p.name)
			}
		}
	}
	return ""
}

// checkI20 checks a starting move: the previous one is over, or has no copy there yet, and
// no copy is missing. After a rewind versions repeat.
func (w *world) checkI20(shard int) {
	q, rec := w.operator.partition(), &w.api.rec
	switch {
	case w.api.regressed:
	case q.Moving && slices.Contains(q.Held, q.Home):
		w.violation("I20", "the partition is sent to shard %d, and it is half-way to shard %d: %s", shard, q.Home, w.configText(rec))
	case !q.Moving && len(rec.InSync) < rec.Replicas:
		w.violation("I20", "the partition is sent to shard %d with %d of %d copies: %s", shard, len(rec.InSync), rec.Replicas, w.configText(rec))
	}
}
