package replica

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A standby's log is a copy of that of a partition in another grid, entry for entry. Its
// configuration says so (Config.Standby). Its primary makes no entries: it takes them from
// a link, which follows the source, and replicates them like its own. See
// docs/adr/0043-a-standby-stores-the-other-sites-entries.md.

// MaxLinkEpoch bounds the epochs of a link's entries: a promotion has to rise above them.
const MaxLinkEpoch = 1<<31 - 1

// site is what a replica knows of its partition's part in a pair of sites.
type site struct {
	wantStandby   bool      // the first claim makes the partition a standby
	source        string    // of a standby: the other site, for clients
	promotion     Promotion // decided by an administrator
	demotion      Demotion  // likewise
	toldPromotion uint64    // term of the last one that was reported not to fit
	fencedBy      uint64    // term of a link to this site while it makes entries; 0 for none
	link          linkState
}

// linkState is what a standby's primary knows of the connection that it gets entries from.
type linkState struct {
	conn, reqID uint64 // of its LinkOpen; conn is 0 for none
	due         bool   // a LinkState goes out with the next flush
	term        uint64 // highest of a link
	divergedAt  int64  // when the last entry of another history came
}

// makesEntries reports whether this replica, as the primary, makes the entries of the log.
func (r *Replica) makesEntries() bool { return !r.cfg.Standby }

// term returns the highest term of the pair of sites that this replica knows.
func (r *Replica) term() uint64 { return max(r.cfg.Term, r.link.term) }

// MayFree returns the last entry that the log lets go of: freed already, or when its readers allow it.
func (r *Replica) MayFree() uint64 { return r.mayFree }

// Lineage returns the lineage of what is stored, for followers.
func (r *Replica) Lineage() uint64 { return r.lineage() }

// lineage returns the lineage of the log: that of the configuration, but in a standby, which
// has its source's.
func (r *Replica) lineage() uint64 {
	if r.cfg.Standby {
		return r.live.Orders.Lineage
	}
	return r.cfg.Lineage
}

// refusesClients rejects a request that the other site has to answer.
func (r *Replica) refusesClients(conn uint64, t wire.Type, id uint64, slot uint32) bool {
	if r.makesEntries() && !r.closing() || mutant(mutStandbyServes) {
		return false
	}
	is, other := "is a standby of", r.source
	if r.makesEntries() {
		is = "stops, to become a standby of"
	}
	if other == "" {
		other = "another site"
	}
	r.reject(conn, t, id, slot, wire.CodeStandby, 0, 0, fmt.Sprintf("%s %s %s, allowed: this request there, and reads of mode backup here", r.part, is, other))
	return true
}

// admitsLink rejects a frame of a link that this replica takes no entries from.
func (r *Replica) admitsLink(conn uint64, t wire.Type, id, term uint64) bool {
	switch {
	case r.role != RolePrimary:
		r.notPrimary(conn, t, id, 0)
	case r.makesEntries():
		r.reject(conn, t, id, 0, wire.CodeNotStandby, 0, r.cfg.Term, fmt.Sprintf("%s makes its entries itself, in term %d of the site, allowed: a link to a standby", r.part, r.cfg.Term))
	case term < r.term() && !mutant(mutTermIgnored):
		r.reject(conn, t, id, 0, wire.CodeFenced, 0, r.term(), fmt.Sprintf("the source is of term %d, allowed: %d or more: that site was replaced", term, r.term()))
	default:
		return true
	}
	return false
}

// linkOpen makes conn the connection of the link, in place of any before.
func (r *Replica) linkOpen(conn uint64, frame []byte) error {
	var m wire.LinkOpen
	if err := wire.DecodeLinkOpen(frame, &m); err != nil {
		return err
	}
	if len(m.Source) == 0 { // a question: it stops no site, and is not refused for its term
		if r.role == RolePrimary && r.cfg.Standby {
			r.sendLinkState(conn, m.ReqID)
		} else {
			r.admitsLink(conn, wire.TypeLinkOpen, m.ReqID, m.Term)
		}
		return nil
	}
	r.hearTerm(m.Term)
	if r.admitsLink(conn, wire.TypeLinkOpen, m.ReqID, m.Term) {
		r.link.conn, r.link.reqID, r.link.term, r.link.due = conn, m.ReqID, max(r.link.term, m.Term), true
	}
	return nil
}

// linkEntries stores what continues the log. An error means that the frame is not one.
func (r *Replica) linkEntries(conn uint64, frame []byte) error {
	var m wire.LinkEntries
	if err := wire.DecodeLinkEntries(frame, &m); err != nil {
		return err
	}
	if !r.admitsLink(conn, wire.TypeLinkEntries, m.ReqID, m.Term) {
		return nil
	}
	if l := &r.link; l.conn != conn || l.reqID != m.ReqID {
		r.reject(conn, wire.TypeLinkEntries, m.ReqID, 0, wire.CodeSessionMoved, 0, 0, "the link is not open on this connection, or was opened again since; open it")
		return nil
	}
	for rest := m.Entries; len(rest) > 0; {
		var e order.Entry
		entry, after, err := order.NextEntry(rest, &e)
		if err != nil {
			return err
		}
		if !r.storeLinked(entry, &e) {
			return nil
		}
		rest = after
	}
	return nil
}

