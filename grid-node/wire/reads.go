package wire

// Reads.
const (
	TypeGet      Type = 0x30
	TypeGetReply Type = 0x31
	TypeReadLog  Type = 0x60
	TypeLogChunk Type = 0x61
)

var readFrames = []Frame{
	{Type: TypeGet, Name: "Get", From: FromClient, ToReplica: true, Needs: MayRead, codec: codecOn(DecodeGet, AppendGet),
		Example: &Get{ReqID: 11, By: ByClOrdID, Mode: ModeConfirmed, Key: []byte("ORD-1")}},
	{Type: TypeGetReply, Name: "GetReply", From: FromNode, codec: codecOn(DecodeGetReply, AppendGetReply),
		Example: &GetReply{ReqID: 11, Epoch: 3, CommitSeq: 17, Status: GetFound, Entry: exampleEntry}},
	{Type: TypeReadLog, Name: "ReadLog", From: FromClient, ToReplica: true, Needs: MayAdmin, codec: codecOn(DecodeReadLog, AppendReadLog),
		Example: &ReadLog{ReqID: 12, FromSeq: 1, MaxBytes: 65536}},
	{Type: TypeLogChunk, Name: "LogChunk", From: FromNode, codec: codecOn(DecodeLogChunk, AppendLogChunk),
		Example: &LogChunk{ReqID: 12, Epoch: 3, CommitSeq: 5, LastSeq: 5, LastHash: 0x1122334455667788, FirstSeq: 5, Entries: exampleEntry}},
}

func (m *Get) request() (uint64, uint32)     { return m.ReqID, 0 }
func (m *ReadLog) request() (uint64, uint32) { return m.ReqID, 0 }

// Get.By: the key of the order.
const (
	ByID      uint8 = 1 // Seq
	ByClOrdID uint8 = 2 // Key
	ByFix     uint8 = 3 // Key: of a FIX session, see FixKey
)

// Get.Mode: the required freshness of the answer.
const (
	ModeConfirmed uint8 = 1 // answered after the ack set confirmed the epoch; linearizable without clocks
	ModeLeased    uint8 = 2 // answered at once while the primary's lease is alive, confirmed otherwise
	ModeBackup    uint8 = 3 // answered by any replica from its committed prefix; may be stale
)

// Get reads one order of the committed prefix.
type Get struct {
	ReqID uint64
	Seq   uint64 // with ByID
	By    uint8
	Mode  uint8
	Key   []byte // with ByClOrdID, 1..MaxKey bytes; with ByFix, more than 20
}

const getFixed = HeaderSize + 24

// AppendGet appends a Get frame.
func AppendGet(dst []byte, p PartitionID, m *Get) []byte {
	key := clip(m.Key, MaxKey)
	dst, f := begin(dst, TypeGet, 0, p, getFixed+len(key))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Seq)
	f[24], f[25] = m.By, m.Mode
	le.PutUint16(f[26:], uint16(len(key)))
	le.PutUint32(f[28:], 0)
	copy(f[getFixed:], key)
	return dst
}

// DecodeGet decodes a Get frame.
func DecodeGet(f []byte, m *Get) error {
	if err := open(f, TypeGet, getFixed, false); err != nil {
		return err
	}
	m.ReqID = le.Uint64(f[8:])
	m.Seq = le.Uint64(f[16:])
	m.By, m.Mode = f[24], f[25]
	n := int(le.Uint16(f[26:]))
	m.Key = f[getFixed:]
	switch {
	case m.By < ByID || m.By > ByFix:
		return &FrameError{Type: TypeGet, Field: "by", Value: uint64(m.By), Allowed: "1 id, 2 clOrdID, 3 of a FIX session"}
	case m.Mode < ModeConfirmed || m.Mode > ModeBackup:
		return &FrameError{Type: TypeGet, Field: "mode", Value: uint64(m.Mode), Allowed: "1 confirmed, 2 leased, 3 backup"}
	case n != len(m.Key) || n > MaxKey:
		return &FrameError{Type: TypeGet, Field: "keyLen", Value: uint64(n), Allowed: "the bytes that follow, at most 255"}
	case m.By == ByFix && n <= fixKeyFixed:
		return &FrameError{Type: TypeGet, Field: "keyLen", Value: uint64(n), Allowed: "21..255 of a FIX session"}
	case (m.By != ByID) != (n > 0):
		return &FrameError{Type: TypeGet, Field: "keyLen", Value: uint64(n), Allowed: "0 by id, 1..255 by clOrdID"}
	}
	return nil
}

// FixToday in FixKey is the day that the session is in.
const FixToday = 1<<32 - 1

const fixKeyFixed = 20

// FixKey returns the key of a ClOrdID of a FIX session and day: the session's id, u64 and
// u64, u32 day, and the ClOrdID.
func FixKey(id [2]uint64, day uint32, clOrdID []byte) []byte {
	b := le.AppendUint64(le.AppendUint64(nil, id[0]), id[1])
	return append(le.AppendUint32(b, day), clOrdID...)
}

// SplitFixKey returns the parts of the key of a Get by ByFix.
func SplitFixKey(key []byte) (id [2]uint64, day uint32, clOrdID []byte) {
	return [2]uint64{le.Uint64(key), le.Uint64(key[8:])}, le.Uint32(key[16:]), key[fixKeyFixed:]
}

// GetReply.Status.
const (
	GetFound    uint8 = 0
	GetNotFound uint8 = 1
	GetFreed    uint8 = 2 // not found, but may be among the freed entries up to Freed
)

// GetReply answers a Get.
type GetReply struct {
	ReqID     uint64
	Epoch     uint64
	CommitSeq uint64 // the committed prefix behind the answer: shows how far a backup is
	Status    uint8
	Entry     []byte // with GetFound: the log entry, unpadded
	Freed     uint64 // with GetFreed: the last entry that is freed
}

