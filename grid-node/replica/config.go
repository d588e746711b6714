package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// eventConfig handles a configuration from the arbiter. An answer that was in flight
// during a watch event may be the older of the two: the epoch shows that, the spec does
// not, so the spec is ignored then and requested again.
func (r *Replica) eventConfig(c *Config, fresh bool) {
	r.named = r.named || c != nil && len(c.Pods) > 0
	if !fresh {
		r.watchAt = r.now.Mono
	} else if r.reading = false; c != nil && r.watchAt > r.readFrom {
		bare := *c
		bare.Replicas, bare.MinInSync, bare.MaxInSync, bare.Pods, bare.PreferredPod = 0, 0, 0, nil, ""
		c = &bare
		r.askConfig()
	}
	r.observe(c, fresh)
}

// observe handles a configuration from any source: the watch (which may lag), a read from
// the arbiter, the answer to a proposal, the primary. A higher epoch is adopted, whichever
// process proposed it: the arbiter has accepted it.
func (r *Replica) observe(c *Config, fresh bool) {
	if c == nil {
		return
	}
	if err := c.check(); err != nil {
		r.alarm(AlarmBadConfig, err.Error())
		return
	}
	if r.outlived(c) {
		r.giveWay(c)
		return
	}
	if r.outdated(c) {
		return
	}
	if r.told.known != nil && r.observeTold(c, fresh) {
		return
	}
	goBack := mutant(mutStaleConfig) && c.Epoch > 0 && c.Epoch < r.epoch
	if r.cfg != nil && c.Epoch <= r.epoch && !goBack {
		r.observeKnown(c, fresh)
		return
	}
	r.observeSpec(c)
	if !r.postpone(c) {
		r.untold(c)
		r.adopt(c)
	}
}

// observeKnown handles an epoch that is not new. A lower one, or the same one with another
// change id, read from the arbiter itself, means that the arbiter lost its state (etcd
// restored from a backup): rejected.
func (r *Replica) observeKnown(c *Config, fresh bool) {
	if c.Epoch < r.epoch || c.ChangeID != r.cfg.ChangeID {
		r.observeOlder(c, fresh)
		return
	}
	r.observeSpec(c)
	if !fresh {
		return
	}
	if r.freshAt, r.older = r.now.Mono, false; r.heir.active && r.epoch > 0 && !r.cfg.Has(r.self.Boot) {
		r.refuseHeir(c)
		return
	}
	r.backup.ackDue = r.backup.ackDue || r.backup.arbiterAsked && r.role == RoleBackup
	r.confirmUseless()
	if c.Version != r.cfg.Version {
		same := *r.cfg
		same.Version = c.Version
		r.cfg = &same
		r.retryNow()
	}
	r.considerHandOver()
}

func (r *Replica) observeOlder(c *Config, fresh bool) {
	r.observeDecisions(c)
	r.older = !fresh || r.doubted != r.epoch // until two reads of the arbiter have shown it
	if !fresh {
		if r.reassert != "" && r.reassert == r.cfg.ChangeID {
			r.readConfig() // a watch may lag; only a read of the arbiter counts
		}
		return
	}
	if r.prop.purpose != purposeReassert {
		if r.doubted != r.epoch && !mutant(mutDoubtIgnored) { // a read that began before this epoch was known is inconclusive: retry
			r.doubted = r.epoch
			r.askConfig()
			return
		}
		if r.told.known != nil && !mutant(mutUntrueKept) {
			r.unfollow(r.told.known)
			r.older, r.doubted = true, r.epoch
		}
		r.count.ConfigRegressed++
		r.alarm(AlarmRegressed, fmt.Sprintf("the arbiter shows epoch %d change %q; this replica has seen epoch %d change %q and keeps to it", c.Epoch, c.ChangeID, r.epoch, r.cfg.ChangeID))
	}
	r.regressed = c
	r.reassertConfig()
}

// observeSpec adopts the spec of the record.
func (r *Replica) observeSpec(c *Config) {
	if c.Epoch == 0 {
		r.copied, r.wantStandby = c.Copied, c.WantStandby
	}
	if c.Restore != nil { // it never changes, so a record without it is an older one
		r.restore = c.Restore
	}
	if c.Replicas > 0 && c.Replicas <= wire.MaxCopies {
		r.opt.Replicas = c.Replicas
		r.opt.MaxInSync = min(max(c.MaxInSync, c.Replicas), wire.MaxCopies)
		r.observePods(c)
	}
	if c.Source != "" {
		r.source = c.Source
	}
	if c.MinInSync > 0 && c.MinInSync <= wire.MaxCopies {
		r.opt.MinInSync = c.MinInSync
	}
	if c.PreferredPod != "" {
		r.preferredPod = c.PreferredPod
		if r.opt.Preferred = c.PreferredPod == r.self.Pod(); r.opt.Preferred {
			r.claimAt = min(r.claimAt, r.now.Mono)
		}
	}
	r.observeDecisions(c)
}

