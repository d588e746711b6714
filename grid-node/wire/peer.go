package wire

// Replication.
const (
	TypePrepare    Type = 0x40
	TypePrepareAck Type = 0x41
	TypeNack       Type = 0x42
	TypeBeacon     Type = 0x44
	TypeDigest     Type = 0x4b
)

var peerFrames = []Frame{
	{Type: TypePrepare, Name: "Prepare", From: FromPeer, ToReplica: true, codec: codecOn(DecodePrepare, AppendPrepare),
		Example: &Prepare{PeerHead: exampleHead, CommitSeq: 4, Round: 100, SentNs: 1000000, Flags: FlagLearner, Entries: exampleEntry}},
	{Type: TypePrepareAck, Name: "PrepareAck", From: FromPeer, ToReplica: true, codec: codecOn(DecodePrepareAck, AppendPrepareAck),
		Example: &PrepareAck{PeerHead: exampleHead, StoredSeq: 5, Hash: 0x1122334455667788, Round: 100, EchoNs: 1000000}},
	{Type: TypeNack, Name: "Nack", From: FromPeer, ToReplica: true, codec: codecOn(DecodeNack, AppendNack),
		Example: &Nack{PeerHead: exampleHead, Expected: 4}},
	{Type: TypeFeatures, Name: "Features", From: FromPeer, ToReplica: true, codec: codecOn(DecodeFeatures, AppendFeatures),
		Example: &FeaturesAre{PeerHead: exampleHead, Known: FeatureFixBooks, Computes: [MaxComputes]uint64{0xbab0b919046b5de4}}},
	{Type: TypeBeacon, Name: "Beacon", From: FromPeer, ToReplica: true, codec: codecOn(DecodeBeacon, AppendBeacon),
		Example: &Beacon{PeerHead: exampleHead, CommitSeq: 5, Round: 101, SentNs: 2000000, Flags: FlagLeased}},
	{Type: TypeDigest, Name: "Digest", From: FromPeer, ToReplica: true, codec: codecOn(DecodeDigest, AppendDigest),
		Example: &Digest{PeerHead: exampleHead, Seq: 4096, Hash: 0x1122334455667788, State: 0x99aabbccddeeff00, Form: 1}},
}

// Between replicas every frame begins with {epoch, from, to}. From and To are boot ids:
// frames from or to a former process of the same pod have another boot id and are dropped,
// whatever connection they arrive on.

// PeerHead is the common beginning of all frames between replicas.
type PeerHead struct {
	Epoch uint64
	From  uint64 // boot id of the sender
	To    uint64 // boot id of the receiver
}

const peerFixed = HeaderSize + 24

func putHead(f []byte, h *PeerHead) {
	le.PutUint64(f[8:], h.Epoch)
	le.PutUint64(f[16:], h.From)
	le.PutUint64(f[24:], h.To)
}

func (h *PeerHead) get(f []byte) {
	h.Epoch = le.Uint64(f[8:])
	h.From = le.Uint64(f[16:])
	h.To = le.Uint64(f[24:])
}

// Prepare replicates log entries. It also serves as a Beacon.
type Prepare struct {
	PeerHead
	CommitSeq uint64 // the primary's committed prefix
	Round     uint64 // counts messages of this primary; echoed, so that a read can tell which answers are later than itself
	SentNs    int64  // the primary's clock; echoed, the lease counts from here
	Flags     uint8  // FlagLearner, FlagLeased
	Entries   []byte // one or more entries, contiguous, each padded to 8 bytes
}

// PrepareFixed is the size of a Prepare frame without its entries.
const PrepareFixed = peerFixed + 24

// MaxPrepareEntries is how many bytes of entries fit one Prepare frame.
const MaxPrepareEntries = (MaxFrame - PrepareFixed) &^ 7

// AppendPrepare appends a Prepare frame.
func AppendPrepare(dst []byte, p PartitionID, m *Prepare) []byte {
	dst, f := begin(dst, TypePrepare, m.Flags, p, PrepareFixed+len(m.Entries))
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.CommitSeq)
	le.PutUint64(f[40:], m.Round)
	le.PutUint64(f[48:], uint64(m.SentNs))
	copy(f[PrepareFixed:], m.Entries)
	return dst
}

// DecodePrepare decodes a Prepare frame. Entries are iterated and checked with
// order.NextEntry.
func DecodePrepare(f []byte, m *Prepare) error {
	if err := open(f, TypePrepare, PrepareFixed, false); err != nil {
		return err
	}
	m.get(f)
	m.CommitSeq = le.Uint64(f[32:])
	m.Round = le.Uint64(f[40:])
	m.SentNs = int64(le.Uint64(f[48:]))
	m.Flags = f[5]
	m.Entries = f[PrepareFixed:]
	if len(m.Entries) == 0 {
		return &FrameError{Type: TypePrepare, Field: "entries", Value: 0, Allowed: "one entry or more"}
	}
	return entriesLen(m.Entries, TypePrepare)
}