// storeLinked adds one entry of the source. It returns false when the rest of the frame is
// useless: then the link is told, by a LinkState or by a Reject.
func (r *Replica) storeLinked(entry []byte, e *order.Entry) bool {
	last, hash := r.store.Last()
	if e.Seq <= last {
		r.count.EntriesDuplicate++
		if base, _ := r.store.Base(); e.Seq > base && !bytes.Equal(r.store.Get(e.Seq), entry) {
			r.linkDiverged(r.store.HashAt(e.Seq), fmt.Sprintf("entry %d of the link differs from the one stored here", e.Seq))
			return false
		}
		return true
	}
	if mutant(mutLinkUnchecked) {
		e.PrevHash = hash
	}
	size := order.Padded(len(entry))
	if bytes := r.primary.pend.bytes; e.Seq != last+1 || r.holdsLink() || r.windowFull() || bytes > 0 && bytes+size > r.opt.Limits.InFlightBytes {
		r.link.due = true
		return false
	}
	if full := r.store.Short() || r.journalFull(); full || r.copyFull() {
		r.linkFull(&store.ErrCapacity{Used: r.store.BudgetUsed(), Limit: r.store.Limit()})
		return false
	}
	err := r.checkLinked(e, order.Payload(entry))
	if err == nil {
		err = r.store.AppendEntry(entry, e)
	}
	var full *store.ErrCapacity
	switch {
	case errors.As(err, &full):
		r.linkFull(full)
		return false
	case err != nil:
		r.linkDiverged(hash, err.Error())
		return false
	}
	r.apply(e, order.Payload(entry))
	r.primary.pend.put(e.Seq, pending{size: e.Size, epoch: e.Epoch})
	return true
}

// checkLinked rejects an entry that no source makes.
func (r *Replica) checkLinked(e *order.Entry, payload []byte) error {
	if e.Epoch > MaxLinkEpoch {
		return &order.EntryError{Seq: e.Seq, Field: "epoch", Value: uint64(e.Epoch), Allowed: "at most 2147483647"}
	}
	return r.live.Check(e, payload)
}

// holdsLink reports whether entries have to wait: the end of the log has to stay where it
// is.
func (r *Replica) holdsLink() bool {
	return r.parking() || r.stopping || r.prop.purpose == purposePromote && !mutant(mutPromoteTakes)
}

// linkFull rejects entries for lack of memory, here or at a copy. The link waits, and the
// source holds them.
func (r *Replica) linkFull(full *store.ErrCapacity) {
	r.rejectCapacity(r.link.conn, wire.TypeLinkEntries, r.link.reqID, 0, full, fmt.Sprintf("a standby or a copy of it is at its memory limit; here %d of %d bytes are used", full.Used, full.Limit))
}

// linkDiverged rejects an entry that does not belong to the history stored here.
func (r *Replica) linkDiverged(hash uint64, text string) {
	l := &r.link
	if l.divergedAt == 0 || r.now.Mono-l.divergedAt >= int64(r.opt.Timing.Lease) {
		l.divergedAt = r.now.Mono
		r.alarm(AlarmDiverged, "the link sends another history: "+text)
	}
	r.reject(l.conn, wire.TypeLinkEntries, l.reqID, 0, wire.CodeDiverged, 0, hash, text)
}

// answerLink tells the link what is stored and what is committed: the source may free that.
func (r *Replica) answerLink() {
	l := &r.link
	if l.conn == 0 || r.role != RolePrimary || !l.due && !r.moved {
		return
	}
	l.due = false
	r.sendLinkState(l.conn, l.reqID)
}

func (r *Replica) sendLinkState(conn, reqID uint64) {
	limits := &r.opt.Limits
	m := wire.LinkState{ReqID: reqID, CommitSeq: r.commit, Term: r.cfg.Term, Lineage: uint32(r.lineage()), Window: uint32(min(limits.InFlightBytes, 1<<30)), Entries: uint32(limits.InFlight)}
	m.Seq, m.Hash = r.store.Last()
	if mutant(mutLinkUncommitted) {
		m.CommitSeq = m.Seq
	}
	m.CommitHash = r.store.HashAt(m.CommitSeq)
	off := len(r.out.buf)
	r.out.buf = wire.AppendLinkState(r.out.buf, r.part, &m)
	r.out.reply(conn, off, nil)
}

// endLink tells the link that this replica takes no more entries.
func (r *Replica) endLink() {
	if r.link.conn != 0 {
		r.admitsLink(r.link.conn, wire.TypeLinkEntries, r.link.reqID, r.cfg.Term)
	}
	r.link = linkState{}
}
