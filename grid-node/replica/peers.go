package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// maxPeers of a primary: the other members, and as many learners as there may be copies.
const maxPeers = wire.MaxMembers - 1 + wire.MaxCopies

// peer is a primary's view of another replica.
type peer struct {
	Member
	stage           stage
	fault           fault
	feedAt          int64           // when a learner may be sent more
	knowsEpoch      bool            // has acknowledged in this epoch
	tellConfig      bool            // NewConfig goes out with the next flush
	synced          bool            // stored is known
	answered        bool            // it has acknowledged: a learner that has knows that it may count
	draining        bool            // it announced that it is about to stop
	differs         bool            // its state differs, and it is removed for that
	digested        uint64          // entry of the last one sent to it
	knowsFix        bool            // it announced that it knows entries of FIX sessions
	knowsRegions    bool            // it announced that it knows entries of regions
	knowsGuard      bool            // it announced that it knows entries with limits
	functions       uint8           // what it announced of functions, with
	functionsAt     uint64          // the entry up to which it had stored the log then
	features        wire.FeatureSet // it announced, once
	computes        [wire.MaxComputes]uint64
	featuresSaid    bool
	featuresDue     bool   // it is asked with the next flush
	featuresAskedAt int64  // when it was asked last, 0: never
	full            bool   // it announced that only its memory reserve is left
	fullAt          int64  // when
	inSyncAt        int64  // when this primary had it in sync first
	followed        bool   // clients follow the log there
	commitSaid      uint64 // what it was last told to be committed, with the data
	commitDue       int64  // when the next Beacon that says so is due by their mean rate
	sent            uint64 // entries sent
	stored          uint64 // entries acknowledged
	round           uint64 // highest round echoed
	echoNs          int64  // highest send time echoed: the lease counts from here
	heardAt         int64
	progressAt      int64 // when stored last rose, or something was first sent
	shortAt         int64 // when it first acknowledged less than is committed in this epoch
	toldAt          int64 // when its knowledge of the epoch was last checked
	askedAt         int64 // when an answer was last requested
	wantedAt        int64 // when an installing learner last requested a part of the base state, or was notified of it
	askDue          bool  // a beacon that requests an answer is sent with the next flush
	arbiter         arbiterProof
}

func (r *Replica) peer(boot uint64) *peer {
	for i := range r.primary.peers {
		if r.primary.peers[i].Boot == boot {
			return &r.primary.peers[i]
		}
	}
	return nil
}

func (r *Replica) dropPeer(boot uint64) {
	ps := r.primary.peers
	for i := range ps {
		if ps[i].Boot == boot {
			copy(ps[i:], ps[i+1:])
			ps[len(ps)-1] = peer{}
			r.primary.peers = ps[:len(ps)-1]
			return
		}
	}
}

func (r *Replica) head(to uint64) wire.PeerHead {
	return wire.PeerHead{Epoch: r.epoch, From: r.self.Boot, To: to}
}

// flushPeers sends every peer its news. All messages of a flush belong to one round.
func (r *Replica) flushPeers() {
	round := r.primary.round + 1
	reads := r.primary.reads.newest() == round
	used := false
	for i := range r.primary.peers {
		p := &r.primary.peers[i]
		if p.tellConfig {
			p.tellConfig = false
			r.sendConfig(p)
		}
		sent := p.synced && r.sendEntries(p, round)
		if (p.askDue || reads && p.acks()) && !sent || p.arbiter.askDue || p.featuresDue {
			r.ask(p, round)
			sent = true
		}
		p.askDue = false
		used = used || sent
		if p.followed && !sent && p.commitSaid < r.commit && p.acks() && !mutant(mutCommitUnsaid) {
			r.sayCommit(p)
		}
	}
	if used {
		r.primary.round = round
	}
}

