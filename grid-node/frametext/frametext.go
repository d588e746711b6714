// Package frametext formats frames as text: for the traces of the simulator and of the
// scripted cases of grid-node/replica.
package frametext

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Peer is a frame between replicas. short may shorten member ids; nil keeps them.
func Peer(frame []byte, short func(string) string) string {
	if short == nil {
		short = func(s string) string { return s }
	}
	t := wire.FrameType(frame)
	switch t {
	case wire.TypePrepare:
		var p wire.Prepare
		if err := wire.DecodePrepare(frame, &p); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("Prepare epoch %d %s commit %d%s", p.Epoch, entries(p.Entries), p.CommitSeq, learner(p.Flags))
	case wire.TypePrepareAck:
		var a wire.PrepareAck
		if err := wire.DecodePrepareAck(frame, &a); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s epoch %d stored %d", t, a.Epoch, a.StoredSeq)
	case wire.TypeNack:
		var a wire.Nack
		if err := wire.DecodeNack(frame, &a); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("Nack epoch %d expects %d", a.Epoch, a.Expected)
	case wire.TypeFeatures:
		var m wire.FeaturesAre
		if err := wire.DecodeFeatures(frame, &m); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("Features epoch %d", m.Epoch) // which they are changes with each release
	case wire.TypeJoin:
		var j wire.Join
		if err := wire.DecodeJoin(frame, &j); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("Join %s has %d", short(string(j.Member)), j.LastSeq)
	case wire.TypeJoinReply:
		var j wire.JoinReply
		if err := wire.DecodeJoinReply(frame, &j); err != nil {
			return err.Error()
		}
		if j.Code != wire.JoinAccepted {
			return fmt.Sprintf("JoinReply refused (%d): %s", j.Code, short(string(j.Text)))
		}
		return fmt.Sprintf("JoinReply accepted, from %d", j.FromSeq)
	case wire.TypeDigest:
		var m wire.Digest
		if err := wire.DecodeDigest(frame, &m); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("Digest epoch %d entry %d state %016x", m.Epoch, m.Seq, m.State)
	case wire.TypeSnapshotRequest:
		var m wire.SnapshotRequest
		if err := wire.DecodeSnapshotRequest(frame, &m); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("SnapshotRequest up to %d, from slot %d", m.Base, m.From)
	case wire.TypeSnapshot:
		var m wire.Snapshot
		if err := wire.DecodeSnapshot(frame, &m); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("Snapshot up to %d, slots %d..%d of %d", m.Base, m.From, m.Next, m.Slots)
	case wire.TypeNewConfig:
		var c wire.NewConfig
		if err := wire.DecodeNewConfig(frame, &c); err != nil {
			return err.Error()
		}
		var ids []string
		for _, mb := range c.Members[:c.N] {
			ids = append(ids, short(string(mb.Member)))
		}
		return fmt.Sprintf("NewConfig epoch %d [%s]", c.Epoch, strings.Join(ids, " "))
	}
	return t.String()
}

// Quiet reports whether a frame between replicas carries no news: a heartbeat.
func Quiet(frame []byte) bool {
	t := wire.FrameType(frame)
	return t == wire.TypeHeartbeat || t == wire.TypeHeartbeatAck
}

func learner(flags uint8) string {
	if flags&wire.FlagLearner != 0 {
		return " (learner)"
	}
	return ""
}

func entries(b []byte) string {
	var first, last uint64
	for len(b) > 0 {
		var e order.Entry
		_, rest, err := order.NextEntry(b, &e)
		if err != nil {
			return err.Error()
		}
		if first == 0 {
			first = e.Seq
		}
		last, b = e.Seq, rest
	}
	if first == last {
		return fmt.Sprintf("entry %d", first)
	}
	return fmt.Sprintf("entries %d..%d", first, last)
}

