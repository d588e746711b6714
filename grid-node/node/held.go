package node

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// The records determine which partitions this node holds, by the watch alone: its events
// are ordered, and a read from the arbiter may be older. A partition is opened when its
// record names this pod, and closed when the record names it neither for a copy nor as in
// sync, and by the replica's own knowledge it is not needed: an old record, restored from
// a backup, removes no copy. Nor does a deleted one: whatever works without it continues.

// held is the content of the records, and the remains of closed partitions.
type held struct {
	heard bool                                // the records have been read
	due   map[wire.PartitionID]arbiter.Record // to be opened, at dueAt or later
	dueAt int64                               // Mono
	ended map[wire.PartitionID]ended          // that were closed
}

// ended outlives a closed partition: its sinks may not have released their files yet, so
// the next writers wait for them.
type ended struct {
	sinks  map[string]chan struct{}
	broken uint64
}

const (
	// maxHeld bounds how many partitions a node holds.
	maxHeld = wire.MaxPartitions
	// openBurst bounds how many are opened per tick: orders of the others wait for it.
	openBurst = 4
)

var errTooMany = fmt.Errorf("this node holds %d partitions, the most there may be", maxHeld)

// wants reports whether this pod should hold a copy by a record: named by it, or, where it
// names none, of its shard.
func (ps *partitions) wants(s *arbiter.Spec) bool {
	if len(s.Pods) > 0 {
		return slices.Contains(s.Pods, ps.cfg.Pod)
	}
	return s.Shard == ps.cfg.Shard
}

// idOf is the partition that a record is of, false if it is none of the grid's.
func idOf(grid string, rec *arbiter.Record) (wire.PartitionID, bool) {
	s := &rec.Spec
	id, err := wire.MakePartitionID(s.Partition)
	return id, err == nil && s.Grid == grid && rec.Name == PartitionName(grid, s.Partition)
}

