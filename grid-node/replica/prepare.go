package replica

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fromPrimary reports whether a frame comes from the primary this replica follows, in its
// epoch. A later epoch means that this replica missed a change.
func (r *Replica) fromPrimary(h *wire.PeerHead) bool {
	if mutant(mutOldEpochAccepted) && r.role == RoleBackup && h.Epoch < r.epoch || mutant(mutFencedAnswers) && r.role == RoleFenced && h.Epoch == r.epoch {
		return true
	}
	if h.To != r.self.Boot || r.role != RoleBackup && (r.role != RoleLearner || !r.backup.accepted) ||
		h.Epoch != r.epoch || h.From != r.cfg.Primary.Boot && !mutant(mutAnySender) {
		r.count.StaleFrames++
		r.heardByHeir(h)
		if h.To == r.self.Boot && h.Epoch > r.epoch && r.role != RoleFenced {
			r.spokeOf(h.Epoch, h.From)
			return h.Epoch == r.epoch && r.fromPrimary(h) // it was held
		}
		return false
	}
	return true
}

// prepare stores entries of the primary: in order, chained, or not at all.
func (r *Replica) prepare(frame []byte) error {
	var m wire.Prepare
	if err := wire.DecodePrepare(frame, &m); err != nil {
		return err
	}
	return r.prepared(&m)
}

// prepared is prepare of a decoded frame.
func (r *Replica) prepared(m *wire.Prepare) error {
	if !r.fromPrimary(&m.PeerHead) {
		return nil
	}
	if r.backup.install.base != 0 {
		r.count.StaleFrames++ // the entries before it are still in flight
		return nil
	}
	hint := r.hintOf(m.Entries)
	for rest := m.Entries; len(rest) > 0; {
		var e order.Entry
		entry, after, err := order.NextEntry(rest, &e)
		if err != nil {
			return err
		}
		next := r.hintOf(after) // its part of the index is loaded in the meantime
		// A standby has its source's epochs.
		if uint64(e.Epoch) > m.Epoch && !r.cfg.Standby {
			return &order.EntryError{Seq: e.Seq, Field: "epoch", Value: uint64(e.Epoch), Allowed: "at most the epoch of the frame"}
		}
		if !r.storeEntry(entry, &e, hint) {
			return nil
		}
		rest, hint = after, next
	}
	r.heard(m.Round, m.SentNs, m.Flags)
	r.follow(m.CommitSeq)
	r.backup.ackDue = true
	return nil
}

// hintOf returns the hint of the ClOrdID of the entry that b may begin with.
func (r *Replica) hintOf(b []byte) uint32 {
	if id := order.PeekClOrdID(b); id != nil {
		if order.IsFix(b) {
			return r.store.HintFix(id, order.SlotOf(b), b[55])
		}
		r.live.Books.Hint(id)
		return r.store.Hint(id)
	}
	return 0
}

// storeEntry adds one entry. It returns false when the rest of the frame is useless.
func (r *Replica) storeEntry(entry []byte, e *order.Entry, hint uint32) bool {
	last, _ := r.store.Last()
	if e.Seq <= last {
		r.count.EntriesDuplicate++
		if base, _ := r.store.Base(); e.Seq <= base { // it was compared when received first, and is committed
			return true
		}
		if !mutant(mutForgetHash) && !bytes.Equal(r.store.Get(e.Seq), entry) {
			r.diverged(fmt.Sprintf("entry %d of %s differs from the one stored here", e.Seq, r.cfg.Primary.ID))
			return false
		}
		return true
	}
	if e.Seq != last+1 {
		r.missing(last + 1)
		return false
	}
	if mutant(mutForgetHash) {
		_, e.PrevHash = r.store.Last()
	}
	entry = r.mutateInvoked(r.mutateEntry(entry, e), e)
	err := r.live.Check(e, order.Payload(entry))
	if err == nil {
		err = r.store.AppendEntryHinted(entry, e, hint)
	}
	if err == nil {
		r.apply(e, order.Payload(entry))
		return true
	}
	var full *store.ErrCapacity
	var chain *store.ErrChain
	switch {
	case errors.As(err, &chain):
		r.diverged(err.Error())
	case errors.As(err, &full):
		// The primary keeps a reserve below the limit, so this replica has
		// less memory than its primary. It cannot be a member.
		r.alarm(AlarmCapacity, err.Error())
		r.restart("cannot store an entry that the primary can: " + err.Error())
	default:
		r.diverged(err.Error())
	}
	return false
}

// diverged rejects an entry that does not belong to the history stored here. It is never
// repaired silently; nor does this replica discard its log for what may be a forged frame.
// It acknowledges what it holds: the primary, if its history differs, drops it, and when
// the arbiter shows that, it discards itself.
func (r *Replica) diverged(text string) {
	b := &r.backup
	b.ackDue = true
	if b.divergedAt == 0 || r.now.Mono-b.divergedAt >= int64(r.opt.Timing.Lease) {
		b.divergedAt = r.now.Mono
		r.alarm(AlarmDiverged, text)
	}
	if mutant(mutDiscardOnWord) {
		r.restart(text)
	}
}

// missing requests the log again from seq, once per gap.
func (r *Replica) missing(seq uint64) {
	b := &r.backup
	if b.nackedSeq == seq && r.now.Mono-b.nackedAt < int64(r.opt.Timing.Resend) {
		return
	}
	b.nackedSeq, b.nackedAt = seq, r.now.Mono
	r.count.PeerGaps++
	off := len(r.out.buf)
	r.out.buf = wire.AppendNack(r.out.buf, r.part, &wire.Nack{PeerHead: r.head(r.cfg.Primary.Boot), Expected: seq})
	r.out.send(r.cfg.Primary.Address, off, nil)
}

// heard notes that the primary is alive.
func (r *Replica) heard(round uint64, sentNs int64, flags uint8) {
	b := &r.backup
	b.heardAt, b.primaryDown = r.now.Mono, false
	b.leased = flags&wire.FlagLeased != 0
	if b.redirectAt != 0 {
		r.redirect()
	}
	if round > b.round {
		b.round, b.echoNs = round, sentNs
	}
}

// follow advances the committed prefix to the primary's.
func (r *Replica) follow(commit uint64) {
	last, _ := r.store.Last()
	if commit = min(commit, last); commit > r.commit {
		r.commitTo(commit)
	}
}

// flushAck acknowledges everything stored since the last flush at once.
func (r *Replica) flushAck() {
	if r.backup.ackDue && r.configDurable() {
		r.backup.ackDue = false
		r.sendAck()
	}
}

func (r *Replica) sendAck() {
	last, hash := r.durable()
	m := wire.PrepareAck{PeerHead: r.head(r.cfg.Primary.Boot), StoredSeq: last, Hash: hash, Round: r.backup.round, EchoNs: r.backup.echoNs, Flags: r.ackFlags() | r.arbiterFlags() | wire.FlagFix | wire.FlagRegions | wire.FlagGuard | r.functionFlags()}
	off := len(r.out.buf)
	r.appendAck(&m)
	r.out.send(r.cfg.Primary.Address, off, nil)
	r.count.PeerAcks++
}