// PrepareAck acknowledges that the sender stores everything up to StoredSeq. It is cumulative.
type PrepareAck struct {
	PeerHead
	StoredSeq uint64
	Hash      uint64 // of the entry StoredSeq: an ack of another history is recognised
	Round     uint64 // echo of the last Prepare or Beacon received
	EchoNs    int64  // echo of its SentNs
	Flags     uint8  // FlagDraining, FlagFull, FlagReachesArbiter
}

// PrepareAckSize is the size of a PrepareAck frame.
const PrepareAckSize = peerFixed + 32

// AppendPrepareAck appends a PrepareAck frame.
func AppendPrepareAck(dst []byte, p PartitionID, m *PrepareAck) []byte {
	dst, f := begin(dst, TypePrepareAck, m.Flags, p, PrepareAckSize)
	_ = f[PrepareAckSize-1]
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.StoredSeq)
	le.PutUint64(f[40:], m.Hash)
	le.PutUint64(f[48:], m.Round)
	le.PutUint64(f[56:], uint64(m.EchoNs))
	return dst
}

// DecodePrepareAck decodes a PrepareAck frame.
func DecodePrepareAck(f []byte, m *PrepareAck) error {
	if err := open(f, TypePrepareAck, PrepareAckSize, true); err != nil {
		return err
	}
	m.get(f)
	m.StoredSeq = le.Uint64(f[32:])
	m.Hash = le.Uint64(f[40:])
	m.Round = le.Uint64(f[48:])
	m.EchoNs = int64(le.Uint64(f[56:]))
	m.Flags = f[5]
	return nil
}

// Nack requests the log again from Expected on: something was lost in between.
type Nack struct {
	PeerHead
	Expected uint64
}

// AppendNack appends a Nack frame.
func AppendNack(dst []byte, p PartitionID, m *Nack) []byte {
	dst, f := begin(dst, TypeNack, 0, p, peerFixed+8)
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.Expected)
	return dst
}

// DecodeNack decodes a Nack frame.
func DecodeNack(f []byte, m *Nack) error {
	if err := open(f, TypeNack, peerFixed+8, true); err != nil {
		return err
	}
	m.get(f)
	m.Expected = le.Uint64(f[32:])
	return nil
}

// Beacon requests, after the data, a PrepareAck of its round. Heartbeat carries liveness.
type Beacon struct {
	PeerHead
	CommitSeq uint64
	Round     uint64
	SentNs    int64
	Flags     uint8 // FlagLeased, FlagWantArbiter, FlagWantFeatures, FlagCommit
}

// AppendBeacon appends a Beacon frame.
func AppendBeacon(dst []byte, p PartitionID, m *Beacon) []byte {
	dst, f := begin(dst, TypeBeacon, m.Flags, p, peerFixed+24)
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.CommitSeq)
	le.PutUint64(f[40:], m.Round)
	le.PutUint64(f[48:], uint64(m.SentNs))
	return dst
}

// DecodeBeacon decodes a Beacon frame.
func DecodeBeacon(f []byte, m *Beacon) error {
	if err := open(f, TypeBeacon, peerFixed+24, true); err != nil {
		return err
	}
	m.get(f)
	m.CommitSeq = le.Uint64(f[32:])
	m.Round = le.Uint64(f[40:])
	m.SentNs = int64(le.Uint64(f[48:]))
	m.Flags = f[5]
	return nil
}

// Digest carries the digest of the sender's state after an entry.
type Digest struct {
	PeerHead
	Seq   uint64
	Hash  uint64 // of the entry
	State uint64 // the digest
	Form  uint32 // version of the digest: only equal forms are comparable
}

// AppendDigest appends a Digest frame.
func AppendDigest(dst []byte, p PartitionID, m *Digest) []byte {
	dst, f := begin(dst, TypeDigest, 0, p, peerFixed+32)
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.Seq)
	le.PutUint64(f[40:], m.Hash)
	le.PutUint64(f[48:], m.State)
	le.PutUint32(f[56:], m.Form)
	le.PutUint32(f[60:], 0)
	return dst
}

// DecodeDigest decodes a Digest frame.
func DecodeDigest(f []byte, m *Digest) error {
	if err := open(f, TypeDigest, peerFixed+32, true); err != nil {
		return err
	}
	m.get(f)
	m.Seq = le.Uint64(f[32:])
	m.Hash = le.Uint64(f[40:])
	m.State = le.Uint64(f[48:])
	m.Form = le.Uint32(f[56:])
	return nil
}
