package replica_test

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// faults take messages away.
type faults struct {
	cut  map[[2]string]bool // by pod: nothing goes from the first to the second
	drop []dropRule
}

type dropRule struct {
	from, to string // pods
	typ      wire.Type
	skip     int // messages that pass first
	n        int // messages still to be dropped
}

func (f *faults) drops(w *world, m *message) bool {
	from, to := w.byAddress(m.from).pod, w.byAddress(m.to).pod
	if f.cut[[2]string{from, to}] {
		return true
	}
	for i := range f.drop {
		if d := &f.drop[i]; d.n > 0 && d.from == from && d.to == to && d.typ == wire.FrameType(m.frame) {
			if d.skip > 0 {
				d.skip--
				continue
			}
			d.n--
			return true
		}
	}
	return false
}

// tracing says whether a frame is worth a line: beacons are not.
func (w *world) tracing(m *message) bool {
	t := wire.FrameType(m.frame)
	return !w.quiet && t != wire.TypeBeaconAck && (t != wire.TypeBeacon || wire.FrameFlags(m.frame)&wire.FlagWantAck != 0)
}

func (w *world) frameText(m *message) string {
	who := w.byAddress(m.from).pod + " -> " + w.byAddress(m.to).pod + ": "
	t := wire.FrameType(m.frame)
	switch t {
	case wire.TypePrepare:
		var p wire.Prepare
		if err := wire.DecodePrepare(m.frame, &p); err != nil {
			return who + err.Error()
		}
		return who + fmt.Sprintf("Prepare epoch %d %s commit %d%s", p.Epoch, entriesText(p.Entries), p.CommitSeq, learnerText(p.Flags))
	case wire.TypePrepareAck, wire.TypeBeaconAck:
		var a wire.PeerAck
		if err := wire.DecodePeerAck(m.frame, t, &a); err != nil {
			return who + err.Error()
		}
		return who + fmt.Sprintf("%s epoch %d stored %d", t, a.Epoch, a.StoredSeq)
	case wire.TypeNack:
		var a wire.Nack
		if err := wire.DecodeNack(m.frame, &a); err != nil {
			return who + err.Error()
		}
		return who + fmt.Sprintf("Nack epoch %d expects %d", a.Epoch, a.Expected)
	case wire.TypeJoin:
		var j wire.Join
		if err := wire.DecodeJoin(m.frame, &j); err != nil {
			return who + err.Error()
		}
		return who + fmt.Sprintf("Join %s has %d", w.short(string(j.Member)), j.LastSeq)
	case wire.TypeJoinReply:
		var j wire.JoinReply
		if err := wire.DecodeJoinReply(m.frame, &j); err != nil {
			return who + err.Error()
		}
		if j.Code != wire.JoinAccepted {
			return who + fmt.Sprintf("JoinReply refused (%d): %s", j.Code, w.short(string(j.Text)))
		}
		return who + fmt.Sprintf("JoinReply accepted, from %d", j.FromSeq)
	case wire.TypeNewConfig:
		var c wire.NewConfig
		if err := wire.DecodeNewConfig(m.frame, &c); err != nil {
			return who + err.Error()
		}
		var ids []string
		for _, mb := range c.Members[:c.N] {
			ids = append(ids, w.short(string(mb.Member)))
		}
		return who + fmt.Sprintf("NewConfig epoch %d [%s]", c.Epoch, strings.Join(ids, " "))
	}
	return who + t.String()
}

func learnerText(flags uint8) string {
	if flags&wire.FlagLearner != 0 {
		return " (learner)"
	}
	return ""
}

func entriesText(b []byte) string {
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

func replyText(frame []byte) string {
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
		return fmt.Sprintf("LogChunk %d: %s, commit %d last %d", m.ReqID, entriesText(m.Entries), m.CommitSeq, m.LastSeq)
	default:
		return t.String()
	}
}