// observeDecisions adopts the decisions of an administrator.
func (r *Replica) observeDecisions(c *Config) {
	if c.Replicas > 0 { // from the arbiter, so an empty decision counts, too
		r.acceptLoss, r.reassert, r.promotion, r.demotion = c.AcceptLossEpoch, c.ReassertChangeID, c.Promotion, c.Demotion
	}
}

// adopt makes c, which the arbiter has confirmed, the configuration of this replica.
func (r *Replica) adopt(c *Config) { r.adoptAs(c, true) }

func (r *Replica) adoptAs(c *Config, confirmed bool) {
	before := r.role
	planned := before == RolePrimary && r.primary.hand.to != 0 && r.primary.hand.to == c.Primary.Boot
	if before == RolePrimary && c.Primary.Boot != r.self.Boot && c.Has(r.self.Boot) && r.handOverCut() && !mutant(mutHandOverUndrained) {
		r.alarm(AlarmHandOverCut, "handed over with entries that are not committed; the new primary may lack them: "+c.String())
	}
	own := ""
	if r.prop.active() {
		own = r.prop.next.ChangeID
	}
	r.cfg, r.epoch = c, c.Epoch
	r.prop, r.regressed, r.older, r.doubted, r.told = proposal{}, nil, false, 0, told{}
	r.primary.hand, r.backup.held = handOver{}, nil
	if confirmed {
		r.journalConfig()
	}
	r.count.ConfigChanges++
	switch {
	case c.Epoch == 0 && r.resumed:
		r.restart("the journal has a log, and the record was never claimed: it is of another grid")
	case c.Epoch == 0:
		r.role = RoleClaiming
		r.claimAt = r.now.Mono
		if !r.opt.Preferred {
			r.claimAt += int64(r.opt.Timing.ClaimDelay)
		}
		r.claim()
	case r.heir.active && !c.Has(r.self.Boot):
		r.refuseHeir(c)
	case r.inherits(c, own) && !mutant(mutHeirContinues):
		r.staysHeir()
	case c.Primary.Boot == r.self.Boot, mutant(mutPromoteByPod) && c.Primary.Pod() == r.self.Pod():
		r.becomePrimary(before)
	case c.Has(r.self.Boot):
		r.becomeBackup(before, planned)
	default:
		r.becomeOutsider(before)
	}
	if r.role == RolePrimary || r.role == RoleBackup {
		r.heir.active = false
	}
}

// becomePrimary begins an epoch as its primary. After a change made by this primary, its
// state of the others stays valid: no member truncates its log, and one that had taken
// over would have won the compare-and-swap.
func (r *Replica) becomePrimary(before Role) {
	p := &r.primary
	if before != RolePrimary {
		r.failPending() // of a hand-over that came back at once
		r.role = RolePrimary
		p.peers, p.agreed = p.peers[:0], 0
		p.pend.clear()
		r.seats.forget()
		r.fix.forget()
		r.regions.specsFor = 0
		if mutant(mutDedupeForgotten) {
			r.live.Sessions.ForgetReplies()
		}
		p.floor, _ = r.store.Last()
	}
	p.suspended = false
	r.setPeers()
	if r.makesEntries() || mutant(mutStandbyNoop) {
		r.endLink()
		r.beginEpoch()
	}
	r.advance()
	r.confirmReads()
}

// beginEpoch appends the entry with which an epoch begins.
func (r *Replica) beginEpoch() {
	var payload [16]byte
	le.PutUint64(payload[:], r.cfg.Lineage)
	le.PutUint64(payload[8:], r.self.Boot)
	if !r.windowFull() {
		// A full store has no room for the noop; every entry has the epoch, too.
		_ = r.append(&order.Entry{Kind: order.KindNoop}, payload[:], 0, pending{})
	}
}

// setPeers updates the list of peers to the configuration: members that left are notified
// and removed, learners stay.
func (r *Replica) setPeers() {
	p := &r.primary
	kept := p.peers[:0]
	for _, old := range p.peers {
		inSync := r.cfg.Has(old.Boot)
		switch {
		case inSync && old.stage != stageInSync:
			old.inSyncAt = r.now.Mono
			r.become(&old, stageInSync)
		case old.stage == stageCounted:
			r.become(&old, stageCatchingUp)
		}
		if inSync || old.learner() {
			old.knowsEpoch = false
			if !mutant(mutDataLeaseKept) {
				old.echoNs = 0
			} // a member does not wait for a lease it has not seen in this epoch
			old.tellConfig = true
			kept = append(kept, old)
		} else {
			r.sendConfig(&old) // it may be alive: retired, or wrongly suspected
		}
	}
	clear(p.peers[len(kept):])
	p.peers = kept
	for i := range r.cfg.InSync {
		m := r.cfg.InSync[i]
		if m.Boot == r.self.Boot || r.peer(m.Boot) != nil {
			continue
		}
		p.peers = append(p.peers, peer{Member: m, stage: stageInSync, tellConfig: true, heardAt: r.now.Mono, progressAt: r.now.Mono, inSyncAt: r.now.Mono})
	}
}

