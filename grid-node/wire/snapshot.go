package wire

// The state after the freed entries, for learners.
const (
	TypeSnapshotRequest Type = 0x49
	TypeSnapshot        Type = 0x4a
)

var snapshotFrames = []Frame{
	{Type: TypeSnapshotRequest, Name: "SnapshotRequest", From: FromPeer, ToReplica: true, codec: codecOn(DecodeSnapshotRequest, AppendSnapshotRequest),
		Example: &SnapshotRequest{PeerHead: exampleHead, Base: 1000}},
	{Type: TypeSnapshot, Name: "Snapshot", From: FromPeer, ToReplica: true, codec: codecOn(DecodeSnapshot, AppendSnapshot),
		Example: &Snapshot{PeerHead: exampleHead, Base: 1000, Hash: 0x1122334455667788, From: 0, Next: 1, Slots: 2, State: []byte("state")}},
}

// SnapshotRequest is a learner's request for a part of the state after the freed prefix of
// the log.
type SnapshotRequest struct {
	PeerHead
	Base uint64 // entry up to which the log was freed, as in JoinReply
	From uint32 // session slot to begin with; 0 first, then Next of the part before
}

// AppendSnapshotRequest appends a SnapshotRequest frame.
func AppendSnapshotRequest(dst []byte, p PartitionID, m *SnapshotRequest) []byte {
	dst, f := begin(dst, TypeSnapshotRequest, 0, p, peerFixed+16)
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.Base)
	le.PutUint32(f[40:], m.From)
	le.PutUint32(f[44:], 0)
	return dst
}

// DecodeSnapshotRequest decodes a SnapshotRequest frame.
func DecodeSnapshotRequest(f []byte, m *SnapshotRequest) error {
	if err := open(f, TypeSnapshotRequest, peerFixed+16, true); err != nil {
		return err
	}
	m.get(f)
	m.Base = le.Uint64(f[32:])
	m.From = le.Uint32(f[40:])
	if m.Base == 0 {
		return &FrameError{Type: TypeSnapshotRequest, Field: "base", Value: 0, Allowed: "1 or more: nothing is freed otherwise"}
	}
	return nil
}

// Snapshot is a part of the state after entries 1 to Base. The parts of one Base are
// always the same.
type Snapshot struct {
	PeerHead
	Base  uint64
	Hash  uint64 // of entry Base
	From  uint32 // first session slot of this part
	Next  uint32 // first slot of the next part; Slots in the last
	Slots uint32 // slots in all, of FIX sessions, of sessions, and of books
	State []byte // see docs/protocol.md
}

const snapshotFixed = peerFixed + 32

// MaxSnapshotState is how many bytes of state fit one Snapshot frame.
const MaxSnapshotState = MaxFrame - snapshotFixed

// AppendSnapshot appends a Snapshot frame.
func AppendSnapshot(dst []byte, p PartitionID, m *Snapshot) []byte {
	dst, f := begin(dst, TypeSnapshot, 0, p, snapshotFixed+len(m.State))
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.Base)
	le.PutUint64(f[40:], m.Hash)
	le.PutUint32(f[48:], m.From)
	le.PutUint32(f[52:], m.Next)
	le.PutUint32(f[56:], m.Slots)
	le.PutUint32(f[60:], 0)
	copy(f[snapshotFixed:], m.State)
	return dst
}

// DecodeSnapshot decodes a Snapshot frame. State is checked by its receiver.
func DecodeSnapshot(f []byte, m *Snapshot) error {
	if err := open(f, TypeSnapshot, snapshotFixed, false); err != nil {
		return err
	}
	m.get(f)
	m.Base = le.Uint64(f[32:])
	m.Hash = le.Uint64(f[40:])
	m.From = le.Uint32(f[48:])
	m.Next = le.Uint32(f[52:])
	m.Slots = le.Uint32(f[56:])
	m.State = f[snapshotFixed:]
	switch {
	case m.Base == 0:
		return &FrameError{Type: TypeSnapshot, Field: "base", Value: 0, Allowed: "1 or more"}
	case m.Slots > 1<<16+1<<17+1<<16:
		return &FrameError{Type: TypeSnapshot, Field: "slots", Value: uint64(m.Slots), Allowed: "0..262144"}
	case m.From > m.Next || m.Next > m.Slots || m.From == m.Next && m.From < m.Slots:
		return &FrameError{Type: TypeSnapshot, Field: "next", Value: uint64(m.Next), Allowed: "more than from, at most slots"}
	}
	return nil
}
