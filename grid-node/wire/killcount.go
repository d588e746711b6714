package wire

// What a kill has cancelled, in a partition that matches.
const (
	TypeReadKill Type = 0x38
	TypeKillIs   Type = 0x39
)

var killFrames = []Frame{
	{Type: TypeReadKill, Name: "ReadKill", From: FromClient, ToReplica: true, Needs: MayRisk, codec: codecOn(DecodeReadKill, AppendReadKill),
		Example: &ReadKill{ReqID: 15, Scope: 1, Name: []byte("ann")}},
	{Type: TypeKillIs, Name: "KillIs", From: FromNode, codec: codecOn(DecodeKillIs, AppendKillIs),
		Example: &KillIs{ReqID: 15, CommitSeq: 20, State: KillComplete, Entry: 17, Complete: 19, Cancelled: 395}},
}

func (m *ReadKill) request() (uint64, uint32) { return m.ReqID, 0 }

// ReadKill asks a replica for what a kill in effect has cancelled, by its committed prefix. It is
// refused where this is neither primary nor backup.
type ReadKill struct {
	ReqID uint64
	Scope uint8  // as in Kill
	Name  []byte // none of all
}

const readKillFixed = HeaderSize + 16

// AppendReadKill appends a ReadKill frame.
func AppendReadKill(dst []byte, p PartitionID, m *ReadKill) []byte {
	name := clip(m.Name, MaxKillText)
	dst, f := begin(dst, TypeReadKill, 0, p, readKillFixed+len(name))
	le.PutUint64(f[8:], m.ReqID)
	f[16], f[17] = m.Scope, 0
	le.PutUint16(f[18:], uint16(len(name)))
	le.PutUint32(f[20:], 0)
	copy(f[readKillFixed:], name)
	return dst
}

// DecodeReadKill decodes a ReadKill frame; Name points into it.
func DecodeReadKill(f []byte, m *ReadKill) error {
	if err := open(f, TypeReadKill, readKillFixed, false); err != nil {
		return err
	}
	n := int(le.Uint16(f[18:]))
	if n > MaxKillText || n != len(f)-readKillFixed {
		return &FrameError{Type: TypeReadKill, Field: "nameLen", Value: uint64(n), Allowed: "0..1024, and the bytes that follow"}
	}
	if f[17] != 0 || le.Uint32(f[20:]) != 0 {
		return &FrameError{Type: TypeReadKill, Field: "reserved", Value: uint64(f[17]) | uint64(le.Uint32(f[20:])), Allowed: "0"}
	}
	*m = ReadKill{ReqID: le.Uint64(f[8:]), Scope: f[16], Name: f[readKillFixed:]}
	return nil
}

// States of a kill.
const (
	KillNone       uint8 = 0 // none of this scope and name is in effect
	KillRefuses    uint8 = 1 // it refuses orders and cancels none: of a partition that stores them, or with copies of a release before
	KillCancelling uint8 = 2 // orders that it means still rest
	KillComplete   uint8 = 3 // none does; Cancelled is how many it cancelled
)

// KillIs answers a ReadKill.
type KillIs struct {
	ReqID     uint64
	CommitSeq uint64
	State     uint8
	Entry     uint64 // of the kill, 0 for none
	Complete  uint64 // the entry with which the last order was cancelled, 0 before that
	Cancelled uint64 // orders, 0 before that
}

const killIsFixed = HeaderSize + 48

// AppendKillIs appends a KillIs frame.
func AppendKillIs(dst []byte, p PartitionID, m *KillIs) []byte {
	dst, f := begin(dst, TypeKillIs, 0, p, killIsFixed)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.CommitSeq)
	le.PutUint64(f[24:], uint64(m.State))
	le.PutUint64(f[32:], m.Entry)
	le.PutUint64(f[40:], m.Complete)
	le.PutUint64(f[48:], m.Cancelled)
	return dst
}

// DecodeKillIs decodes a KillIs frame.
func DecodeKillIs(f []byte, m *KillIs) error {
	if err := open(f, TypeKillIs, killIsFixed, true); err != nil {
		return err
	}
	state := le.Uint64(f[24:])
	if state > uint64(KillComplete) {
		return &FrameError{Type: TypeKillIs, Field: "state", Value: state, Allowed: "0..3"}
	}
	*m = KillIs{ReqID: le.Uint64(f[8:]), CommitSeq: le.Uint64(f[16:]), State: uint8(state), Entry: le.Uint64(f[32:]), Complete: le.Uint64(f[40:]), Cancelled: le.Uint64(f[48:])}
	return nil
}
