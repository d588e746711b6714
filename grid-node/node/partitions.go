package node

import (
	"context"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/grid-node/inspect"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// partitions are those with a copy on this node, and their shared state. Of the data loop.
type partitions struct {
	*process
	peers       *peers
	clients     *clients
	live        *liveness
	arbiter     *arbiterContact
	budget      *store.Budget // of the memory for orders
	plan        memoryPlan
	inspections *inspect.Turns
	views       *views            // nil: none are kept
	functions   *functions        // nil: none decide
	computes    *computeFunctions // nil: none are called
	posts       *postFunctions
	profile     profile // of limits
	calendar    *replica.Calendar
	regions     regionsRead
	journals    journalStats // of Config.Journal
	ahead       atomic.Int64 // memory made present before entries need it, a partition; for every thread

	byID     []*partition  // nil where this node has none
	list     []*partition  // the same, by id
	held     held          // the ones it should hold
	dirty    []*partition  // stepped since their last flush
	ev       replica.Event // reused: the input of a step
	submits  uint64        // Submit frames seen, to time every processSample-th
	acks     uint64        // acknowledgements of other members, likewise
	stopping bool          // a drain has begun
}

// at is nil when this node does not hold the partition.
func (ps *partitions) at(id wire.PartitionID) *partition {
	if int(id) >= len(ps.byID) {
		return nil
	}
	return ps.byID[id]
}

// step passes an event to every replica.
func (ps *partitions) step(ev replica.Event) {
	for _, p := range ps.list {
		p.step(&ev)
	}
}

// flush ends a wake-up: every stepped replica executes its actions.
func (ps *partitions) flush() {
	for i := 0; i < len(ps.dirty); i++ { // carrying out may step further partitions
		ps.dirty[i].flush()
	}
	ps.dirty = ps.dirty[:0]
}

func (p *partition) flush() {
	p.dirty = false
	p.all.ev = replica.Event{Kind: replica.EventFlush}
	p.replica.Step(p.now(), &p.all.ev, &p.out)
	p.carryOut()
	p.inc.feed.Wake()
	if p.all.views != nil {
		p.all.views.touch(p)
	}
}

// tick checks every partition once: a node may have a thousand, most of them at rest.
func (ps *partitions) tick(now int64) {
	tick := replica.Event{Kind: replica.EventTick}
	other := false
	for i := 0; i < len(ps.list); i++ {
		p := ps.list[i]
		if p.leaves() {
			ps.close(p)
			i--
			continue
		}
		p.remake(now)
		if p.replica.TickDue(now) { // the others are at rest
			p.step(&tick)
			other = other || p.replica.Feeds() != p.feeds
		}
	}
	ps.openDue(now)
	if other {
		ps.share()
	}
}

// awaitWarm waits, before the loop runs, for the memory of Config.Prefault; false if ctx ends before.
func (ps *partitions) awaitWarm(ctx context.Context) bool {
	for _, p := range ps.list {
		select {
		case <-p.inc.warm:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
