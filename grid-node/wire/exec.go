package wire

// Partitions that match: in place of Prepare and PrepareAck go frames that say how much the
// sender has executed, and which output that made.
const (
	TypeExecutions     Type = 0x2a
	TypePrepareExec    Type = 0x4e
	TypePrepareExecAck Type = 0x4f
	TypeReadExecutions Type = 0x6e
	TypeExecutionsRead Type = 0x6f
)

var execFrames = []Frame{
	{Type: TypeExecutions, Name: "Executions", From: FromNode, codec: codecOn(DecodeExecutions, AppendExecutions),
		Example: &Executions{Entry: 17, Hash: 0x1122334455667788, Slot: 4, Records: exampleRecord(nil, 2)}},
	{Type: TypePrepareExec, Name: "PrepareExec", From: FromPeer, ToReplica: true, codec: codecOn(DecodePrepareExec, AppendPrepareExec),
		Example: &PrepareExec{Prepare: Prepare{PeerHead: exampleHead, CommitSeq: 4, Round: 100, SentNs: 1000000, Entries: exampleEntry}, ExecSeq: 12, ExecHash: 0x99aabbccddeeff00}},
	{Type: TypePrepareExecAck, Name: "PrepareExecAck", From: FromPeer, ToReplica: true, codec: codecOn(DecodePrepareExecAck, AppendPrepareExecAck),
		Example: &PrepareExecAck{PrepareAck: PrepareAck{PeerHead: exampleHead, StoredSeq: 5, Hash: 0x1122334455667788, Round: 100, EchoNs: 1000000}, ExecSeq: 12, ExecHash: 0x99aabbccddeeff00}},
	{Type: TypeReadExecutions, Name: "ReadExecutions", From: FromClient, ToReplica: true, Needs: MayWatch, codec: codecOn(DecodeReadExecutions, AppendReadExecutions),
		Example: &ReadExecutions{ReqID: 12, From: 17, MaxBytes: 65536}},
	{Type: TypeExecutionsRead, Name: "ExecutionsRead", From: FromNode, codec: codecOn(DecodeExecutionsRead, AppendExecutionsRead),
		Example: &ExecutionsRead{ReqID: 12, CommitSeq: 20, Through: 19, Records: exampleRecord([]byte{17, 7: 0}, 2)}},
}

// exampleRecord is a record of so many bytes that mean nothing, with its number.
func exampleRecord(dst []byte, n uint32) []byte {
	dst = le.AppendUint64(dst, uint64(n))
	for i := range uint64(ExecRecordSize / 8) {
		dst = le.AppendUint64(dst, i)
	}
	return dst
}

// FlagExecutions of OpenSession asks for Executions frames on the connection, in a partition
// that matches. Nodes of releases before ignore it.
const FlagExecutions uint8 = 1

// ExecRecordSize is the size of a record of grid-node/match.
const ExecRecordSize = 64

// ExecSize is the size of a record of an entry that is known: its number in the entry as
// u32, u32 0, and the record. Behind the number of its entry, as u64, it is ExecReadSize.
const (
	ExecSize     = 8 + ExecRecordSize
	ExecReadSize = 8 + ExecSize
)

// Executions brings the records of a committed entry that are of a session, to the
// connection that has it. Their ids are those of the entry with their number behind it:
// p1/17.2. It is sent once: ReadExecutions has what a broken connection lost.
type Executions struct {
	Entry   uint64
	Hash    uint64 // of the entry
	Slot    uint32 // of the session
	Records []byte // of ExecSize each, numbers rising from 1
}

const executionsFixed = HeaderSize + 24

// MaxExecutions is how many records fit one Executions frame.
const MaxExecutions = (MaxFrame - executionsFixed) / ExecSize

// AppendExecutions appends an Executions frame.
func AppendExecutions(dst []byte, p PartitionID, m *Executions) []byte {
	dst, f := begin(dst, TypeExecutions, 0, p, executionsFixed+len(m.Records))
	le.PutUint64(f[8:], m.Entry)
	le.PutUint64(f[16:], m.Hash)
	le.PutUint32(f[24:], m.Slot)
	le.PutUint32(f[28:], uint32(len(m.Records)/ExecSize))
	copy(f[executionsFixed:], m.Records)
	return dst
}

// DecodeExecutions decodes an Executions frame.
func DecodeExecutions(f []byte, m *Executions) error {
	if err := open(f, TypeExecutions, executionsFixed, false); err != nil {
		return err
	}
	m.Entry, m.Hash, m.Slot, m.Records = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint32(f[24:]), f[executionsFixed:]
	return checkRecords(TypeExecutions, m.Records, ExecSize, uint64(le.Uint32(f[28:])))
}

func checkRecords(t Type, records []byte, size int, n uint64) error {
	if n > uint64(len(records)) || int(n)*size != len(records) {
		return &FrameError{Type: t, Field: "nRecords", Value: n, Allowed: "as many as the bytes that follow are"}
	}
	return nil
}

// PrepareExec is a Prepare of a partition that matches.
type PrepareExec struct {
	Prepare
	ExecSeq  uint64 // records up to the last entry of the frame, by the primary
	ExecHash uint64 // of those
}

// PrepareExecFixed is the size of a PrepareExec frame without its entries.
const PrepareExecFixed = PrepareFixed + 16

// AppendPrepareExec appends a PrepareExec frame.
func AppendPrepareExec(dst []byte, p PartitionID, m *PrepareExec) []byte {
	dst, f := begin(dst, TypePrepareExec, m.Flags, p, PrepareExecFixed+len(m.Entries))
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.CommitSeq)
	le.PutUint64(f[40:], m.Round)
	le.PutUint64(f[48:], uint64(m.SentNs))
	le.PutUint64(f[56:], m.ExecSeq)
	le.PutUint64(f[64:], m.ExecHash)
	copy(f[PrepareExecFixed:], m.Entries)
	return dst
}

