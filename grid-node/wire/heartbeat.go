package wire

// Heartbeats of many partitions at once.
const (
	TypeHeartbeat    Type = 0x4c
	TypeHeartbeatAck Type = 0x4d
)

var heartbeatFrames = []Frame{
	{Type: TypeHeartbeat, Name: "Heartbeat", From: FromPulse, codec: codecFor(TypeHeartbeat, DecodeHeartbeat, AppendHeartbeat),
		Example: &Heartbeat{SentNs: 2000000, Rows: []HeartbeatRow{{Partition: examplePartition, Flags: FlagLeased, PeerHead: exampleHead, CommitSeq: 5}}}},
	{Type: TypeHeartbeatAck, Name: "HeartbeatAck", From: FromPulse, codec: codecFor(TypeHeartbeatAck, DecodeHeartbeat, AppendHeartbeat),
		Example: &Heartbeat{SentNs: 2000000, Flags: FlagMore, Rows: []HeartbeatRow{{Partition: examplePartition, PeerHead: PeerHead{Epoch: 3, From: 0xb2, To: 0xa1}}}}},
}

// FlagMore on Heartbeat and HeartbeatAck: another one with the same time follows, and they
// count together.
const FlagMore uint8 = 1

// Heartbeat carries the heartbeats of all partitions that a node sends another at a
// moment, or the answers to them (HeartbeatAck). A connection keeps the last row of each
// partition: Rows are those that changed.
type Heartbeat struct {
	SentNs int64 // the sender's clock; in an answer the SentNs of the request
	Flags  uint8 // FlagMore
	Rows   []HeartbeatRow
}

// HeartbeatRow is the heartbeat of one partition. Epoch 0: removed.
type HeartbeatRow struct {
	PeerHead
	CommitSeq uint64 // 0 in an answer
	Partition PartitionID
	Flags     uint8 // FlagLeased; in an answer FlagDraining, FlagFull, FlagFollowed
}

// MaxHeartbeatRows is the maximum number of rows in one frame.
const MaxHeartbeatRows = 64

const (
	heartbeatFixed   = HeaderSize + 12
	heartbeatRowSize = 36
)

// MaxHeartbeat is the size of the largest Heartbeat frame.
const MaxHeartbeat = heartbeatFixed + MaxHeartbeatRows*heartbeatRowSize

// AppendHeartbeat appends a Heartbeat or HeartbeatAck frame, depending on t.
func AppendHeartbeat(dst []byte, t Type, m *Heartbeat) []byte {
	dst, f := begin(dst, t, m.Flags, 0, heartbeatFixed+len(m.Rows)*heartbeatRowSize)
	le.PutUint64(f[8:], uint64(m.SentNs))
	le.PutUint32(f[16:], uint32(len(m.Rows)))
	b := f[heartbeatFixed:]
	for i := range m.Rows {
		r := &m.Rows[i]
		le.PutUint16(b, uint16(r.Partition))
		b[2], b[3] = r.Flags, 0
		le.PutUint64(b[4:], r.Epoch)
		le.PutUint64(b[12:], r.From)
		le.PutUint64(b[20:], r.To)
		le.PutUint64(b[28:], r.CommitSeq)
		b = b[heartbeatRowSize:]
	}
	return dst
}

// DecodeHeartbeat decodes a Heartbeat or HeartbeatAck frame, depending on t. Rows of m are
// reused.
func DecodeHeartbeat(f []byte, t Type, m *Heartbeat) error {
	if err := open(f, t, heartbeatFixed, false); err != nil {
		return err
	}
	m.SentNs, m.Flags = int64(le.Uint64(f[8:])), f[5]
	n, b := le.Uint32(f[16:]), f[heartbeatFixed:]
	if n > MaxHeartbeatRows || int(n)*heartbeatRowSize != len(b) {
		return &FrameError{Type: t, Field: "rows", Value: uint64(n), Allowed: "0..64, and all of them in the frame"}
	}
	m.Rows = m.Rows[:0]
	for ; len(b) > 0; b = b[heartbeatRowSize:] {
		m.Rows = append(m.Rows, HeartbeatRow{
			Partition: PartitionID(le.Uint16(b)), Flags: b[2], CommitSeq: le.Uint64(b[28:]),
			PeerHead: PeerHead{Epoch: le.Uint64(b[4:]), From: le.Uint64(b[12:]), To: le.Uint64(b[20:])},
		})
	}
	return nil
}
