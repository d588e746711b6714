package wire

import "strconv"

// Questions about the orders of a partition, and their answers. What a question and a row are is in grid-node/query:
// to this package they are bytes.
const (
	TypeQuery       Type = 0x78
	TypeQueryRows   Type = 0x79
	TypeQueryEnd    Type = 0x7a
	TypeQueryCancel Type = 0x7b
)

var queryFrames = []Frame{
	{Type: TypeQuery, Name: "Query", From: FromClient, Needs: MayQuery, codec: codecOn(DecodeQuery, AppendQuery),
		Example: &Query{ReqID: 20, MinSeq: 17, MinHash: 0x1122334455667788, TimeoutMs: 1000, MaxBytes: 1 << 18, Question: []byte{1, 0, 0, 0, 1, 11, 0, 0, 0}}},
	{Type: TypeQueryRows, Name: "QueryRows", From: FromNode, codec: codecOn(DecodeQueryRows, AppendQueryRows),
		Example: &QueryRows{ReqID: 20, Rows: 1, Values: []byte{1, 4, 5, 'O', 'R', 'D', '-', '1'}}},
	{Type: TypeQueryEnd, Name: "QueryEnd", From: FromNode, codec: codecOn(DecodeQueryEnd, AppendQueryEnd),
		Example: &QueryEnd{ReqID: 20, At: 17, Hash: 0x1122334455667788, Epoch: 3, Lineage: 1, Base: 4, Scanned: 13, Matched: 1, Body: []byte{0, 1, 7, 'C', 'l', 'O', 'r', 'd', 'I', 'D', 4}}},
	{Type: TypeQueryCancel, Name: "QueryCancel", From: FromClient, Needs: MayQuery, codec: codecOn(DecodeQueryCancel, AppendQueryCancel),
		Example: &QueryCancel{ReqID: 20}},
}

func (m *Query) request() (uint64, uint32)       { return m.ReqID, 0 }
func (m *QueryCancel) request() (uint64, uint32) { return m.ReqID, 0 }

// MaxQuestion is the longest question of a Query, in bytes.
const MaxQuestion = 64 << 10

// MaxQueryBytes is the most that a QueryRows has of rows, unless its only row is longer.
const MaxQueryBytes = 64 << 10

// Query asks a replica that is in sync a question about the orders of a partition. It is answered with QueryRows, none
// or more, and QueryEnd, or with Reject or NotPrimary.
type Query struct {
	ReqID     uint64 // names the question on its connection
	MinSeq    uint64 // the answer sees this entry and those before; 0: whatever the replica has
	MinHash   uint64 // of entry MinSeq; 0: not known
	TimeoutMs uint32 // 1 or more; a node allows less
	MaxBytes  uint32 // of rows, 1 or more: what is beyond is on the next page; a node allows less
	Explain   bool   // the plan is the answer
	Question  []byte // 1..MaxQuestion bytes
}

// QueryFixed is the size of a Query frame without its question.
const QueryFixed = HeaderSize + 36

// AppendQuery appends a Query frame.
func AppendQuery(dst []byte, p PartitionID, m *Query) []byte {
	question := clip(m.Question, MaxQuestion)
	dst, f := begin(dst, TypeQuery, 0, p, QueryFixed+len(question))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.MinSeq)
	le.PutUint64(f[24:], m.MinHash)
	le.PutUint32(f[32:], m.TimeoutMs)
	le.PutUint32(f[36:], m.MaxBytes)
	le.PutUint32(f[40:], 0)
	if m.Explain {
		f[40] = 1
	}
	copy(f[QueryFixed:], question)
	return dst
}

// DecodeQuery decodes a Query frame.
func DecodeQuery(f []byte, m *Query) error {
	if err := open(f, TypeQuery, QueryFixed, false); err != nil {
		return err
	}
	m.ReqID, m.MinSeq, m.MinHash = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:])
	m.TimeoutMs, m.MaxBytes, m.Explain = le.Uint32(f[32:]), le.Uint32(f[36:]), f[40] == 1
	m.Question = f[QueryFixed:]
	switch n := len(m.Question); {
	case m.TimeoutMs == 0:
		return &FrameError{Type: TypeQuery, Field: "timeout", Value: 0, Allowed: "1 or more milliseconds"}
	case m.MaxBytes == 0:
		return &FrameError{Type: TypeQuery, Field: "maxBytes", Value: 0, Allowed: "1 or more bytes"}
	case f[40] > 1:
		return &FrameError{Type: TypeQuery, Field: "explain", Value: uint64(f[40]), Allowed: "0 no, 1 yes"}
	case m.MinSeq == 0 && m.MinHash != 0:
		return &FrameError{Type: TypeQuery, Field: "minHash", Value: m.MinHash, Allowed: "0 without minSeq"}
	case n == 0 || n > MaxQuestion:
		return &FrameError{Type: TypeQuery, Field: "question", Value: uint64(n), Allowed: "1..65536 bytes"}
	}
	return nil
}

// QueryRows is a part of an answer.
type QueryRows struct {
	ReqID  uint64
	Rows   uint32 // 1 or more
	Values []byte
}

const queryRowsFixed = HeaderSize + 12