// becomeBackup follows another primary; planned reports that this replica handed over to
// it.
func (r *Replica) becomeBackup(before Role, planned bool) {
	r.role = RoleBackup
	r.followPrimary()
	switch {
	case planned:
		r.handedOver()
	case before == RolePrimary:
		r.failPending()
	}
	r.backup.ackDue = true // confirms the epoch to the primary
}

func (r *Replica) followPrimary() {
	boot := r.cfg.Primary.Boot
	// The primary may still be in the previous epoch, with its lease, when the answer to
	// its own proposal was lost: keep what it answers.
	r.backup = backupState{heardAt: r.now.Mono, primary: boot, leased: r.backup.leased && r.backup.primary == boot && !mutant(mutLeasedForgotten)}
}

// becomeOutsider handles a configuration without this replica: a learner joins the new
// primary, a dropped member discards itself.
func (r *Replica) becomeOutsider(before Role) {
	switch before {
	case RolePrimary, RoleBackup, RoleFenced:
		r.role = RoleFenced
		r.failPending()
		if r.leaving { // retired
			r.role, r.drained = RoleStopped, true
			r.out.add(Action{Kind: ActionStatus})
			r.out.add(Action{Kind: ActionDrained})
			return
		}
		if r.letGo() {
			r.alarm(AlarmRetired, "the partition has its copies without this one: "+r.cfg.String())
		} else {
			r.alarm(AlarmRemoved, "not in sync any more: "+r.cfg.String())
		}
		r.restart(removedReason + " at epoch " + fmt.Sprint(r.epoch))
	default:
		r.role = RoleLearner
		r.followPrimary()
		r.backup.joinAt = r.now.Mono
		r.tickLearner()
	}
}

// newConfig handles a peer's announcement of a configuration that the arbiter accepted:
// see told.go.
func (r *Replica) newConfig(frame []byte) error {
	var m wire.NewConfig
	if err := wire.DecodeNewConfig(frame, &m); err != nil {
		return err
	}
	if m.To != r.self.Boot || m.Epoch < r.epoch {
		r.count.StaleFrames++
		return nil
	}
	if r.epoch == 0 {
		r.count.StaleFrames++
		r.readConfig()
		return nil
	}
	if m.Epoch == r.epoch {
		// A repetition: the acknowledgement was lost. A learner that is not accepted, as
		// far as it knows, does not answer: an answer confirms that it knows.
		r.backup.ackDue = r.role == RoleBackup || r.backup.accepted
		return nil
	}
	// The term changes only with the flag, which is not taken at a peer's word.
	c := &Config{Version: string(m.Version), Epoch: m.Epoch, Lineage: m.Lineage, ChangeID: string(m.ChangeID), Standby: m.Flags&wire.FlagStandby != 0, Term: r.cfg.Term}
	for i := range int(m.N) {
		member, err := NewMember(string(m.Members[i].Member), string(m.Members[i].Address))
		if err != nil {
			return err
		}
		c.InSync = append(c.InSync, member)
	}
	c.Primary = c.InSync[0]
	if err := c.check(); err != nil {
		return err
	}
	r.hearConfig(c, m.From)
	return nil
}

// hearConfig acts on a peer's announcement of a later configuration, or reads the arbiter.
func (r *Replica) hearConfig(c *Config, from uint64) {
	following := r.role == RoleBackup || r.role == RoleLearner
	switch held := r.backup.held; {
	case following && held != nil && held.Epoch == c.Epoch && held.ChangeID == c.ChangeID:
		r.adopt(held) // confirmed by the arbiter
	case r.takesWord(c, from):
		r.followWord(c)
	default:
		r.count.StaleFrames++
		if following {
			r.spokeOf(c.Epoch, from)
		} else {
			r.readConfig()
		}
	}
}

// sendConfig announces the configuration to a peer.
func (r *Replica) sendConfig(p *peer) {
	m := wire.NewConfig{PeerHead: r.head(p.Boot), Lineage: r.cfg.Lineage, ChangeID: []byte(r.cfg.ChangeID), Version: []byte(r.cfg.Version)}
	if r.cfg.Standby {
		m.Flags = wire.FlagStandby
	}
	add := func(mb *Member) {
		m.Members[m.N] = wire.TableMember{Address: []byte(mb.Address), Member: []byte(mb.ID)}
		m.N++
	}
	add(&r.cfg.Primary)
	for i := range r.cfg.InSync {
		if mb := &r.cfg.InSync[i]; mb.Boot != r.cfg.Primary.Boot {
			add(mb)
		}
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendNewConfig(r.out.buf, r.part, &m)
	r.out.send(p.Address, off, nil)
}
