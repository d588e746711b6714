package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A learner of a log whose beginning is freed asks the primary for the base state,
// part by part, and then gets the entries behind it like any other. The primary
// frees nothing meanwhile, so all parts are of one base; it remembers nothing of
// the transfer, whoever lost a part asks again.

// snapshotPart is how many bytes of state one part has, about: one session more may
// go over it.
const snapshotPart = 64 << 10

// installState is a learner's transfer.
type installState struct {
	base    uint64 // entry it is of, 0: none is under way
	state   baseState
	next    uint32 // session slot to ask for
	askedAt int64
}

func truncatedText(base uint64) string {
	return fmt.Sprintf("entries up to %d are freed here: join with an empty log, for a snapshot", base)
}

// snapshotOut says whether a learner is being sent the base state.
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

// beginInstall is for a learner that was accepted with a log that begins later.
func (r *Replica) beginInstall(base uint64) {
	in := &r.backup.install
	if in.base != base {
		*in = installState{base: base}
		in.state.sessions.init(&r.opt.Limits)
	}
	r.askSnapshot()
}

func (r *Replica) askSnapshot() {
	in := &r.backup.install
	in.askedAt = r.now.Mono
	off := len(r.out.buf)
	r.out.buf = wire.AppendSnapshotRequest(r.out.buf, r.part, &wire.SnapshotRequest{PeerHead: r.head(r.cfg.Primary.Boot), Base: in.base, From: in.next})
	r.out.send(r.cfg.Primary.Address, off, nil, false)
}

// tickInstall asks again for a part that did not come.
func (r *Replica) tickInstall() {
	if in := &r.backup.install; in.base != 0 && r.backup.accepted && r.now.Mono-in.askedAt >= int64(r.opt.Timing.Resend) {
		r.askSnapshot()
	}
}

// snapshotRequest answers with the part asked for, or with the base there is now.
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
	p.heardAt = r.now.Mono
	p.reached()
	base, hash := r.store.Base()
	slots := uint32(len(r.base.sessions.slots))
	if m.Base != base || m.From > slots {
		if p.stage == stageInstalling {
			r.joinReplyTo(&p.Member, wire.JoinAccepted, base+1, "")
		}
		return nil
	}
	off := len(r.out.buf)
	s := wire.Snapshot{PeerHead: r.head(p.Boot), Base: base, Hash: hash, From: m.From, Slots: slots}
	r.text = r.text[:0]
	if m.From == 0 {
		r.text = r.base.appendHead(r.text)
	}
	for s.Next = m.From; s.Next < slots && (s.Next == m.From || len(r.text) < snapshotPart); s.Next++ {
		r.text = r.base.sessions.slots[s.Next].appendTo(r.text, r.base.sessions.window)
	}
	s.State = r.text
	r.out.buf = wire.AppendSnapshot(r.out.buf, r.part, &s)
	r.out.send(p.Address, off, nil, false)
	r.out.last().Bulk = true
	r.count.LearnerBytes += uint64(len(s.State))
	return nil
}

// snapshot takes a part in, and with the last one all of it.
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
	d := stateDecoder{b: m.State, base: m.Base, window: in.state.sessions.window}
	if m.From == 0 {
		d.head(&in.state)
	}
	for slot := m.From; slot < m.Next && d.err == nil; slot++ {
		d.session(&in.state.sessions, slot)
	}
	if d.err == nil && len(d.b) != 0 {
		d.fail("tail", uint64(len(d.b)), "no bytes behind the last session")
	}
	if d.err != nil {
		*in = installState{}
		r.backup.accepted = false // and ask again, from the beginning
		return d.err
	}
	if in.next = m.Next; in.next < m.Slots {
		r.askSnapshot()
		return nil
	}
	return r.install(m.Base, m.Hash)
}

// install makes the base state this replica's own.
func (r *Replica) install(base, hash uint64) error {
	state := r.backup.install.state
	r.backup.install = installState{}
	if r.beginBehind(base, hash, state) {
		r.backup.ackDue = true
	}
	return nil
}

// beginBehind makes an empty log one that begins behind an entry, which left the state
// given; false: it does not fit, and the replica ends.
func (r *Replica) beginBehind(base, hash uint64, state baseState) bool {
	if err := r.store.SetBase(base, hash, len(state.sessions.slots)); err != nil {
		r.alarm(AlarmCapacity, err.Error())
		r.restart("cannot store what the primary can: " + err.Error())
		return false
	}
	r.base = state
	r.sessions = state.sessions.clone()
	if mutant(mutSnapshotBare) {
		r.mutateSessions()
	}
	r.cursor = cursorState{logged: state.cursor, committed: state.cursor, dataSeq: base}
	r.truncate = truncateState{logged: base, committed: base}
	r.logged.begin(r)
	r.commitTo(base)
	return true
}