// DecodePrepareExec decodes a PrepareExec frame.
func DecodePrepareExec(f []byte, m *PrepareExec) error {
	if err := open(f, TypePrepareExec, PrepareExecFixed, false); err != nil {
		return err
	}
	m.get(f)
	m.CommitSeq, m.Round, m.SentNs, m.Flags = le.Uint64(f[32:]), le.Uint64(f[40:]), int64(le.Uint64(f[48:])), f[5]
	m.ExecSeq, m.ExecHash, m.Entries = le.Uint64(f[56:]), le.Uint64(f[64:]), f[PrepareExecFixed:]
	if len(m.Entries) == 0 {
		return &FrameError{Type: TypePrepareExec, Field: "entries", Value: 0, Allowed: "one entry or more"}
	}
	return entriesLen(m.Entries, TypePrepareExec)
}

// PrepareExecAck is a PrepareAck of a partition that matches.
type PrepareExecAck struct {
	PrepareAck
	ExecSeq  uint64 // records up to StoredSeq, by the sender
	ExecHash uint64 // of those
}

// PrepareExecAckSize is the size of a PrepareExecAck frame.
const PrepareExecAckSize = PrepareAckSize + 16

// AppendPrepareExecAck appends a PrepareExecAck frame.
func AppendPrepareExecAck(dst []byte, p PartitionID, m *PrepareExecAck) []byte {
	dst, f := begin(dst, TypePrepareExecAck, m.Flags, p, PrepareExecAckSize)
	_ = f[PrepareExecAckSize-1]
	putHead(f, &m.PeerHead)
	le.PutUint64(f[32:], m.StoredSeq)
	le.PutUint64(f[40:], m.Hash)
	le.PutUint64(f[48:], m.Round)
	le.PutUint64(f[56:], uint64(m.EchoNs))
	le.PutUint64(f[64:], m.ExecSeq)
	le.PutUint64(f[72:], m.ExecHash)
	return dst
}

// DecodePrepareExecAck decodes a PrepareExecAck frame.
func DecodePrepareExecAck(f []byte, m *PrepareExecAck) error {
	if err := open(f, TypePrepareExecAck, PrepareExecAckSize, true); err != nil {
		return err
	}
	m.get(f)
	m.StoredSeq, m.Hash, m.Round, m.EchoNs, m.Flags = le.Uint64(f[32:]), le.Uint64(f[40:]), le.Uint64(f[48:]), int64(le.Uint64(f[56:])), f[5]
	m.ExecSeq, m.ExecHash = le.Uint64(f[64:]), le.Uint64(f[72:])
	return nil
}

// ReadExecutions requests records of committed entries of any replica.
type ReadExecutions struct {
	ReqID    uint64
	From     uint64 // the first entry
	MaxBytes uint32 // of records, 0: as many as fit a frame; one entry at least
}

func (m *ReadExecutions) request() (uint64, uint32) { return m.ReqID, 0 }

// AppendReadExecutions appends a ReadExecutions frame.
func AppendReadExecutions(dst []byte, p PartitionID, m *ReadExecutions) []byte {
	dst, f := begin(dst, TypeReadExecutions, 0, p, HeaderSize+24)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.From)
	le.PutUint32(f[24:], m.MaxBytes)
	le.PutUint32(f[28:], 0)
	return dst
}

// DecodeReadExecutions decodes a ReadExecutions frame.
func DecodeReadExecutions(f []byte, m *ReadExecutions) error {
	if err := open(f, TypeReadExecutions, HeaderSize+24, true); err != nil {
		return err
	}
	m.ReqID, m.From, m.MaxBytes = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint32(f[24:])
	if m.From == 0 {
		return &FrameError{Type: TypeReadExecutions, Field: "from", Value: 0, Allowed: "1 or more"}
	}
	return nil
}

// ExecutionsRead answers a ReadExecutions: all records of the entries from the first one
// asked for through Through.
type ExecutionsRead struct {
	ReqID     uint64
	CommitSeq uint64 // the replica's
	Through   uint64 // the last entry that was looked at, at least the one before From
	Records   []byte // of ExecReadSize each, in order
}

const executionsReadFixed = HeaderSize + 32

// MaxExecutionsRead is how many records fit one ExecutionsRead frame.
const MaxExecutionsRead = (MaxFrame - executionsReadFixed) / ExecReadSize

// AppendExecutionsRead appends an ExecutionsRead frame.
func AppendExecutionsRead(dst []byte, p PartitionID, m *ExecutionsRead) []byte {
	dst, f := begin(dst, TypeExecutionsRead, 0, p, executionsReadFixed+len(m.Records))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.CommitSeq)
	le.PutUint64(f[24:], m.Through)
	le.PutUint64(f[32:], uint64(len(m.Records)/ExecReadSize))
	copy(f[executionsReadFixed:], m.Records)
	return dst
}

// DecodeExecutionsRead decodes an ExecutionsRead frame.
func DecodeExecutionsRead(f []byte, m *ExecutionsRead) error {
	if err := open(f, TypeExecutionsRead, executionsReadFixed, false); err != nil {
		return err
	}
	m.ReqID, m.CommitSeq, m.Through, m.Records = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:]), f[executionsReadFixed:]
	return checkRecords(TypeExecutionsRead, m.Records, ExecReadSize, le.Uint64(f[32:]))
}
