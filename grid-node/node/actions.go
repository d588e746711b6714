package node

import (
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// carryOut executes the replica's actions, in order.
func (p *partition) carryOut() {
	for i := range p.out.Actions {
		a := &p.out.Actions[i]
		switch a.Kind {
		case replica.ActionReply:
			p.reply(a)
		case replica.ActionSend:
			if a.Bulk {
				p.peers.sendBulk(a.Address, p.out.Head(a), a.Tail)
			} else {
				p.peers.send(a.Address, p.out.Head(a), a.Tail)
			}
			if p.inc.journal != nil && offers(p.out.Head(a)) {
				p.peers.toAll(p.out.Head(a))
			}
		case replica.ActionJournalEntries, replica.ActionJournalConfig, replica.ActionJournalState:
			p.inc.journal.take(a)
		case replica.ActionCloseConn:
			if l := p.clients.byID[a.Conn]; l != nil && l.conn.Open() {
				_ = p.badFrame(l, wire.GoawayProtocol, a.Text)
			}
		case replica.ActionPropose:
			p.changes.proposing(a)
			p.record.propose(a.Config)
		case replica.ActionReadConfig:
			p.record.read()
		case replica.ActionCommitted:
			p.observeCommitted(a.Seq)
		case replica.ActionStatus:
			p.statusChanged()
		case replica.ActionAlarm:
			p.alarm(a.Alarm, a.Text)
		case replica.ActionRestart:
			p.statusChanged()
			p.ended = true
			p.discard(a.Text)
		case replica.ActionDrained:
			p.statusChanged()
			p.drained, p.ended = true, p.status.Role == replica.RoleStopped
		}
	}
	p.counters.Redirects += p.out.Redirects
	p.out.Reset()
}

// reply writes to a client, if it is still connected.
func (p *partition) reply(a *replica.Action) {
	l := p.clients.byID[a.Conn]
	if l == nil {
		return
	}
	before := l.conn.Out()
	out := append(append(before, p.out.Head(a)...), a.Tail...)
	if l.outside {
		out = p.clients.directory.outside.redirects(out, len(before))
	}
	l.conn.SetOut(out)
}

// statusChanged adopts and logs the replica's new view of its partition.
func (p *partition) statusChanged() {
	before := p.status
	p.status = p.replica.Status()
	p.tellSinks()
	p.tellFollowers()
	p.changes.changed(&before)
	var epoch uint64
	if p.status.Config != nil {
		epoch = p.status.Config.Epoch
	}
	var oldEpoch uint64
	if before.Config != nil {
		oldEpoch = before.Config.Epoch
	}
	if before.Role == p.status.Role && oldEpoch == epoch && before.Suspended == p.status.Suspended {
		return
	}
	args := []any{"partition", p.id.String(), "role", p.status.Role.String(), "epoch", epoch, "suspended", p.status.Suspended}
	if p.status.Config != nil {
		args = append(args, "configuration", p.status.Config.String())
	}
	p.log.Info("partition changed", args...)
	p.all.functions.leads(p, epoch)
}
