package node

import (
	"encoding/binary"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// change is one change of configuration as this node sees it. Times are Mono of
// the data loop; 0: did not happen.
type change struct {
	nodestatus.Change        // what does not age
	orderEpoch        uint64 // orders of earlier epochs are not the first one

	suspected, proposed, accepted, serving, firstOrder int64
}

// changeLog are the last changes of a partition. Configurations change seldom;
// what the path of an order pays is awaitsOrder, read once per batch of commits.
type changeLog struct {
	p           *partition
	kept        [nodestatus.KeptChanges]change // a ring
	n           int                            // changes ever
	awaitsOrder bool                           // the latest one that serves has not seen its first order
}

// add makes room for one more.
func (l *changeLog) add() *change {
	c := &l.kept[l.n%len(l.kept)]
	l.n++
	*c = change{}
	return c
}

// latest calls f for the changes kept, the latest first, until it returns false.
func (l *changeLog) latest(f func(*change) bool) {
	for i := l.n - 1; i >= 0 && i >= l.n-len(l.kept); i-- {
		if !f(&l.kept[i%len(l.kept)]) {
			return
		}
	}
}

func (l *changeLog) find(changeID string) (found *change) {
	l.latest(func(c *change) bool {
		if c.ChangeID == changeID {
			found = c
		}
		return found == nil
	})
	return found
}

// proposing notes that this node asks the arbiter for a change, or asks again.
func (l *changeLog) proposing(a *replica.Action) {
	now := l.p.loop.Clock().Mono()
	c := l.find(a.Config.ChangeID)
	if c == nil {
		c = l.newChange(a.Config)
		c.Cause, c.Outcome, c.Proposed = a.Text, nodestatus.OutcomeProposed, true
		c.Role = l.p.replica.Status().Role.String()
		c.Reset, c.SilentNs = a.Loss.Reset, a.Loss.Silent
		c.proposed = now
		l.suspects(c, a.Config)
	}
	c.Attempts++
}

func (l *changeLog) newChange(to *replica.Config) *change {
	c := l.add()
	c.Record, c.Partition, c.Member = l.p.record.name, l.p.id.String(), l.p.inc.self.ID
	c.ChangeID, c.Epoch, c.Lineage, c.Primary = to.ChangeID, to.Epoch, to.Lineage, to.Primary.ID
	c.InSync = memberIDs(to.InSync)
	return c
}

func memberIDs(members []replica.Member) []string {
	ids := make([]string, len(members))
	for i := range members {
		ids[i] = members[i].ID
	}
	return ids
}

// suspects notes the lost members, and since when that was visible.
func (l *changeLog) suspects(c *change, to *replica.Config) {
	from := l.p.replica.Status().Config
	if c.Cause != nodestatus.CauseTakeOver && c.Cause != nodestatus.CauseShrink || from == nil {
		return
	}
	c.suspected = c.proposed
	for i := range from.InSync {
		m := &from.InSync[i]
		if to.Has(m.Boot) || c.Cause == nodestatus.CauseTakeOver && m.Boot != from.Primary.Boot {
			continue
		}
		c.Lost = append(c.Lost, m.ID)
		if peer := l.p.peers.byAddr[m.Address]; peer != nil && peer.lostAt != 0 {
			c.suspected = min(c.suspected, peer.lostAt)
		}
	}
}

// changed notes the new configuration, and whether this node serves.
func (l *changeLog) changed(before *replica.Status) {
	to := l.p.status.Config
	if to == nil || to.Epoch == 0 {
		return
	}
	now := l.p.loop.Clock().Mono()
	c := l.find(to.ChangeID)
	if c == nil || c.accepted == 0 {
		if c == nil && !l.tookPart(before.Config, to) {
			return
		}
		if c == nil {
			c = l.newChange(to)
			c.Cause = causeOf(before.Config, to)
		}
		l.accept(c, before, now)
	}
	if c.Epoch == to.Epoch && c.serving == 0 && l.p.status.Role == replica.RolePrimary && !l.p.status.Suspended {
		c.serving = now
		if l.awaitsOrder = true; c.orderEpoch == 0 && l.p.orderAt == now {
			c.firstOrder, l.awaitsOrder = now, false // it was waiting for this change
		}
	}
}

// accept notes that c is the configuration now.
func (l *changeLog) accept(c *change, before *replica.Status, now int64) {
	c.Outcome, c.accepted, c.Role = nodestatus.OutcomeAccepted, now, l.p.status.Role.String()
	l.awaitsOrder = false
	if before.Config == nil || before.Config.Primary.Boot != l.p.inc.self.Boot {
		c.orderEpoch = c.Epoch // orders of the primary before are committed, not acknowledged here
	}
	l.latest(func(o *change) bool {
		if o.Outcome == nodestatus.OutcomeProposed && o.Epoch <= c.Epoch {
			o.Outcome = nodestatus.OutcomeOvertaken
		}
		return true
	})
}

// tookPart reports whether this node's incarnation was a member before or is one now.
func (l *changeLog) tookPart(from, to *replica.Config) bool {
	boot := l.p.inc.self.Boot
	return to.Has(boot) || from != nil && from.Has(boot)
}

// causeOf derives the cause of a change from two configurations. A retired member looks
// like a dropped one: its proposer knows better.
func causeOf(from, to *replica.Config) string {
	switch {
	case to.Epoch == 1:
		return nodestatus.CauseClaim
	case from == nil || to.Epoch != from.Epoch+1:
		return nodestatus.CauseUnknown
	case to.Lineage != from.Lineage:
		return nodestatus.CauseAcceptLoss
	case to.Primary.Boot != from.Primary.Boot && to.Has(from.Primary.Boot):
		return nodestatus.CauseHandOver
	case to.Primary.Boot != from.Primary.Boot:
		return nodestatus.CauseTakeOver
	case len(to.InSync) < len(from.InSync):
		return nodestatus.CauseShrink
	case len(to.InSync) > len(from.InSync):
		return nodestatus.CauseAdmit
	}
	return nodestatus.CauseUnknown
}

// firstOrder looks for an order among entries just committed that the latest
// change let through.
func (l *changeLog) firstOrder(from, to uint64) {
	l.latest(func(c *change) bool {
		if c.serving == 0 {
			return true // proposed since
		}
		base, _ := l.p.store.Base() // entries of a snapshot, or missing ones, are not held
		for seq := max(from, base+1); seq <= to && c.firstOrder == 0; seq++ {
			e := l.p.store.Get(seq)
			if e != nil && order.Kind(e[4]).IsOrder() && uint64(binary.LittleEndian.Uint32(e[24:])) >= c.orderEpoch {
				c.firstOrder = l.p.loop.Clock().Mono()
				l.awaitsOrder = false
			}
		}
		return false
	})
}

// takeovers are the changes of all partitions, the latest of each first.
func (ps *partitions) takeovers() nodestatus.Takeovers {
	t := nodestatus.Takeovers{Pod: ps.cfg.Pod, BootID: wire.FormatBootID(ps.boot), Changes: []nodestatus.Change{}}
	now := ps.loop.Clock().Exact()
	age := func(at int64) int64 {
		if at == 0 {
			return 0
		}
		return max(1, now-at)
	}
	each := nodestatus.MaxChanges / max(1, len(ps.list))
	for _, p := range ps.list {
		end := len(t.Changes) + each
		p.changes.latest(func(c *change) bool {
			o := c.Change
			o.InSync, o.Lost = slices.Clone(c.InSync), slices.Clone(c.Lost) // the ring continues while this is written
			o.SuspectedAgoNs, o.ProposedAgoNs, o.AcceptedAgoNs = age(c.suspected), age(c.proposed), age(c.accepted)
			o.ServingAgoNs, o.FirstOrderAgoNs = age(c.serving), age(c.firstOrder)
			t.Changes = append(t.Changes, o)
			return len(t.Changes) < end
		})
	}
	return t
}
