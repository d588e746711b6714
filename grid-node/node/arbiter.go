package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// arbiterTimeout bounds one call. A compare-and-swap that takes longer counts as
// unknown, and the replica asks again.
const arbiterTimeout = 2 * time.Second

// propose carries a configuration to the arbiter, off the loop.
func (n *Node) propose(p *partition, c *replica.Config) {
	n.counters.Proposals++
	n.log.Info("proposing a configuration", "partition", p.id.String(), "changeID", c.ChangeID, "configuration", c.String())
	rec := recordOf(p.name, c)
	n.wg.Go(func() {
		ctx, cancel := context.WithTimeout(n.ctx, arbiterTimeout)
		defer cancel()
		now, err := n.cfg.Arbiter.CompareAndSwap(ctx, rec)
		n.api.heard(outcomeOf(err) != replica.OutcomeUnknown)
		ev := &replica.Event{Kind: replica.EventCASResult, ChangeID: c.ChangeID, Outcome: outcomeOf(err)}
		if err != nil {
			ev.Text = err.Error()
		}
		if now.Version != "" {
			if ev.Config, err = configOf(now); err != nil {
				ev.Config, ev.Text = nil, err.Error()
			}
		}
		n.loop.Post(func() {
			if ev.Outcome != replica.OutcomeOK {
				n.log.Warn("proposal not confirmed", "partition", p.id.String(), "changeID", c.ChangeID, "reason", ev.Text)
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

// readConfig reads the record from the arbiter itself. On failure nothing is
// said: the replica asks again in its own time.
func (n *Node) readConfig(p *partition) {
	if p.reading {
		return
	}
	p.reading = true
	n.wg.Go(func() {
		ctx, cancel := context.WithTimeout(n.ctx, arbiterTimeout)
		defer cancel()
		rec, err := n.cfg.Arbiter.Get(ctx, p.name)
		n.api.heard(answered(err))
		n.loop.Post(func() {
			p.reading = false
			n.observed(p, rec, err, true)
		})
	})
}

// watch tells the loop what happens to the records of the grid until the node ends.
func (n *Node) watch() {
	_ = n.cfg.Arbiter.Watch(n.ctx, n.cfg.Grid, func(news arbiter.News, err error) {
		n.api.heard(answered(err))
		n.loop.Post(func() { n.hear(news, err) })
	})
}

// hear takes over what the watch says. That a record is gone is asked of the arbiter
// itself: a watch may only have lost sight of it.
func (n *Node) hear(news arbiter.News, err error) {
	if err != nil {
		n.noWord("the records of the grid", err)
		return
	}
	said := map[*partition]bool{}
	for _, rec := range news.Records {
		if p := n.holds(&rec); p != nil {
			said[p] = true
			n.observed(p, rec, nil, false)
		}
	}
	for _, p := range n.parts {
		if news.All && !said[p] || slices.Contains(news.Gone, p.name) {
			n.readConfig(p)
		}
	}
}

// holds is the partition that a record is of, nil if this node does not hold it.
func (n *Node) holds(rec *arbiter.Record) *partition {
	if s := &rec.Spec; s.Grid == n.cfg.Grid && s.Shard == n.cfg.Shard && s.Index >= 0 && s.Index < len(n.parts) && n.parts[s.Index].name == rec.Name {
		return n.parts[s.Index]
	}
	return nil
}

func (n *Node) noWord(of string, err error) {
	n.counters.ArbiterErrors++
	n.alarms.limited(n.loop.Clock().Mono(), of+"/arbiter", func() {
		n.log.Warn("no word from the arbiter; the data path does not need it while the members are well", "of", of, "reason", err)
	})
}

func (n *Node) observed(p *partition, rec arbiter.Record, err error, fresh bool) {
	var c *replica.Config
	if err == nil {
		c, err = configOf(rec)
	}
	n.recordSeen(p, err)
	if err != nil {
		n.noWord(p.name, err)
		return
	}
	n.observeLayout(p, &rec.Spec)
	n.observeExternal(&rec.Spec)
	n.observeUnproved(p, &rec.Spec)
	p.step(&replica.Event{Kind: replica.EventConfig, Config: c, Fresh: fresh})
	switch closed := p.replica.Status().Closed; {
	case !closed:
		p.closedAt = 0
	case p.closedAt == 0:
		p.closedAt = n.loop.Clock().Mono()
	}
}

func recordOf(name string, c *replica.Config) arbiter.Record {
	rec := arbiter.Record{Name: name, Version: c.Version, Epoch: c.Epoch, Lineage: c.Lineage, ChangeID: c.ChangeID,
		Primary: arbiterMember(c.Primary), Observed: time.Now()}
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
		Replicas: rec.Spec.Replicas, MinInSync: rec.Spec.MinInSync, MaxInSync: rec.Spec.MaxInSync, PreferredPod: rec.Spec.PreferredPod, FirstSeq: rec.Spec.FirstSeq,
		AcceptLossEpoch: rec.Spec.AcceptDataLossEpoch, ReassertChangeID: rec.Spec.ReassertChangeID,
		Admission: admissionOf(&rec.Spec), AdmissionRevision: rec.Spec.Layout.Revision}
	if rec.Lineage > math.MaxUint32 {
		return nil, errors.New("record: lineage is over 4294967295")
	}
	if rec.Spec.FirstSeq > arbiter.MaxFirstSeq {
		return nil, fmt.Errorf("record: firstSeq is %d, allowed: up to %d", rec.Spec.FirstSeq, uint64(arbiter.MaxFirstSeq))
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