// AppendQueryRows appends a QueryRows frame.
func AppendQueryRows(dst []byte, p PartitionID, m *QueryRows) []byte {
	dst, f := begin(dst, TypeQueryRows, 0, p, queryRowsFixed+len(m.Values))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint32(f[16:], m.Rows)
	copy(f[queryRowsFixed:], m.Values)
	return dst
}

// DecodeQueryRows decodes a QueryRows frame.
func DecodeQueryRows(f []byte, m *QueryRows) error {
	if err := open(f, TypeQueryRows, queryRowsFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Rows, m.Values = le.Uint64(f[8:]), le.Uint32(f[16:]), f[queryRowsFixed:]
	if m.Rows == 0 || uint64(m.Rows) > uint64(len(m.Values)) {
		return &FrameError{Type: TypeQueryRows, Field: "rows", Value: uint64(m.Rows), Allowed: "1 to the number of bytes that follow"}
	}
	return nil
}

// QueryEndCode is why an answer ends.
type QueryEndCode uint16

// The codes. Only after QueryDone the rows are the answer: there is no partial one.
const (
	QueryDone       QueryEndCode = 0
	QueryRefused    QueryEndCode = 1 // the question cannot be asked of this view. Final.
	QueryBound      QueryEndCode = 2 // it needs more than a bound of the node. Final.
	QueryTooOld     QueryEndCode = 3 // rows of the prefix were dropped, Base is the last one. Ask again from the first page.
	QueryBehind     QueryEndCode = 4 // the replica has not come to MinSeq, or the page's prefix, in time: At is how far it is. Go on at another, or later.
	QueryDiverged   QueryEndCode = 5 // entry MinSeq of the log has another hash: Hash. Final.
	QueryTimedOut   QueryEndCode = 6 // within TimeoutMs, or the node's limit
	QueryCancelled  QueryEndCode = 7 // the client asked for it
	QueryIncomplete QueryEndCode = 8 // the view has no room for all orders
	QueryLeaving    QueryEndCode = 9 // the replica stops serving, or is not in sync: go on at another
	QueryEndCodes                = int(QueryLeaving) + 1
)

var queryEndNames = [QueryEndCodes]string{"Done", "Refused", "Bound", "TooOld", "Behind", "Diverged", "TimedOut", "Cancelled", "Incomplete", "Leaving"}

// String returns the name docs/protocol.md uses.
func (c QueryEndCode) String() string {
	if int(c) < QueryEndCodes {
		return queryEndNames[c]
	}
	return "QueryEnd" + strconv.Itoa(int(c))
}

// QueryEnd ends the answer to a Query. With At, Hash, Epoch and Lineage it names the prefix of the log that it is about.
type QueryEnd struct {
	ReqID   uint64
	At      uint64 // the last entry that counted
	Hash    uint64 // of that entry
	Epoch   uint64
	Lineage uint32 // of the log
	Code    QueryEndCode
	Base    uint64 // the entry before the first that counted
	Scanned uint64 // rows that were looked at
	Matched uint64 // of those, let through by the filter
	Body    []byte // of Done: columns and the next page; otherwise text for people
}

const queryEndFixed = HeaderSize + 64

// AppendQueryEnd appends a QueryEnd frame.
func AppendQueryEnd(dst []byte, p PartitionID, m *QueryEnd) []byte {
	dst, f := begin(dst, TypeQueryEnd, 0, p, queryEndFixed+len(m.Body))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.At)
	le.PutUint64(f[24:], m.Hash)
	le.PutUint64(f[32:], m.Epoch)
	le.PutUint32(f[40:], m.Lineage)
	le.PutUint16(f[44:], uint16(m.Code))
	le.PutUint16(f[46:], 0)
	le.PutUint64(f[48:], m.Base)
	le.PutUint64(f[56:], m.Scanned)
	le.PutUint64(f[64:], m.Matched)
	copy(f[queryEndFixed:], m.Body)
	return dst
}

// DecodeQueryEnd decodes a QueryEnd frame.
func DecodeQueryEnd(f []byte, m *QueryEnd) error {
	if err := open(f, TypeQueryEnd, queryEndFixed, false); err != nil {
		return err
	}
	m.ReqID, m.At, m.Hash, m.Epoch = le.Uint64(f[8:]), le.Uint64(f[16:]), le.Uint64(f[24:]), le.Uint64(f[32:])
	m.Lineage, m.Code = le.Uint32(f[40:]), QueryEndCode(le.Uint16(f[44:]))
	m.Base, m.Scanned, m.Matched, m.Body = le.Uint64(f[48:]), le.Uint64(f[56:]), le.Uint64(f[64:]), f[queryEndFixed:]
	return nil
}

// QueryCancel ends a question. One that has been answered is ignored.
type QueryCancel struct{ ReqID uint64 }

const queryCancelFixed = HeaderSize + 8

// AppendQueryCancel appends a QueryCancel frame.
func AppendQueryCancel(dst []byte, p PartitionID, m *QueryCancel) []byte {
	dst, f := begin(dst, TypeQueryCancel, 0, p, queryCancelFixed)
	le.PutUint64(f[8:], m.ReqID)
	return dst
}

// DecodeQueryCancel decodes a QueryCancel frame.
func DecodeQueryCancel(f []byte, m *QueryCancel) error {
	if err := open(f, TypeQueryCancel, queryCancelFixed, true); err != nil {
		return err
	}
	m.ReqID = le.Uint64(f[8:])
	return nil
}