// sendEntries sends the entries that were not sent to the peer. A learner's share is
// limited; for the ack set the in-flight limits are the bound.
func (r *Replica) sendEntries(p *peer, round uint64) bool {
	if !p.acks() {
		return r.feed(p, round)
	}
	last, _ := r.store.Last()
	if p.sent >= last {
		return false
	}
	if p.sent == p.stored {
		p.progressAt = r.now.Mono
	}
	for p.sent < last {
		r.sendBatch(p, round, last, r.opt.Limits.BatchBytes, false)
	}
	return true
}

// prepareAck handles a peer's acknowledgement.
func (r *Replica) prepareAck(frame []byte) error {
	var m wire.PrepareAck
	if err := wire.DecodePrepareAck(frame, &m); err != nil {
		return err
	}
	return r.acknowledged(&m)
}

// acknowledged is prepareAck of a decoded frame.
func (r *Replica) acknowledged(m *wire.PrepareAck) error {
	p := r.peer(m.From)
	if r.role != RolePrimary || m.To != r.self.Boot || p == nil || m.Epoch != r.epoch && !(mutant(mutStaleAck) && m.Epoch < r.epoch) {
		r.count.StaleFrames++
		switch held := r.backup.held; {
		case m.To != r.self.Boot || m.Epoch <= r.epoch:
		case held != nil && m.Epoch == held.Epoch && m.From == r.cfg.Primary.Boot:
			r.adopt(held) // it has handed over, and the announcement was lost
		default:
			r.readConfig()
		}
		return nil
	}
	last, _ := r.store.Last()
	base, _ := r.store.Base()
	if m.StoredSeq >= base && (m.StoredSeq > last || r.store.HashAt(m.StoredSeq) != m.Hash) && !mutant(mutForgetHash) {
		if p.fault != faultDiverged {
			p.fault = faultDiverged
			r.alarm(AlarmDiverged, fmt.Sprintf("%s acknowledges entry %d with hash %016x; here it is %016x (last %d)", p.ID, m.StoredSeq, m.Hash, r.store.HashAt(m.StoredSeq), last))
		}
		return nil
	}
	if r.belated(p, m.StoredSeq) {
		r.count.StaleFrames++
		return nil
	}
	p.heardAt, p.knowsEpoch = r.now.Mono, true
	p.reached()
	p.answered, p.draining = true, m.Flags&wire.FlagDraining != 0
	p.knowsFix = p.knowsFix || m.Flags&wire.FlagFix != 0
	p.functions, p.functionsAt = m.Flags&(wire.FlagFunctions|wire.FlagOtherFunctions), m.StoredSeq
	p.knowsRegions = p.knowsRegions || m.Flags&wire.FlagRegions != 0
	p.knowsGuard = p.knowsGuard || m.Flags&wire.FlagGuard != 0
	r.arbiterProved(p, m.Flags)
	if m.Flags&wire.FlagFull != 0 {
		p.full, p.fullAt = true, r.now.Mono
	}
	p.round = max(p.round, min(m.Round, r.primary.round))
	p.echoNs = max(p.echoNs, min(m.EchoNs, r.now.Mono))
	if m.StoredSeq < base { // an old frame, or from a learner that waits for the base state
		p.knowsEpoch = p.stage != stageInstalling          // it is notified again until it has all of it
		if p.stage == stageInstalling && m.StoredSeq > 0 { // it restored an older base: the entries after that are freed
			r.joinReplyTo(&p.Member, wire.JoinTruncated, base+1, truncatedText(base))
		}
		if p.stage == stageInstalling && m.StoredSeq == 0 && r.now.Mono-p.wantedAt >= 2*int64(r.opt.Timing.Resend) && !mutant(mutBaseUntold) {
			p.wantedAt = r.now.Mono // it does not know of the base
			r.joinReplyTo(&p.Member, wire.JoinAccepted, base+1, "")
		}
		r.advance()
		r.confirmReads()
		return nil
	}
	if p.stage == stageInstalling {
		r.become(p, stageCatchingUp)
	}
	if !p.synced {
		p.synced, p.sent, p.stored = true, m.StoredSeq, m.StoredSeq
	}
	if m.StoredSeq > p.stored {
		p.stored, p.progressAt = m.StoredSeq, r.now.Mono
		p.sent = max(p.sent, p.stored)
	}
	r.tellDigest(p)
	r.progressLearner(p)
	r.advance()
	r.confirmReads()
	return nil
}

