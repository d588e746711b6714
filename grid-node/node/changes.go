package node

import (
	"encoding/binary"
	"net/http"
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
func (p *partition) proposing(a *replica.Action) {
	now := p.n.loop.Clock().Mono()
	c := p.changes.find(a.Config.ChangeID)
	if c == nil {
		c = p.newChange(a.Config)
		c.Cause, c.Outcome, c.Proposed = a.Text, nodestatus.OutcomeProposed, true
		c.Role = p.replica.Status().Role.String()
		c.Reset, c.SilentNs = a.Loss.Reset, a.Loss.Silent
		c.proposed = now
		p.suspects(c, a.Config)
	}
	c.Attempts++
}

func (p *partition) newChange(to *replica.Config) *change {
	c := p.changes.add()
	c.Record, c.Partition, c.Member = p.name, p.id.String(), p.inc.self.ID
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

// suspects notes who is lost, and since when that was to be seen.
func (p *partition) suspects(c *change, to *replica.Config) {
	from := p.replica.Status().Config
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
		if peer := p.n.peers[m.Address]; peer != nil && peer.lostAt != 0 {
			c.suspected = min(c.suspected, peer.lostAt)
		}
	}
}

// changed notes what became of the configuration, and whether this node serves.
func (p *partition) changed(before *replica.Status) {
	to := p.status.Config
	if to == nil || to.Epoch == 0 {
		return
	}
	now := p.n.loop.Clock().Mono()
	c := p.changes.find(to.ChangeID)
	if c == nil || c.accepted == 0 {
		if c == nil && !p.tookPart(before.Config, to) {
			return
		}
		if c == nil {
			c = p.newChange(to)
			c.Cause = causeOf(before.Config, to)
		}
		p.accept(c, before, now)
	}
	if c.Epoch == to.Epoch && c.serving == 0 && p.status.Role == replica.RolePrimary && !p.status.Suspended {
		c.serving = now
		if p.changes.awaitsOrder = true; c.orderEpoch == 0 && p.orderAt == now {
			c.firstOrder, p.changes.awaitsOrder = now, false // it was waiting for this change
		}
	}
}

// accept notes that c is the configuration now.
func (p *partition) accept(c *change, before *replica.Status, now int64) {
	c.Outcome, c.accepted, c.Role = nodestatus.OutcomeAccepted, now, p.status.Role.String()
	p.changes.awaitsOrder = false
	if before.Config == nil || before.Config.Primary.Boot != p.inc.self.Boot {
		c.orderEpoch = c.Epoch // orders of the primary before are committed, not acknowledged here
	}
	p.changes.latest(func(o *change) bool {
		if o.Outcome == nodestatus.OutcomeProposed && o.Epoch <= c.Epoch {
			o.Outcome = nodestatus.OutcomeOvertaken
		}
		return true
	})
}

// tookPart says whether this node's incarnation was a member before or is one now.
func (p *partition) tookPart(from, to *replica.Config) bool {
	boot := p.inc.self.Boot
	return to.Has(boot) || from != nil && from.Has(boot)
}

// causeOf tells from two configurations what the change was for. A member that
// was retired looks like one that was dropped: its proposer knows better.
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
func (p *partition) firstOrder(from, to uint64) {
	p.changes.latest(func(c *change) bool {
		if c.serving == 0 {
			return true // proposed since
		}
		base, _ := p.store.Base() // what was taken in with a snapshot, or never was, is not held
		for seq := max(from, base+1); seq <= to && c.firstOrder == 0; seq++ {
			e := p.store.Get(seq)
			if e != nil && order.Kind(e[4]) == order.KindOrder && uint64(binary.LittleEndian.Uint32(e[24:])) >= c.orderEpoch {
				c.firstOrder = p.n.loop.Clock().Mono()
				p.changes.awaitsOrder = false
			}
		}
		return false
	})
}

// serveTakeovers answers with the changes of all partitions.
func (n *Node) serveTakeovers(w http.ResponseWriter, _ *http.Request) {
	t := nodestatus.Takeovers{Pod: n.cfg.Pod, BootID: wire.FormatBootID(n.boot), Changes: []nodestatus.Change{}}
	var changes []nodestatus.Change
	if err := n.onLoop(func() { changes = n.changes() }); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	t.Changes = append(t.Changes, changes...)
	writePage(w, t)
}

func (n *Node) changes() (out []nodestatus.Change) {
	now := n.loop.Clock().Exact()
	age := func(at int64) int64 {
		if at == 0 {
			return 0
		}
		return max(1, now-at)
	}
	for _, p := range n.parts {
		p.changes.latest(func(c *change) bool {
			o := c.Change
			o.InSync, o.Lost = slices.Clone(c.InSync), slices.Clone(c.Lost) // the ring goes on while this is written
			o.SuspectedAgoNs, o.ProposedAgoNs, o.AcceptedAgoNs = age(c.suspected), age(c.proposed), age(c.accepted)
			o.ServingAgoNs, o.FirstOrderAgoNs = age(c.serving), age(c.firstOrder)
			out = append(out, o)
			return true
		})
	}
	return out
}
