package replica

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// tickLearner registers with the primary until it answers, and again when it falls silent.
func (r *Replica) tickLearner() {
	b := &r.backup
	if r.leaving && !b.counted {
		return
	}
	if b.accepted {
		if r.now.Mono-b.heardAt <= int64(r.opt.Timing.Grace) {
			return
		}
		b.accepted = false
		b.joinAt = r.now.Mono
	}
	if r.now.Mono < b.joinAt || r.acceptDataLoss() {
		return
	}
	b.joinAt = r.now.Mono + int64(r.opt.Timing.Retry)
	if b.joins++; b.joins%8 == 0 {
		r.askConfig() // the primary may have changed without a watch event
	}
	r.suspectDataLoss()
	if r.cfg.Primary.Address == r.self.Address {
		return // the primary was a former process of this pod: only the arbiter can resolve this
	}
	last, hash := r.durable()
	m := wire.Join{PeerHead: r.head(r.cfg.Primary.Boot), LastSeq: last, LastHash: hash, Member: []byte(r.self.ID), Address: []byte(r.self.Address)}
	if r.leaving {
		m.Flags = wire.FlagDraining
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendJoin(r.out.buf, r.part, &m)
	r.out.send(r.cfg.Primary.Address, off, nil)
}

// join registers a learner: it gets the log from the end of its own.
func (r *Replica) join(frame []byte) error {
	var m wire.Join
	if err := wire.DecodeJoin(frame, &m); err != nil {
		return err
	}
	member, err := NewMember(string(m.Member), string(m.Address))
	if err != nil {
		return err
	}
	if member.Boot != m.From {
		return &wire.FrameError{Type: wire.TypeJoin, Field: "from", Value: m.From, Allowed: "the boot id of the member"}
	}
	if m.Flags&wire.FlagHeir != 0 && m.To == r.self.Boot {
		r.heirSpoke(&member, &m)
		return nil
	}
	if m.To != r.self.Boot || m.Epoch > r.epoch {
		r.count.StaleFrames++
		if m.Epoch > r.epoch {
			r.readConfig()
		}
		return nil
	}
	if r.role != RolePrimary {
		r.joinReplyTo(&member, wire.JoinNotPrimary, 0, "not the primary of this partition")
		return nil
	}
	r.register(&member, &m)
	return nil
}

// register adds a learner, or rejects it with a reason. A record that is being restored
// goes through epochs that this primary has been in, perhaps of another lineage: a learner
// that knows only those is rejected, because frames identify a configuration by the epoch
// alone.
func (r *Replica) register(member *Member, m *wire.Join) {
	lastSeq, lastHash := m.LastSeq, m.LastHash
	if slices.Contains(r.primary.released[:], member.Boot) && !mutant(mutReleasedAgain) { // a late old request, or its answer was lost
		r.joinReplyTo(member, wire.JoinReleased, 0, "this process was released")
		return
	}
	known := r.peer(member.Boot)
	if known != nil && known.inSync() {
		known.tellConfig = true // it was admitted and does not know yet
		return
	}
	if r.prop.purpose == purposeReassert && !mutant(mutClimbTakesLearners) {
		r.joinReplyTo(member, wire.JoinBusy, 0, "the record was rolled back and is being restored")
		return
	}
	if known == nil && m.Flags&wire.FlagDraining != 0 && !r.admitting(member.Boot) && !mutant(mutLeaverUnanswered) {
		r.release(&peer{Member: *member}, leavingText) // it was one, and asks whether it was admitted
		return
	}
	base, _ := r.store.Base()
	if lastSeq > 0 && lastSeq < base {
		r.joinReplyTo(member, wire.JoinTruncated, base+1, truncatedText(base))
		return
	}
	if last, _ := r.store.Last(); lastSeq > 0 && (lastSeq > last || r.store.HashAt(lastSeq) != lastHash) {
		r.joinReplyTo(member, wire.JoinDiverged, 0, fmt.Sprintf("entry %d here is not the learner's: join with an empty log", lastSeq))
		return
	}
	if known == nil {
		if text := r.refuseLearner(member); text != "" {
			r.joinReplyTo(member, wire.JoinBusy, 0, text)
			return
		}
		r.primary.peers = append(r.primary.peers, peer{Member: *member})
		known = &r.primary.peers[len(r.primary.peers)-1]
	}
	// Its acknowledgements stay valid, in case this is a late old request.
	known.stored = max(known.stored, lastSeq)
	known.sent = known.stored
	// It is fed once it has acknowledged that it was accepted: the feed uses another
	// connection, and must not arrive before this reply.
	known.synced, known.knowsEpoch = false, false
	known.features, known.featuresSaid = 0, false // with a journal it may be a later process
	known.reached()
	known.heardAt, known.progressAt, known.wantedAt = r.now.Mono, r.now.Mono, r.now.Mono
	switch {
	case known.stored < base:
		r.become(known, stageInstalling)
	case known.stage != stageCounted:
		r.become(known, stageCatchingUp)
	}
	r.joinReplyTo(member, wire.JoinAccepted, max(known.sent, base)+1, "")
}

// refuseLearner returns why there is no place for a learner now. Of two processes of one
// pod name the in-sync one is preferred as long as it answers: the other may be a process
// that was partitioned and replaced, and has reconnected.
func (r *Replica) refuseLearner(member *Member) string {
	for i := len(r.primary.peers) - 1; i >= 0; i-- {
		p := &r.primary.peers[i]
		if p.Pod() != member.Pod() {
			continue
		}
		if p.inSync() || r.admitting(p.Boot) {
			if mutant(mutFormerProcess) {
				p.Member = *member
				return "the pod is a member already"
			}
			if p.fault != faultReset && r.now.Mono-p.heardAt <= 3*int64(r.opt.Timing.Beacon) && !mutant(mutSecondProcess) {
				return "another process of this pod is in sync, and answers"
			}
			p.reset()
			r.dropSilent()
			return "the pod's former process is still in sync; it is being dropped"
		}
		r.dropPeer(p.Boot)
	}
	if n := r.learners(); n >= wire.MaxCopies && !mutant(mutJoinsUnbounded) {
		return fmt.Sprintf("%d learners are catching up already", n)
	}
	return r.refuseCopy(member.Pod())
}

// learners returns the learners known to the primary.
func (r *Replica) learners() (n int) {
	for i := range r.primary.peers {
		if !r.primary.peers[i].inSync() {
			n++
		}
	}
	return n
}

func (r *Replica) joinReplyTo(to *Member, code uint16, from uint64, text string) {
	off := len(r.out.buf)
	m := wire.JoinReply{PeerHead: r.head(to.Boot), FromSeq: from, Code: code, Text: []byte(text)}
	r.out.buf = wire.AppendJoinReply(r.out.buf, r.part, &m)
	r.out.send(to.Address, off, nil)
}

// joinReply handles the primary's answer.
func (r *Replica) joinReply(frame []byte) error {
	var m wire.JoinReply
	if err := wire.DecodeJoinReply(frame, &m); err != nil {
		return err
	}
	if m.To != r.self.Boot || r.role != RoleLearner || r.drained || m.From != r.cfg.Primary.Boot {
		r.count.StaleFrames++
		return nil
	}
	if m.Epoch > r.epoch {
		r.spokeOf(m.Epoch, m.From)
	}
	if m.Epoch != r.epoch && !mutant(mutStaleJoinReply) || r.role != RoleLearner {
		return nil
	}
	switch m.Code {
	case wire.JoinAccepted:
		last, _ := r.store.Last()
		if !r.backup.accepted && last != 0 && m.FromSeq != last+1 && !mutant(mutLateJoinReply) {
			return nil // to an older request: later entries were not compared
		}
		r.backup.accepted, r.backup.counted, r.backup.joins, r.backup.useless = true, true, 0, ""
		r.backup.ackDue = true // even if empty: an answering learner knows that it counts
		r.backup.heardAt = r.now.Mono
		if last == 0 && m.FromSeq > 1 {
			r.beginInstall(m.FromSeq - 1)
		}
	case wire.JoinReleased:
		r.giveUp(releasedReason + string(m.Text)) // it lost its place; it joins again as another process
	case wire.JoinDiverged, wire.JoinTruncated:
		r.giveUp("join refused: " + string(m.Text))
	}
	return nil
}

// mustHave returns how much of the log an electable replica must hold: what may have been
// acknowledged. A new primary does not know how much of the entries it took over was, so
// all of them count.
func (r *Replica) mustHave() uint64 { return max(r.commit, r.primary.floor) }

// mayAdmit reports whether a learner may become electable.
func (r *Replica) mayAdmit(p *peer) bool {
	inAckSet, caughtUp := p.acks() || mutant(mutAdmitBeforeAckSet), p.stored >= r.mustHave()
	return inAckSet && caughtUp || mutant(mutAdmitEarly)
}

// progressLearner advances a learner: close enough, it enters the ack set; with all
// committed entries stored, it is proposed for inSync. In this order nothing can be
// committed without it after it became electable.
func (r *Replica) progressLearner(p *peer) {
	if !p.learner() || p.stage == stageInstalling || !p.answered || p.draining || r.primary.suspended || r.primary.hand.to != 0 || r.gone(p) {
		return
	}
	if !p.acks() && p.knowsEpoch && !mutant(mutAdmitBeforeAckSet) {
		r.settle(p)
	}
	if !r.mayAdmit(p) || r.prop.active() || r.now.Mono < r.primary.admitAt || !r.mayAdd(p) || !r.allHeard() {
		return
	}
	members := []Member{r.self}
	for _, m := range r.cfg.InSync {
		if m.Boot != r.self.Boot {
			members = append(members, m)
		}
	}
	r.propose(purposeAdmit, append(members, p.Member))
}
