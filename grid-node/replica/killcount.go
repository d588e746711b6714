package replica

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// readKill answers with what a kill has cancelled, by the committed prefix.
func (r *Replica) readKill(conn uint64, frame []byte) error {
	var m wire.ReadKill
	if err := wire.DecodeReadKill(frame, &m); err != nil {
		return err
	}
	if r.ofOlderLineage() || r.role != RolePrimary && r.role != RoleBackup {
		r.notPrimary(conn, wire.TypeReadKill, m.ReqID, 0)
		return nil
	}
	reply := wire.KillIs{ReqID: m.ReqID, CommitSeq: r.commit}
	if g := r.live.Guard; g != nil {
		for i := range g.Kills() {
			k := &g.Kills()[i]
			if k.Scope != order.GuardScope(m.Scope) || k.Name != string(m.Name) || k.Entry > r.commit {
				continue
			}
			switch reply.Entry = k.Entry; {
			case r.live.Books == nil || !g.Names():
				reply.State = wire.KillRefuses
			case k.Complete == 0 || k.Complete > r.commit:
				reply.State = wire.KillCancelling
			default:
				reply.State, reply.Complete, reply.Cancelled = wire.KillComplete, k.Complete, k.Cancelled
			}
		}
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendKillIs(r.out.buf, r.part, &reply)
	r.out.reply(conn, off, nil)
	return nil
}
