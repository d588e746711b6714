package replica

import "time"

// A replica with a journal acknowledges, and as a primary commits, only what is durable in
// its own journal: entries, and the configuration that it is in. The journal is the
// caller's, like the network: it gets the entries as actions and reports by
// EventJournaled. docs/journal.md has the whole.

// Journal of Options.
type Journal struct {
	// HeirWait is how long the heir of a member waits for those of the others, which may
	// have more of the log; 10 s, and Lease at least. Each has everything that was
	// acknowledged.
	HeirWait time.Duration
	// Lease is the longest that the former process may have granted; the grace at least.
	Lease time.Duration
}

// Journaled is what is durable in the journal; of EventJournaled.
type Journaled struct {
	Seq     uint64 // entries up to it
	Configs uint64 // configurations: the number of the last one
	Base    uint64 // state after this entry
	Full    bool   // there is no room but a reserve
	Wants   bool   // a state of the freed entries would make room
}

// JournalState is a part of the state after the freed entries, of ActionJournalState.
type JournalState struct {
	Base, Hash uint64 // the last freed entry
	From, Next uint32 // slots of this part
	Slots      uint32 // of all parts: the last one has Next at or behind it
	Part       []byte
}

// journaling is the journal as the replica knows it. nil: there is none.
type journaling struct {
	Journaled // what it has reported
	opt       Journal
	configs   uint64 // configurations handed over
	written   uint64 // last entry handed over
	wants     bool
	state     JournalState // in the making while making
	making    bool
}

// journalBatch bounds the bytes of an action.
const journalBatch = 256 << 10

func newJournaling(o *Options) *journaling {
	if o.Journal == nil {
		return nil
	}
	j := &journaling{opt: *o.Journal}
	j.opt.HeirWait = or(j.opt.HeirWait, 10*time.Second)
	if !mutant(mutHeirHasty) {
		j.opt.HeirWait = max(j.opt.HeirWait, j.opt.Lease, o.Timing.Grace)
	}
	return j
}

// durable returns the last entry that this replica may acknowledge, and its hash.
func (r *Replica) durable() (seq, hash uint64) {
	seq, hash = r.store.Last()
	j := r.journal
	if j == nil || j.Seq >= seq || mutant(mutAckBeforeSync) {
		return seq, hash
	}
	if base, _ := r.store.Base(); j.Seq < base {
		return 0, 0 // of a copy whose state is not durable yet
	}
	return j.Seq, r.store.HashAt(j.Seq)
}

// configDurable reports whether the journal has the configuration that this replica is in.
func (r *Replica) configDurable() bool {
	j := r.journal
	return j == nil || j.Configs == j.configs || mutant(mutConfigUnsynced)
}

// journalFull reports whether the journal has only its reserve left.
func (r *Replica) journalFull() bool { return r.journal != nil && r.journal.Full }

// journalConfig hands over a configuration that the arbiter has confirmed.
func (r *Replica) journalConfig() {
	if j := r.journal; j != nil && r.cfg.Epoch > 0 {
		j.configs++
		r.out.add(Action{Kind: ActionJournalConfig, Seq: j.configs, Config: r.cfg})
	}
}

// flushJournal hands over what was stored since the last flush.
func (r *Replica) flushJournal() {
	j := r.journal
	if j == nil || r.role == RoleStopped {
		return
	}
	base, hash := r.store.Base()
	switch {
	case j.making:
		r.journalState()
	case base > j.Base && (j.wants || j.written < base):
		j.making, j.wants = true, false
		j.state = JournalState{Base: base, Hash: hash, Slots: uint32(r.base.SnapshotSlots())}
		r.journalState()
	}
	if j.written < base {
		if j.Base < base {
			return // the log begins behind a state that is not durable
		}
		j.written = base
	}
	for last, _ := r.store.Last(); j.written < last; {
		run, through := r.store.Range(j.written+1, last, journalBatch)
		r.out.add(Action{Kind: ActionJournalEntries, Seq: through, Tail: run})
		j.written = through
	}
}

// journalState hands over the next part. The base stays where it is until the last one.
func (r *Replica) journalState() {
	j := r.journal
	s := &j.state
	if s.Next != 0 && s.Next >= s.Slots {
		return // all is handed over
	}
	s.From = s.Next
	s.Part, s.Next = r.base.AppendSnapshot(nil, s.From)
	if s.Next == s.From {
		s.Next = max(s.Slots, 1) // it has no slots: the head is all
	}
	part := *s
	r.out.add(Action{Kind: ActionJournalState, State: &part})
}

// journaled takes in what became durable.
func (r *Replica) journaled(now *Journaled) {
	j := r.journal
	if j == nil || now == nil {
		return
	}
	j.Seq, j.Configs, j.Full = max(j.Seq, now.Seq), max(j.Configs, now.Configs), now.Full
	j.wants = now.Wants
	if now.Base > j.Base {
		j.Base, j.Seq = now.Base, max(j.Seq, now.Base)
		if j.making && j.state.Base <= now.Base {
			j.making, j.state = false, JournalState{}
		}
	}
	r.vouch()
}

// vouch acknowledges, or commits, what may be now.
func (r *Replica) vouch() {
	switch r.role {
	case RolePrimary:
		r.advance()
		r.confirmReads()
	case RoleBackup:
		r.backup.ackDue = true
	case RoleLearner:
		r.backup.ackDue = r.backup.ackDue || r.backup.accepted
	}
}

// journalAtRest reports whether nothing is on its way to the journal.
func (r *Replica) journalAtRest() bool {
	j := r.journal
	if j == nil {
		return true
	}
	last, _ := r.store.Last()
	return !j.making && !j.wants && j.Seq >= last && j.Configs == j.configs
}
