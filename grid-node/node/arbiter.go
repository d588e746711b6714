package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// arbiterTimeout bounds one call. A compare-and-swap that takes longer counts as unknown,
// and the replica retries.
const arbiterTimeout = 2 * time.Second

// record is the arbiter's record of a partition, as this node last saw it. Of the data loop.
type record struct {
	p       *partition
	name    string
	reading bool // a read of it is in progress
	gone    bool // as of the arbiter's last answer

	copies int    // wanted
	rate   int64  // bytes a second that learners of the partition may be sent, together; 0: no bound of its own
	left   bool   // by the watch: it names this pod neither for a copy nor as in sync
	epoch  uint64 // of it as the watch showed it last
}

// propose carries a configuration to the arbiter, off the loop.
func (r *record) propose(c *replica.Config) {
	p := r.p
	p.counters.Proposals++
	p.log.Info("proposing a configuration", "partition", p.id.String(), "changeID", c.ChangeID, "configuration", c.String())
	rec := recordOf(r.name, c)
	p.wg.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, arbiterTimeout)
		defer cancel()
		now, err := p.cfg.Arbiter.CompareAndSwap(ctx, rec)
		p.all.arbiter.heard(outcomeOf(err) != replica.OutcomeUnknown)
		ev := &replica.Event{Kind: replica.EventCASResult, ChangeID: c.ChangeID, Outcome: outcomeOf(err)}
		if err != nil {
			ev.Text = err.Error()
		}
		if now.Version != "" {
			if ev.Config, err = configOf(now); err != nil {
				ev.Config, ev.Text = nil, err.Error()
			}
		}
		p.loop.Post(func() {
			if ev.Outcome != replica.OutcomeOK {
				p.log.Warn("proposal not confirmed", "partition", p.id.String(), "changeID", c.ChangeID, "reason", ev.Text)
			}
			p.step(ev)
		})
	})
}

func outcomeOf(err error) replica.Outcome {
	switch {
	case err == nil:
		return replica.OutcomeOK
	case errors.Is(err, arbiter.ErrConflict):
		return replica.OutcomeConflict
	case errors.Is(err, arbiter.ErrRefused), errors.Is(err, arbiter.ErrNotFound):
		return replica.OutcomeRefused
	}
	return replica.OutcomeUnknown
}

// read reads the record from the arbiter itself. On failure there is no event: the replica
// retries in its own time.
func (r *record) read() {
	if r.reading {
		return
	}
	r.reading = true
	p := r.p
	p.wg.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, arbiterTimeout)
		defer cancel()
		rec, err := p.cfg.Arbiter.Get(ctx, r.name)
		p.all.arbiter.heard(answered(err))
		p.loop.Post(func() {
			r.reading = false
			r.observed(rec, err, true)
		})
	})
}

// firstWord is how long the node waits for the records before it serves. Without them it
// holds nothing, and reports that.
const firstWord = 2 * time.Second

// watch follows the records of the grid until the node ends. It returns when the
// partitions of the first list are open and the loop, which does not run yet, knows them.
func (ps *partitions) watch(ctx context.Context) error {
	first, begun := make(chan arbiter.News), make(chan struct{})
	ps.wg.Go(func() {
		_ = ps.cfg.Arbiter.Watch(ps.ctx, ps.cfg.Grid, func(news arbiter.News, err error) {
			ps.arbiter.heard(answered(err))
			if err == nil {
				select {
				case first <- news:
					<-begun // later events come after it
					return
				case <-begun:
				case <-ps.ctx.Done():
				}
			}
			ps.loop.Post(func() { ps.hear(news, err) })
		})
	})
	defer close(begun)
	select {
	case news := <-first:
		ps.loop.Post(func() { ps.hear(news, nil) })
		return ps.begin(&news)
	case <-time.After(firstWord):
		ps.log.Warn("the records of the grid have not been read; the node serves without them", "waited", firstWord.String())
	case <-ctx.Done():
	}
	return nil
}

