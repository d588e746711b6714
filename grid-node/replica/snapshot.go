package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A learner of a log whose beginning is freed requests the base state from the primary,
// part by part, and then gets the entries after it like any other. The primary frees
// nothing during that time, so all parts are of one base; it keeps no state of the
// transfer, lost parts are requested again.

// installState is a learner's transfer.
type installState struct {
	base    uint64 // its last entry, 0: no transfer
	state   machine.Machine
	next    uint32 // slot to request
	askedAt int64
}

func truncatedText(base uint64) string {
	return fmt.Sprintf("entries up to %d are freed here: join with an empty log, for a snapshot", base)
}

// snapshotOut reports whether a learner is being sent the base state.
func (r *Replica) snapshotOut() bool {
	if r.role != RolePrimary {
		return false
	}
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.stage == stageInstalling && !r.gone(p) {
			return true
		}
	}
	return false
}

// beginInstall starts the transfer for a learner that was accepted with a log that begins
// later.
func (r *Replica) beginInstall(base uint64) {
	in := &r.backup.install
	if in.base != base {
		*in = installState{base: base}
		in.state.Begin(r.opt.Limits.Window, base)
		r.match(&in.state)
	}
	r.askSnapshot()
}

func (r *Replica) askSnapshot() {
	in := &r.backup.install
	in.askedAt = r.now.Mono
	off := len(r.out.buf)
	r.out.buf = wire.AppendSnapshotRequest(r.out.buf, r.part, &wire.SnapshotRequest{PeerHead: r.head(r.cfg.Primary.Boot), Base: in.base, From: in.next})
	r.out.send(r.cfg.Primary.Address, off, nil)
}

// tickInstall repeats the request of a missing part.
func (r *Replica) tickInstall() {
	if in := &r.backup.install; in.base != 0 && r.backup.accepted && r.now.Mono-in.askedAt >= int64(r.opt.Timing.Resend) {
		r.askSnapshot()
	}
}

// snapshotRequest answers with the requested part, or with the present base.
func (r *Replica) snapshotRequest(frame []byte) error {
	var m wire.SnapshotRequest
	if err := wire.DecodeSnapshotRequest(frame, &m); err != nil {
		return err
	}
	p := r.peer(m.PeerHead.From)
	if r.role != RolePrimary || m.To != r.self.Boot || m.Epoch != r.epoch && !mutant(mutStaleSnapshotRequest) || p == nil || !p.learner() {
		r.count.StaleFrames++
		return nil
	}
	p.heardAt, p.wantedAt = r.now.Mono, r.now.Mono
	p.reached()
	base, hash := r.store.Base()
	slots := uint32(r.base.SnapshotSlots())
	if m.Base != base || m.From > slots {
		if p.stage == stageInstalling {
			r.joinReplyTo(&p.Member, wire.JoinAccepted, base+1, "")
		}
		return nil
	}
	off := len(r.out.buf)
	s := wire.Snapshot{PeerHead: r.head(p.Boot), Base: base, Hash: hash, From: m.From, Slots: slots}
	r.text, s.Next = r.base.AppendSnapshot(r.text[:0], m.From)
	s.State = r.text
	r.out.buf = wire.AppendSnapshot(r.out.buf, r.part, &s)
	r.out.send(p.Address, off, nil)
	r.out.last().Bulk = true
	r.count.LearnerBytes += uint64(len(s.State))
	return nil
}

// snapshot adds a part, and with the last one installs the state.
func (r *Replica) snapshot(frame []byte) error {
	var m wire.Snapshot
	if err := wire.DecodeSnapshot(frame, &m); err != nil {
		return err
	}
	in := &r.backup.install
	if r.role != RoleLearner || !r.fromPrimary(&m.PeerHead) || m.Base != in.base || m.From != in.next {
		r.count.StaleFrames++
		return nil
	}
	r.backup.heardAt = r.now.Mono
	err := in.state.Restore(m.State, m.Base, m.From, m.Next)
	if err == nil && m.Next >= m.Slots {
		err = in.state.Restored()
	}
	if err != nil {
		*in = installState{}
		r.backup.accepted = false // and restart from the beginning
		return &wire.FrameError{Type: wire.TypeSnapshot, Field: err.Field, Value: err.Value, Allowed: err.Allowed}
	}
	if in.next = m.Next; in.next < m.Slots {
		r.askSnapshot()
		return nil
	}
	r.install(m.Base, m.Hash)
	return nil
}

// install makes the base state this replica's own: its log, which is empty, begins after
// the last entry of that state. A state that does not fit ends the replica.
func (r *Replica) install(base, hash uint64) {
	state := r.backup.install.state
	r.backup.install = installState{}
	if err := r.beginBehind(&state, base, hash); err != nil {
		r.alarm(AlarmCapacity, err.Error())
		r.restart("cannot store the state that the primary can: " + err.Error())
		return
	}
	if mutant(mutSnapshotBare) {
		r.live.Sessions.ForgetReplies()
	}
	r.commitTo(base)
	r.backup.ackDue = true
}

// beginBehind makes the state after entry base that of this replica, whose log is empty.
func (r *Replica) beginBehind(state *machine.Machine, base, hash uint64) error {
	if err := r.store.SetBase(base, hash, state.Sessions.Slots(), state.Fix.Slots()); err != nil {
		return err
	}
	r.base = *state
	r.live = state.Clone()
	if r.execs != nil {
		r.execs.begin(base, state.Books.Position())
		r.execs.trade(r.live.Books.Instruments())
		*r.reports = fixReports{}
		r.tapes = nil // these books have none
	}
	r.marks = marks{}
	r.seats = seats{sessions: map[uint64]int{}}
	r.fix = fixSessions{}
	r.functions = functionsState{records: records{dropped: base}}
	r.mayFree = base
	r.readersBehind(state)
	r.logged.begin(r)
	return nil
}

// BaseSession is a session after the freed part of the log.
type BaseSession struct {
	Slot uint32
	ID   [2]uint64
}

// Base is the state after the freed part of the log, as far as a reader of the rest needs
// it: the last freed entry, its hash, the lineage and the sessions open then. All zero
// when nothing is freed.
func (r *Replica) Base() (seq, hash, lineage uint64, sessions []BaseSession) {
	seq, hash = r.store.Base()
	for slot := range uint32(r.base.Sessions.Slots()) {
		if s := r.base.Sessions.At(slot); s.Open {
			sessions = append(sessions, BaseSession{Slot: slot, ID: s.ID})
		}
	}
	return seq, hash, r.base.Orders.Lineage, sessions
}