const getReplyFixed = HeaderSize + 32

// AppendGetReply appends a GetReply frame.
func AppendGetReply(dst []byte, p PartitionID, m *GetReply) []byte {
	tail := len(m.Entry)
	if m.Status == GetFreed {
		tail = 8
	}
	dst, f := begin(dst, TypeGetReply, 0, p, getReplyFixed+tail)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Epoch)
	le.PutUint64(f[24:], m.CommitSeq)
	le.PutUint64(f[32:], uint64(m.Status))
	if m.Status == GetFreed {
		le.PutUint64(f[getReplyFixed:], m.Freed)
		return dst
	}
	copy(f[getReplyFixed:], m.Entry)
	return dst
}

// DecodeGetReply decodes a GetReply frame. The entry itself is checked by
// order.DecodeEntry.
func DecodeGetReply(f []byte, m *GetReply) error {
	if err := open(f, TypeGetReply, getReplyFixed, false); err != nil {
		return err
	}
	m.ReqID = le.Uint64(f[8:])
	m.Epoch = le.Uint64(f[16:])
	m.CommitSeq = le.Uint64(f[24:])
	m.Status = f[32]
	m.Entry = f[getReplyFixed:]
	m.Freed = 0
	switch {
	case m.Status > GetFreed:
		return &FrameError{Type: TypeGetReply, Field: "status", Value: uint64(m.Status), Allowed: "0 found, 1 not found, 2 freed"}
	case m.Status == GetFreed && len(m.Entry) != 8:
		return &FrameError{Type: TypeGetReply, Field: "freed", Value: uint64(len(m.Entry)), Allowed: "8 bytes"}
	case m.Status == GetFreed:
		m.Freed, m.Entry = le.Uint64(m.Entry), nil
		return nil
	}
	if (m.Status == GetFound) != (len(m.Entry) > 0) {
		return &FrameError{Type: TypeGetReply, Field: "entry", Value: uint64(len(m.Entry)), Allowed: "an entry when found, none otherwise"}
	}
	return nil
}

// MaxLogBytes is the maximum size of entries in a LogChunk, unless its only entry is
// longer.
const MaxLogBytes = 64 << 10

// ReadLog requests a part of the committed prefix of any replica.
type ReadLog struct {
	ReqID    uint64
	FromSeq  uint64 // 1 or more
	MaxBytes uint32 // of entries; 0 and anything over MaxLogBytes mean MaxLogBytes
}

// AppendReadLog appends a ReadLog frame.
func AppendReadLog(dst []byte, p PartitionID, m *ReadLog) []byte {
	dst, f := begin(dst, TypeReadLog, 0, p, HeaderSize+24)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.FromSeq)
	le.PutUint32(f[24:], m.MaxBytes)
	le.PutUint32(f[28:], 0)
	return dst
}

// DecodeReadLog decodes a ReadLog frame.
func DecodeReadLog(f []byte, m *ReadLog) error {
	if err := open(f, TypeReadLog, HeaderSize+24, true); err != nil {
		return err
	}
	m.ReqID = le.Uint64(f[8:])
	m.FromSeq = le.Uint64(f[16:])
	m.MaxBytes = le.Uint32(f[24:])
	if m.FromSeq == 0 {
		return &FrameError{Type: TypeReadLog, Field: "fromSeq", Value: 0, Allowed: "1 or more"}
	}
	return nil
}

// LogChunk answers a ReadLog with whole entries, each padded to 8 bytes. No
// entries means that FromSeq is beyond CommitSeq.
type LogChunk struct {
	ReqID     uint64
	Epoch     uint64
	CommitSeq uint64 // committed prefix of the answering replica
	LastSeq   uint64 // last entry it stores, committed or not
	LastHash  uint64 // hash of that entry: equal logs have equal pairs (LastSeq, LastHash)
	FirstSeq  uint64 // seq of the first entry, or as requested
	Entries   []byte
}

// LogChunkFixed is the size of a LogChunk frame without its entries.
const LogChunkFixed = HeaderSize + 48

// AppendLogChunk appends a LogChunk frame.
func AppendLogChunk(dst []byte, p PartitionID, m *LogChunk) []byte {
	dst, f := begin(dst, TypeLogChunk, 0, p, LogChunkFixed+len(m.Entries))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Epoch)
	le.PutUint64(f[24:], m.CommitSeq)
	le.PutUint64(f[32:], m.LastSeq)
	le.PutUint64(f[40:], m.LastHash)
	le.PutUint64(f[48:], m.FirstSeq)
	copy(f[LogChunkFixed:], m.Entries)
	return dst
}

// DecodeLogChunk decodes a LogChunk frame. Entries are iterated with
// order.NextEntry.
func DecodeLogChunk(f []byte, m *LogChunk) error {
	if err := open(f, TypeLogChunk, LogChunkFixed, false); err != nil {
		return err
	}
	m.ReqID = le.Uint64(f[8:])
	m.Epoch = le.Uint64(f[16:])
	m.CommitSeq = le.Uint64(f[24:])
	m.LastSeq = le.Uint64(f[32:])
	m.LastHash = le.Uint64(f[40:])
	m.FirstSeq = le.Uint64(f[48:])
	m.Entries = f[LogChunkFixed:]
	return entriesLen(m.Entries, TypeLogChunk)
}

func entriesLen(b []byte, t Type) error {
	if len(b)%8 != 0 {
		return &FrameError{Type: t, Field: "entries", Value: uint64(len(b)), Allowed: "a multiple of 8 bytes"}
	}
	return nil
}
