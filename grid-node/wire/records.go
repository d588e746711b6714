package wire

import "fmt"

// Records of functions of kind Post.
const (
	TypeReadRecords Type = 0x5c
	TypeRecordsRead Type = 0x5d
)

var recordFrames = []Frame{
	{Type: TypeReadRecords, Name: "ReadRecords", From: FromClient, ToReplica: true, Needs: MayWatch, codec: codecOn(DecodeReadRecords, AppendReadRecords),
		Example: &ReadRecords{ReqID: 12, From: 17, MaxBytes: 65536}},
	{Type: TypeRecordsRead, Name: "RecordsRead", From: FromNode, codec: codecOn(DecodeRecordsRead, AppendRecordsRead),
		Example: &RecordsRead{ReqID: 12, CommitSeq: 20, Through: 19, Count: 1, Records: AppendRecord(nil, &Record{Entry: 17, Function: "audit-trail", Bytes: []byte("record")})}},
}

// ReadRecords requests what functions made of committed entries, of any replica.
type ReadRecords struct {
	ReqID    uint64
	From     uint64 // the first entry
	MaxBytes uint32 // of records, 0: as many as fit a frame; those of one entry at least
}

func (m *ReadRecords) request() (uint64, uint32) { return m.ReqID, 0 }

// AppendReadRecords appends a ReadRecords frame.
func AppendReadRecords(dst []byte, p PartitionID, m *ReadRecords) []byte {
	dst, f := begin(dst, TypeReadRecords, 0, p, HeaderSize+24)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.From)
	le.PutUint32(f[24:], m.MaxBytes)
	le.PutUint32(f[28:], 0)
	return dst
}

// DecodeReadRecords decodes a ReadRecords frame.
func DecodeReadRecords(f []byte, m *ReadRecords) error {
	if err := open(f, TypeReadRecords, HeaderSize+24, true); err != nil {
		return err
	}
	m.ReqID, m.From, m.MaxBytes = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint32(f[24:])
	if m.From == 0 {
		return &FrameError{Type: TypeReadRecords, Field: "from", Value: 0, Allowed: "1 or more"}
	}
	return nil
}

// RecordsRead answers a ReadRecords: all records of the entries from the first one asked for
// through Through.
type RecordsRead struct {
	ReqID     uint64
	CommitSeq uint64 // the replica's
	Through   uint64 // the last entry that was looked at, at least the one before From
	Count     uint64 // of Records
	Records   []byte // each as AppendRecord writes it, in order
}

const recordsReadFixed = HeaderSize + 32

// MaxRecordsRead is how many bytes of records fit one RecordsRead frame.
const MaxRecordsRead = MaxFrame - recordsReadFixed

// AppendRecordsRead appends a RecordsRead frame.
func AppendRecordsRead(dst []byte, p PartitionID, m *RecordsRead) []byte {
	dst, f := begin(dst, TypeRecordsRead, 0, p, recordsReadFixed+len(m.Records))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.CommitSeq)
	le.PutUint64(f[24:], m.Through)
	le.PutUint64(f[32:], m.Count)
	copy(f[recordsReadFixed:], m.Records)
	return dst
}

// DecodeRecordsRead decodes a RecordsRead frame.
func DecodeRecordsRead(f []byte, m *RecordsRead) error {
	if err := open(f, TypeRecordsRead, recordsReadFixed, false); err != nil {
		return err
	}
	m.ReqID, m.CommitSeq, m.Through, m.Count, m.Records = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:]), le.Uint64(f[32:]), f[recordsReadFixed:]
	var rec Record
	n := uint64(0)
	for rest := m.Records; len(rest) > 0; {
		var err error
		if rest, err = NextRecord(rest, &rec); err != nil {
			return err
		}
		n++
	}
	if n != m.Count {
		return &FrameError{Type: TypeRecordsRead, Field: "nRecords", Value: m.Count, Allowed: "as many as follow"}
	}
	return nil
}

// Record is what a function made of an entry: u64 entry, u32 bytes, u8 bytes of the name, u8
// fault, u16 0, the name and the bytes, each filled up with zeros to 8 bytes.
type Record struct {
	Entry    uint64
	Function string
	Fault    uint8 // 0, or by what it has no record: 1 fuel, 2 calls too deep, 3 trap, 4 bad result
	Bytes    []byte
}

// MaxRecord is how many bytes a record may have.
const MaxRecord = 4096

const maxRecordName, maxRecordFault = 32, 4

// AppendRecord appends a record.
func AppendRecord(dst []byte, r *Record) []byte {
	dst = le.AppendUint32(le.AppendUint64(dst, r.Entry), uint32(len(r.Bytes)))
	dst = append(dst, byte(len(r.Function)), r.Fault, 0, 0)
	dst = append(append(dst, r.Function...), make([]byte, -len(r.Function)&7)...)
	return append(append(dst, r.Bytes...), make([]byte, -len(r.Bytes)&7)...)
}

// NextRecord reads the first of several records and returns the bytes behind it.
func NextRecord(b []byte, r *Record) ([]byte, error) {
	bad := func(field string, v uint64, format string, args ...any) ([]byte, error) {
		return nil, &FrameError{Type: TypeRecordsRead, Field: field, Value: v, Allowed: fmt.Sprintf(format, args...)}
	}
	if len(b) < 16 {
		return bad("record", uint64(len(b)), "16 bytes or more")
	}
	size, name, fault := uint64(le.Uint32(b[8:])), uint64(b[12]), b[13]
	if size > MaxRecord || name > maxRecordName || fault > maxRecordFault || le.Uint16(b[14:]) != 0 {
		return bad("record", size, "at most %d bytes, a name of at most %d, a fault of 0 to %d", MaxRecord, maxRecordName, maxRecordFault)
	}
	if all := 16 + (name+7)&^7 + (size+7)&^7; all > uint64(len(b)) {
		return bad("record", all, "no more than the %d bytes that follow", len(b))
	}
	r.Entry, r.Fault, r.Function = le.Uint64(b), fault, string(b[16:16+name])
	b = b[16+(name+7)&^7:]
	r.Bytes = b[:size:size]
	return b[(size+7)&^7:], nil
}