// Request is a frame of a client.
func Request(frame []byte) string {
	switch t := wire.FrameType(frame); t {
	case wire.TypeOpenSession:
		var m wire.OpenSession
		_ = wire.DecodeOpenSession(frame, &m)
		return fmt.Sprintf("OpenSession %d: id %x-%x", m.ReqID, m.IDHi, m.IDLo)
	case wire.TypeSubmit:
		var m wire.Submit
		_ = wire.DecodeSubmit(frame, &m)
		return fmt.Sprintf("Submit slot %d clientSeq %d: %s", m.Slot, m.ClientSeq, clOrdID(m.Payload))
	case wire.TypeGet:
		var m wire.Get
		_ = wire.DecodeGet(frame, &m)
		mode := [...]string{"?", "confirmed", "leased", "backup"}[m.Mode&3]
		if m.By == wire.ByFix {
			id, day, clOrdID := wire.SplitFixKey(m.Key)
			return fmt.Sprintf("Get %d %s: %s of FIX session %x-%x on day %d", m.ReqID, mode, clOrdID, id[0], id[1], day)
		}
		return fmt.Sprintf("Get %d %s: %s", m.ReqID, mode, m.Key)
	default:
		return fixRequest(frame)
	}
}

// clOrdID of an untrusted FIX message.
func clOrdID(fix []byte) string {
	_, rest, ok := strings.Cut(string(fix), "\x0111=")
	if !ok {
		return "no ClOrdID"
	}
	id, _, _ := strings.Cut(rest, "\x01")
	return id
}

// Reply is a frame to a client.
func Reply(frame []byte) string {
	switch t := wire.FrameType(frame); t {
	case wire.TypeAck:
		var m wire.Ack
		_ = wire.DecodeAck(frame, &m)
		dup := ""
		if m.Flags&wire.AckDup != 0 {
			dup = " (already applied)"
		}
		return fmt.Sprintf("Ack clientSeq %d: seq %d epoch %d copies %d%s", m.ClientSeq, m.Seq, m.Epoch, m.Copies, dup)
	case wire.TypeReject:
		var m wire.Reject
		_ = wire.DecodeReject(frame, &m)
		return fmt.Sprintf("Reject %d: %s tag %d detail %d: %s", m.RequestID, m.Code, m.Tag, m.Detail, m.Text)
	case wire.TypeNotPrimary:
		var m wire.NotPrimary
		_ = wire.DecodeNotPrimary(frame, &m)
		return fmt.Sprintf("NotPrimary %d (%s): epoch %d, ask %q", m.RequestID, m.ForType, m.Epoch, m.Address)
	case wire.TypeSessionOpened:
		var m wire.SessionOpened
		_ = wire.DecodeSessionOpened(frame, &m)
		return fmt.Sprintf("SessionOpened slot %d generation %d window %d last %d", m.Slot, m.Generation, m.Window, m.LastClientSeq)
	case wire.TypeGetReply:
		var m wire.GetReply
		_ = wire.DecodeGetReply(frame, &m)
		if m.Status == wire.GetFreed {
			return fmt.Sprintf("GetReply %d: freed up to %d", m.ReqID, m.Freed)
		}
		if m.Status == wire.GetNotFound {
			return fmt.Sprintf("GetReply %d: not found, commit %d", m.ReqID, m.CommitSeq)
		}
		return fmt.Sprintf("GetReply %d: seq %d ClOrdID %s, commit %d", m.ReqID, order.Seq(m.Entry), order.ClOrdID(m.Entry), m.CommitSeq)
	case wire.TypeLogChunk:
		var m wire.LogChunk
		_ = wire.DecodeLogChunk(frame, &m)
		if len(m.Entries) == 0 {
			return fmt.Sprintf("LogChunk %d: nothing from %d, commit %d", m.ReqID, m.FirstSeq, m.CommitSeq)
		}
		return fmt.Sprintf("LogChunk %d: %s, commit %d last %d", m.ReqID, entries(m.Entries), m.CommitSeq, m.LastSeq)
	case wire.TypeAdvanced:
		var m wire.Advanced
		_ = wire.DecodeAdvanced(frame, &m)
		return fmt.Sprintf("Advanced %d: seq %d", m.ReqID, m.Seq)
	case wire.TypeLinkState:
		var m wire.LinkState
		_ = wire.DecodeLinkState(frame, &m)
		return fmt.Sprintf("LinkState %d: stored %d commit %d term %d lineage %d", m.ReqID, m.Seq, m.CommitSeq, m.Term, m.Lineage)
	default:
		return fixReply(frame)
	}
}