// hear handles a watch event. A deletion is confirmed by a read of the arbiter: a watch
// may only have lost the record.
func (ps *partitions) hear(news arbiter.News, err error) {
	if err != nil {
		ps.noWord("the records of the grid", err)
		return
	}
	ps.clients.directory.gridMap.hear(ps.cfg.Grid, &news)
	ps.take(&news)
}

func (ps *partitions) noWord(of string, err error) {
	ps.counters.ArbiterErrors++
	ps.limited(of+"/arbiter", func() {
		ps.log.Warn("no answer from the arbiter; the data path does not need it while the members are healthy", "of", of, "reason", err)
	})
}

func (r *record) observed(rec arbiter.Record, err error, fresh bool) {
	p := r.p
	if p.closed {
		return
	}
	var c *replica.Config
	if err == nil {
		c, err = configOf(rec)
	}
	r.seen(err)
	if err != nil {
		p.all.noWord(r.name, err)
		return
	}
	if rec.Spec.Replicas != 0 { // else it is not the arbiter's own answer
		r.copies = rec.Spec.Replicas
		if r.rate != rec.Spec.LearnerRate {
			r.rate = rec.Spec.LearnerRate
			p.all.share()
		}
	}
	p.step(&replica.Event{Kind: replica.EventConfig, Config: c, Fresh: fresh})
	p.load()
}

// seen handles every answer of the arbiter. Without a record no take-over is ever
// possible: the grid is being deleted. The deletion may be seen before the signal, and not
// after it, when the right to read it is gone too; an inconclusive answer changes nothing.
func (r *record) seen(err error) {
	if err == nil || errors.Is(err, arbiter.ErrNotFound) {
		r.gone = err != nil
	}
	if r.gone && r.p.all.stopping {
		r.p.stop("its record is gone: the grid is being deleted")
	}
}

func recordOf(name string, c *replica.Config) arbiter.Record {
	rec := arbiter.Record{Name: name, Version: c.Version, Epoch: c.Epoch, Lineage: c.Lineage, ChangeID: c.ChangeID,
		Primary: arbiterMember(c.Primary), Observed: time.Now(), Standby: c.Standby, Term: c.Term}
	for _, m := range c.InSync {
		rec.InSync = append(rec.InSync, arbiterMember(m))
	}
	return rec
}

func arbiterMember(m replica.Member) arbiter.Member {
	pod, boot, _ := strings.Cut(m.ID, "/")
	return arbiter.Member{ID: m.ID, PodName: pod, BootID: boot, Address: m.Address}
}

// configOf checks what came from outside: member ids have to be member ids.
func configOf(rec arbiter.Record) (*replica.Config, error) {
	c := &replica.Config{Version: rec.Version, Epoch: rec.Epoch, Copied: rec.Copied, Lineage: rec.Lineage, ChangeID: rec.ChangeID,
		Replicas: rec.Spec.Replicas, MinInSync: rec.Spec.MinInSync, MaxInSync: rec.Spec.MaxInSync, Pods: rec.Spec.Pods, PreferredPod: rec.Spec.PreferredPod,
		AcceptLossEpoch: rec.Spec.AcceptDataLossEpoch, ReassertChangeID: rec.Spec.ReassertChangeID}
	if err := siteOf(rec, c); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if rec.Lineage > math.MaxUint32 {
		return nil, errors.New("record: lineage is over 4294967295")
	}
	if err := rec.Spec.CheckLearnerRate(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if from := rec.Spec.Restore; from != nil {
		if err := from.Check(); err != nil {
			return nil, fmt.Errorf("record: %w", err)
		}
		c.Restore = &replica.Restore{Seq: from.Seq, Hash: from.HashValue(), Epoch: from.Epoch, Lineage: from.Lineage}
	}
	if rec.Epoch == 0 {
		return c, nil
	}
	var err error
	if c.Primary, err = replica.NewMember(rec.Primary.ID, rec.Primary.Address); err != nil {
		return nil, err
	}
	for _, m := range rec.InSync {
		rm, err := replica.NewMember(m.ID, m.Address)
		if err != nil {
			return nil, err
		}
		c.InSync = append(c.InSync, rm)
	}
	return c, nil
}
