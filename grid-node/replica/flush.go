package replica

import "github.com/ordergrid/ordergrid/grid-node/order"

// What a replica does between events: after a batch of them, as time passes, and after it slept.

// flush sends the results of the events since the last flush.
func (r *Replica) flush() {
	if len(r.out.Actions) == 0 { // no pending output refers to the store
		r.logged.check(r)
		r.freeSome()
	}
	r.flushGets()
	if r.role == RolePrimary {
		r.logTruncate()
		r.logCursors()
		if r.execs != nil {
			r.logExecution()
		}
		if order.FunctionsBuilt && r.opt.Functions != nil {
			r.logFunctions()
		}
		if r.opt.Regions != nil || r.live.Regions != nil {
			r.logRegions()
		}
		if r.limits.profile != nil {
			r.logProfile()
		}
		r.advance()      // a solo primary commits here
		r.confirmReads() // and answers what waited for it: no acknowledgement will come
		r.finishHandOver()
	}
	switch r.role {
	case RolePrimary:
		r.flushPeers()
	case RoleBackup, RoleLearner:
		r.flushAck()
	case RoleFenced:
		if mutant(mutFencedAnswers) {
			r.flushAck()
		}
	}
	if r.execs != nil {
		r.answerBooks()
	}
	r.answerAdvances()
	r.answerLink()
	r.flushJournal()
	if r.moved {
		r.moved = false
		r.out.add(Action{Kind: ActionCommitted, Seq: r.commit})
	}
	r.checkFlush()
	r.flushDrain()
	r.flushStatus()
	r.publish()
}

// tick does the time-driven work.
func (r *Replica) tick() {
	r.tickProposal()
	if r.older || r.told.known != nil || r.backup.useless != "" {
		r.readConfigEvery(10 * int64(r.opt.Timing.Retry))
	}
	switch r.role {
	case RoleIdle:
		r.readConfig()
	case RoleClaiming:
		r.claim()
	case RolePrimary:
		r.tickPeers()
		r.retireDraining()
		r.considerHandOver()
		r.considerPromotion()
		r.considerDemotion()
		r.reassertConfig()
	case RoleFenced:
		r.tickHeir()
		r.reassertConfig()
	case RoleBackup:
		if b := &r.backup; b.redirectAt != 0 && r.now.Mono >= b.redirectAt {
			r.redirect()
		}
		if r.spoken(r.epoch + 1) {
			r.readConfig()
		}
		r.watchPrimary()
	case RoleLearner:
		r.tickLearner()
		r.releaseHeld()
		r.tickInstall()
	}
}

// wake runs after the process was suspended (SIGSTOP, a paused machine): ticks come far
// more often than this. All other members look silent, while their frames wait unread, so
// it counts all as alive now. And it may have been replaced: unread frames prove nothing,
// so a primary acknowledges nothing until its ack set has answered a message sent after
// waking, on the data path.
func (r *Replica) wake() {
	r.backup.heardAt = r.now.Mono
	r.primary.awake = r.primary.round + 1
	r.fix.awake(r.now.Mono)
	for i := range r.primary.peers {
		p := &r.primary.peers[i]
		p.heardAt, p.askDue = r.now.Mono, true
	}
}
