package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// A replica is given what a journal holds before its first Step: the parts of the state, if
// there is one, the entries behind it, and the configuration.

// Heritage is what a journal holds beside the log.
type Heritage struct {
	Config *Config // the last one, nil if there is none
	Life   uint64  // how many processes had the journal, this one included
	Heir   bool    // the journal is of the member that this replica has the boot id of
}

// ResumeState adds a part of the state after the entries that were freed.
func (r *Replica) ResumeState(p *JournalState) error {
	in := &r.backup.install
	if p.From == 0 {
		*in = installState{base: p.Base}
		in.state.Begin(r.opt.Limits.Window, p.Base)
		r.match(&in.state)
	}
	if in.base != p.Base || in.next != p.From {
		return fmt.Errorf("resume: state up to entry %d from slot %d, allowed: the part that follows slot %d of %d", p.Base, p.From, in.next, in.base)
	}
	next := min(p.Next, p.Slots)
	err := in.state.Restore(p.Part, p.Base, p.From, next)
	if in.next = p.Next; err == nil && p.Next >= p.Slots {
		err = in.state.Restored()
	}
	if err != nil {
		return fmt.Errorf("resume: state up to entry %d: %w", p.Base, err)
	}
	if p.Next < p.Slots {
		return nil
	}
	state := in.state
	*in = installState{}
	if err := r.beginBehind(&state, p.Base, p.Hash); err != nil {
		return fmt.Errorf("resume: state up to entry %d: %w", p.Base, err)
	}
	r.commitTo(p.Base)
	return nil
}

// ResumeEntries adds entries, padded as in a Prepare, in the order of the log. Each is
// checked as if a primary had sent it. None counts as committed.
func (r *Replica) ResumeEntries(entries []byte) error {
	for len(entries) > 0 {
		var e order.Entry
		entry, after, err := order.NextEntry(entries, &e)
		if err != nil {
			return err
		}
		if mutant(mutStateBare) && r.store.Committed() > 0 {
			return nil
		}
		if err := r.live.Check(&e, order.Payload(entry)); err != nil {
			return err
		}
		if err := r.store.AppendEntryHinted(entry, &e, r.hintOf(entry)); err != nil {
			return err
		}
		r.apply(&e, order.Payload(entry))
		entries = after
	}
	return nil
}

// Resume ends the resumption. One that is no heir joins with what it holds.
func (r *Replica) Resume(h Heritage) {
	j := r.journal
	last, _ := r.store.Last()
	j.Seq, j.written, r.resumedTo = last, last, last
	j.Base, _ = r.store.Base()
	r.changes = h.Life << 32 // ids of changes are never used again
	r.resumed, r.heir.active = last > 0 || h.Config != nil, h.Heir
	if h.Heir && h.Config != nil {
		r.cfg, r.epoch, r.role = h.Config, h.Config.Epoch, RoleFenced
	}
}
