package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Agreement on executions: an acknowledgement counts only with the position that this
// primary has after the same entry. The hash of a position runs over all records, so
// agreement on an entry is agreement on all before it.

// AlarmExecutionDiverged: two copies, or one with itself, made different executions of one
// log. Nothing from there on is reported.
const AlarmExecutionDiverged AlarmKind = "ExecutionDiverged"

// executed keeps what an entry that was just applied did.
func (r *Replica) executed() {
	b := r.live.Books
	r.execs.add(b.Position(), b.Records())
	r.execs.trade(b.Instruments())
	last, _ := r.store.Last()
	if len(r.tapes) > 0 {
		r.tape(last)
	}
	r.noteReports(last)
	if mutant(mutFixReportEarly) && r.role == RolePrimary {
		r.pushReports(last)
	}
	if mutant(mutReleaseEarly) && r.role == RolePrimary {
		r.pushExecutions(last, 0)
	}
}

// appendPrepare appends the frame of a batch without its entries, which end with through.
func (r *Replica) appendPrepare(m *wire.Prepare, through uint64) {
	if r.execs == nil {
		r.out.buf = wire.AppendPrepare(r.out.buf, r.part, m)
		return
	}
	at := r.execs.at(through)
	r.out.buf = wire.AppendPrepareExec(r.out.buf, r.part, &wire.PrepareExec{Prepare: *m, ExecSeq: at.ExecSeq, ExecHash: at.ExecHash})
}

// prepareExec stores and executes entries, and compares.
func (r *Replica) prepareExec(frame []byte) error {
	var m wire.PrepareExec
	if err := wire.DecodePrepareExec(frame, &m); err != nil {
		return err
	}
	if r.execs == nil {
		return &wire.FrameError{Type: wire.TypePrepareExec, Field: "type", Value: uint64(wire.TypePrepareExec), Allowed: "Prepare: this partition does not match"}
	}
	if err := r.prepared(&m.Prepare); err != nil || r.role != RoleBackup && r.role != RoleLearner || m.Epoch != r.epoch || m.From != r.cfg.Primary.Boot {
		return err
	}
	var e order.Entry
	for rest := m.Entries; len(rest) > 0; {
		var err error
		if _, rest, err = order.NextEntry(rest, &e); err != nil {
			return err
		}
	}
	base, _ := r.store.Base()
	last, _ := r.store.Last()
	theirs := match.Position{ExecSeq: m.ExecSeq, ExecHash: m.ExecHash}
	r.backup.executed = theirs
	if e.Seq < base || e.Seq > last || r.execs.at(e.Seq) == theirs {
		return nil
	}
	r.executionDiffers(r.cfg.Primary.ID, e.Seq, theirs)
	return nil
}

// Diverged reports whether another copy has executed otherwise an entry that is not
// committed: nothing from there on will be while both are in sync.
func (r *Replica) Diverged() bool { return r.execs != nil && r.execDiffers > r.commit }

// executionDiffers reports, now and then, that another copy made something else of the log.
func (r *Replica) executionDiffers(other string, seq uint64, theirs match.Position) {
	r.execDiffers = max(r.execDiffers, seq)
	if r.execDifferedAt != 0 && r.now.Mono-r.execDifferedAt < 10*int64(r.opt.Timing.Grace) {
		return
	}
	r.execDifferedAt = r.now.Mono
	own := r.execs.at(seq)
	r.alarm(AlarmExecutionDiverged, fmt.Sprintf("up to entry %d %s made %d records with hash %016x; here they are %d with %016x: nothing from there on is committed or reported while both are in sync; find out by the logs of the nodes and a re-execution which one is wrong, and stop it",
		seq, other, theirs.ExecSeq, theirs.ExecHash, own.ExecSeq, own.ExecHash))
}

// appendAck appends the acknowledgement of everything stored.
func (r *Replica) appendAck(m *wire.PrepareAck) {
	if r.execs == nil {
		r.out.buf = wire.AppendPrepareAck(r.out.buf, r.part, m)
		return
	}
	at := r.execs.at(m.StoredSeq)
	if mutant(mutPositionEchoed) && r.role != RolePrimary {
		at = r.backup.executed
	}
	r.out.buf = wire.AppendPrepareExecAck(r.out.buf, r.part, &wire.PrepareExecAck{PrepareAck: *m, ExecSeq: at.ExecSeq, ExecHash: at.ExecHash})
}

// prepareExecAck handles an acknowledgement of a copy that executes. One whose position
// differs shows that its sender is alive, and nothing more.
func (r *Replica) prepareExecAck(frame []byte) error {
	var m wire.PrepareExecAck
	if err := wire.DecodePrepareExecAck(frame, &m); err != nil {
		return err
	}
	if r.execs == nil {
		return &wire.FrameError{Type: wire.TypePrepareExecAck, Field: "type", Value: uint64(wire.TypePrepareExecAck), Allowed: "PrepareAck: this partition does not match"}
	}
	base, _ := r.store.Base()
	last, _ := r.store.Last()
	p := r.peer(m.From)
	if r.role != RolePrimary || m.To != r.self.Boot || m.Epoch != r.epoch || p == nil || m.StoredSeq < base || m.StoredSeq > last || r.store.HashAt(m.StoredSeq) != m.Hash {
		return r.acknowledged(&m.PrepareAck)
	}
	at := m.StoredSeq
	if mutant(mutPositionOfLast) {
		at = last
	}
	theirs := match.Position{ExecSeq: m.ExecSeq, ExecHash: m.ExecHash}
	if r.execs.at(at) == theirs || mutant(mutPositionIgnored) {
		return r.acknowledged(&m.PrepareAck)
	}
	r.executionDiffers(p.ID, m.StoredSeq, theirs)
	if !p.synced || p.stored < base {
		return nil
	}
	m.StoredSeq, m.Hash = p.stored, r.store.HashAt(p.stored)
	return r.acknowledged(&m.PrepareAck)
}

// freedExecution compares what the base made of an entry that is freed with what the live
// state made of it, and frees that. A copy that differs from itself is none.
func (r *Replica) freedExecution(seq uint64) bool {
	again, first := r.base.Books.Position(), r.execs.at(seq)
	r.freeReports(seq)
	r.execs.free()
	if again == first {
		return true
	}
	text := fmt.Sprintf("up to entry %d, executed again as it is freed, there are %d records with hash %016x; they were %d with %016x", seq, again.ExecSeq, again.ExecHash, first.ExecSeq, first.ExecHash)
	r.alarm(AlarmExecutionDiverged, text)
	r.restart(text)
	return false
}