// belated reports whether a member's first acknowledgement of an epoch is of another time: it
// is in sync, so it stores what is committed. A member that was told of the epoch by a forged
// announcement, and went back to the record since, acknowledged in it before it began; such a
// frame may be on its way for long. The member is told of the epoch again, and what it then
// acknowledges counts: if that is too little, too, the invariant is broken.
func (r *Replica) belated(p *peer, stored uint64) bool {
	if !p.inSync() || p.synced || stored >= r.commit || mutant(mutStaleAck) {
		return false
	}
	if p.shortAt == 0 {
		p.shortAt = r.now.Mono
	}
	return r.now.Mono-p.shortAt < 2*int64(r.opt.Timing.Resend)
}

// nack resends from where the peer misses entries.
func (r *Replica) nack(frame []byte) error {
	var m wire.Nack
	if err := wire.DecodeNack(frame, &m); err != nil {
		return err
	}
	p := r.peer(m.From)
	if r.role != RolePrimary || m.To != r.self.Boot || p == nil || m.Epoch != r.epoch && !mutant(mutStaleNack) || !p.synced {
		r.count.StaleFrames++
		return nil
	}
	r.count.PeerGaps++
	r.alarm(AlarmPeerGap, fmt.Sprintf("%s misses entry %d, %d were sent", p.ID, m.Expected, p.sent))
	if m.Expected > p.stored && m.Expected <= p.sent {
		p.sent = m.Expected - 1
		r.count.Resends++
		p.progressAt = r.now.Mono
	}
	return nil
}

// peerUp resends everything unacknowledged: frames in flight when a connection broke are
// lost. The bulk connection carries feeds only.
func (r *Replica) peerUp(address string, bulk bool) {
	if r.role != RolePrimary {
		return
	}
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.Address == address && (!bulk || !p.acks()) {
			if !bulk {
				p.reached()
			}
			p.tellConfig = p.tellConfig || !p.knowsEpoch
			p.askDue = r.awaited(p)
			if p.synced && p.sent > p.stored {
				p.sent = p.stored
				r.count.Resends++
			}
		}
	}
}

// peerDown acts on the end of a connection: the process is most likely dead, and there is
// no need to wait for silence.
func (r *Replica) peerDown(address string) {
	switch r.role {
	case RolePrimary:
		for i := range r.primary.peers {
			if p := &r.primary.peers[i]; p.Address == address {
				p.reset()
			}
		}
		r.dropSilent()
	case RoleBackup:
		if r.cfg.Primary.Address == address {
			r.backup.primaryDown, r.backup.downAt = true, r.now.Mono
			r.watchPrimary()
		}
	case RoleLearner:
		if r.cfg.Primary.Address == address {
			r.backup.accepted = false
			r.releaseHeld()
		}
	}
}

// tickPeers repeats requests for answers, resends lost entries, and drops silent members.
func (r *Replica) tickPeers() {
	t := &r.opt.Timing
	for i := range r.primary.peers {
		p := &r.primary.peers[i]
		if r.now.Mono-p.toldAt >= int64(t.Beacon) {
			p.toldAt = r.now.Mono
			p.tellConfig = p.tellConfig || !p.knowsEpoch
		}
		if r.now.Mono-p.askedAt >= int64(t.Resend) && r.awaited(p) {
			p.askDue = true
		}
		resend := int64(t.Resend)
		if p.learner() {
			resend *= 8 // it has more to do
		}
		if p.synced && p.sent > p.stored && r.now.Mono-p.progressAt >= resend {
			p.sent, p.progressAt = p.stored, r.now.Mono
			r.count.Resends++
		}
		r.progressLearner(p)
	}
	r.dropSilent()
}