// begin opens the partitions of the first list of records, before the loop runs: their
// memory is present when the node begins to serve.
func (ps *partitions) begin(news *arbiter.News) error {
	var ids []wire.PartitionID
	for i := range news.Records {
		if id, ok := idOf(ps.cfg.Grid, &news.Records[i]); ok && ps.wants(&news.Records[i].Spec) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids[:min(len(ids), maxHeld)] {
		if err := ps.open(id, ps.cfg.Prefault/int64(len(ids))); err != nil {
			return err
		}
	}
	return nil
}

// take opens and closes partitions by the records, and passes each its record.
func (ps *partitions) take(news *arbiter.News) {
	h := &ps.held
	if news.All {
		h.heard = true
		clear(h.due)
	}
	said := map[*partition]bool{}
	for i := range news.Records {
		rec := &news.Records[i]
		id, ok := idOf(ps.cfg.Grid, rec)
		if !ok {
			continue
		}
		ps.clients.directory.observe(&rec.Spec)
		p, wanted := ps.at(id), ps.wants(&rec.Spec)
		if delete(h.due, id); wanted && (p == nil || p.leaving) {
			h.due[id] = *rec
		}
		if p != nil {
			said[p] = true
			p.record.shown(rec, wanted)
		}
	}
	if news.All || len(news.Gone) > 0 {
		ps.miss(news, said)
	}
	ps.leave()
	ps.openDue(ps.loop.Clock().Mono())
}

// miss handles the records that the watch no longer shows. A deletion is confirmed by a
// read of the arbiter: the watch may only have lost it.
func (ps *partitions) miss(news *arbiter.News, said map[*partition]bool) {
	maps.DeleteFunc(ps.held.due, func(_ wire.PartitionID, rec arbiter.Record) bool { return slices.Contains(news.Gone, rec.Name) })
	for _, p := range ps.list {
		if news.All && !said[p] || slices.Contains(news.Gone, p.record.name) {
			p.record.left = false
			p.record.read()
		}
	}
}

// shown adopts a record from the watch.
func (r *record) shown(rec *arbiter.Record, wanted bool) {
	r.left = !wanted && !slices.ContainsFunc(rec.InSync, func(m arbiter.Member) bool { return m.PodName == r.p.cfg.Pod })
	r.epoch = rec.Epoch
	r.observed(*rec, nil, false)
}

// openDue opens some of the due partitions. Failures are retried.
func (ps *partitions) openDue(now int64) {
	h := &ps.held
	if len(h.due) == 0 || ps.stopping || now < h.dueAt {
		return
	}
	opened := 0
	for _, id := range slices.Sorted(maps.Keys(h.due)) {
		if ps.at(id) != nil {
			continue // it leaves, and is due after that
		}
		if opened++; opened > openBurst {
			return
		}
		if err := ps.open(id, 0); err != nil {
			h.dueAt = now + int64(remakeRetry)
			ps.log.Error("cannot open a partition, retrying", "partition", id.String(), "reason", err)
			return
		}
		rec := h.due[id]
		delete(h.due, id)
		ps.at(id).record.shown(&rec, true)
	}
}

// open makes a partition with its first incarnation, with the given memory present before
// others need it. One held before has another boot id: knowledge of the former member does
// not apply to it.
func (ps *partitions) open(id wire.PartitionID, first int64) error {
	if len(ps.list) >= maxHeld {
		return errTooMany
	}
	p := &partition{process: ps.process, all: ps, peers: ps.peers, clients: ps.clients, id: id, sinkEnded: map[string]chan struct{}{}, first: first}
	p.record = record{p: p, name: PartitionName(ps.cfg.Grid, int(id))}
	p.changes.p = p
	boot := ps.boot
	if before, again := ps.held.ended[id]; again {
		p.sinkEnded, p.broken, boot = before.sinks, before.broken, newBootID()
	}
	at, _ := slices.BinarySearchFunc(ps.list, id, func(p *partition, id wire.PartitionID) int { return int(p.id) - int(id) })
	ps.list = slices.Insert(ps.list, at, p)
	ps.byID = append(ps.byID, make([]*partition, max(0, int(id)+1-len(ps.byID)))...)
	ps.byID[id] = p
	ps.share()
	if err := p.incarnate(boot); err != nil {
		ps.remove(p)
		p.giveUp()
		return err
	}
	ps.log.Info("partition opened", "partition", id.String(), "member", p.inc.self.ID, "partitions", len(ps.list))
	return nil
}

// leave closes partitions that this node should no longer hold. A replica that is not in
// sync, or has claimed nothing, leaves as at the end of the process: not while it may
// still be needed. One that is needed, by its own knowledge, stays whatever the record
// says.
func (ps *partitions) leave() {
	for i := 0; i < len(ps.list); i++ {
		if p := ps.list[i]; p.leaves() {
			ps.close(p)
			i--
		}
	}
}

// leaves reports whether the partition should be closed; it starts to leave when it may.
func (p *partition) leaves() bool {
	switch {
	case p.leaving && p.drained, p.record.left && p.ended:
		return true
	case !p.record.left || p.leaving || p.all.stopping:
	case p.counts():
	default:
		p.leaving = true
		p.step(&replica.Event{Kind: replica.EventDrain})
	}
	return false
}

// counts reports whether the replica may be in sync, or knows a later configuration than
// the record that does not name it.
func (p *partition) counts() bool {
	s := p.replica.Status()
	switch s.Role {
	case replica.RoleIdle, replica.RoleClaiming, replica.RoleLearner:
		return s.Config != nil && s.Config.Epoch > p.record.epoch
	}
	return true
}

// close releases a partition. Requests for it are redirected from now on.
func (ps *partitions) close(p *partition) {
	if p.dirty {
		p.flush() // what it was asked is answered
	}
	ps.remove(p)
	ps.log.Info("partition closed: its record names this pod no more", "partition", p.id.String(), "member", p.inc.self.ID, "partitions", len(ps.list))
	p.giveUp()
}

// remove takes a partition off the books.
func (ps *partitions) remove(p *partition) {
	p.closed = true
	ps.byID[p.id] = nil
	ps.list = slices.DeleteFunc(ps.list, func(o *partition) bool { return o == p })
	ps.dirty = slices.DeleteFunc(ps.dirty, func(o *partition) bool { return o == p })
	ps.live.drop(p.id)
	ps.share()
}

// giveUp ends the incarnation of a removed partition.
func (p *partition) giveUp() {
	if p.inc == nil {
		return
	}
	e := ended{sinks: p.sinkEnded, broken: p.broken}
	if p.inc.inspector != nil {
		e.broken += p.inc.inspector.Broken()
	}
	p.all.held.ended[p.id] = e
	p.wg.Go(func() { p.inc.close(p.all.views) }) // its readers may be in the middle of a write
}

// share divides the node's limits among the partitions.
func (ps *partitions) share() {
	limits := ps.limits()
	for _, p := range ps.list {
		p.limits = limits
	}
	ps.shareFeeds()
	for _, p := range ps.list {
		if p.replica != nil {
			p.replica.SetShare(p.limits)
		}
	}
	ps.ahead.Store(planMemory(ps.cfg.MemoryLimit, max(1, len(ps.list))).ahead)
}

// limits returns those of a replica, by the number of partitions, without its share of the
// feeds. The largest order always fits. Queues have a fixed size: the first sixteen
// partitions have the usual one, further ones a smaller one.
func (ps *partitions) limits() replica.Limits {
	n := max(1, len(ps.list))
	queue := 16384
	switch {
	case n > 64:
		queue = 1024
	case n > 16:
		queue = 4096
	}
	return replica.Limits{Window: sessionWindow, InFlight: queue, PendingReads: queue,
		InFlightBytes:    int(min(16<<20, max(wire.DefaultMaxPayload, ps.plan.inFlight/int64(n)))),
		PendingReadBytes: min(16<<20, clientHardOut/2/n)}
}
