package wire

// FIX sessions, whose numbers are given by log entries (docs/adr/0044). Only gateways use
// these frames.
const (
	TypeFixOpen   Type = 0x12
	TypeFixOpened Type = 0x13
	TypeFixSubmit Type = 0x24
	TypeFixAck    Type = 0x25
)

var fixFrames = []Frame{
	{Type: TypeFixOpen, Name: "FixOpen", From: FromClient, ToReplica: true, Needs: MayGateway, codec: codecOn(DecodeFixOpen, AppendFixOpen),
		Example: &FixOpen{ReqID: 20, Epoch: 3, IDHi: 0x0123456789abcdef, IDLo: 0xfedcba9876543210, Day: 20780, Seq: 1, Form: 1, Flags: FixOpenReset, SentNs: 1795435380000000000}},
	{Type: TypeFixOpened, Name: "FixOpened", From: FromNode, codec: codecOn(DecodeFixOpened, AppendFixOpened),
		Example: &FixOpened{ReqID: 20, Slot: 5, Generation: 2, Attempt: 7, Day: 20780, In: 2, Out: 2, Number: 1, Epoch: 3, Lineage: 1, Form: 1}},
	{Type: TypeFixSubmit, Name: "FixSubmit", From: FromClient, ToReplica: true, Needs: MayGateway, codec: codecOn(DecodeFixSubmit, AppendFixSubmit),
		Example: &FixSubmit{Seq: 9, Slot: 5, Generation: 2, Attempt: 7, Epoch: 3, Prev: 1, Payload: []byte("8=FIX.4.4\x01")}},
	{Type: TypeFixAck, Name: "FixAck", From: FromNode, codec: codecOn(DecodeFixAck, AppendFixAck),
		Example: &FixAck{Seq: 9, Slot: 5, Code: CodeTooLarge, Entry: 17, Number: 2, TimeNs: 1795435380000000000, Epoch: 3, Body: []byte("why")}},
	{Type: TypeFixReports, Name: "FixReports", From: FromNode, codec: codecOn(DecodeFixReports, AppendFixReports),
		Example: &FixReports{Slot: 5, Attempt: 7, Entries: append([]byte{3, 0, 0, 0, 0, 0, 0, 0}, exampleEntry...)}},
	{Type: TypeFixStep, Name: "FixStep", From: FromClient, ToReplica: true, Needs: MayGateway, codec: codecOn(DecodeFixStep, AppendFixStep),
		Example: &FixStep{ReqID: 21, Epoch: 3, Records: []FixStepRecord{{Slot: 5, Generation: 2, Attempt: 7, Op: 2, Outs: 1, In: 12, Prev: 9}, {Slot: 6, Generation: 1, Attempt: 1, Op: 3, Outs: 1, In: 4, Prev: 2, Body: []byte("why")}}}},
	{Type: TypeFixStepped, Name: "FixStepped", From: FromNode, codec: codecOn(DecodeFixStepped, AppendFixStepped),
		Example: &FixStepped{ReqID: 21, TimeNs: 1795435380000000000, Entry: 18, Records: []FixNumber{{Slot: 5, First: 3}, {Slot: 6, Code: CodeSequenceGap}}}},
	{Type: TypeFixResend, Name: "FixResend", From: FromClient, ToReplica: true, Needs: MayGateway, codec: codecOn(DecodeFixResend, AppendFixResend),
		Example: &FixResend{ReqID: 22, Slot: 5, Generation: 2, Attempt: 7, First: 2, Through: 9}},
	{Type: TypeFixResent, Name: "FixResent", From: FromNode, codec: codecOn(DecodeFixResent, AppendFixResent),
		Example: &FixResent{ReqID: 22, Next: 10, Entries: append([]byte{2, 0, 0, 0, 0, 0, 0, 0}, exampleEntry...)}},
}

func (m *FixOpen) request() (uint64, uint32)   { return m.ReqID, 0 }
func (m *FixSubmit) request() (uint64, uint32) { return m.Seq, m.Slot }
func (m *FixStep) request() (uint64, uint32)   { return m.ReqID, 0 }
func (m *FixResend) request() (uint64, uint32) { return m.ReqID, m.Slot }

// Flags of FixOpen.
const (
	FixOpenReset  uint8 = 1  // a new generation of the same day: ResetSeqNumFlag=Y
	FixOpenTake   uint8 = 2  // although it is open on another connection
	FixOpenLate   uint8 = 4  // the Logon is refused for its number: it is opened for the answer only
	FixOpenCopies uint8 = 8  // it gets copies of reports of others, which a FixStep with op 8 names; without it, and FixOpenLate, none any more
	FixOpenFix50  uint8 = 16 // its orders are of FIX 5.0 SP2: refused while a copy does not know them
)

// FixOpen opens a FIX session for a gateway, by an entry that gives it the next attempt.
type FixOpen struct {
	ReqID      uint64
	Epoch      uint64 // the epoch the gateway knows, 0 for none
	IDHi, IDLo uint64 // of the session, see docs/protocol.md; not both 0
	Held       uint32 // the attempt that the gateway holds: no entry is made if it is still the last; 0 for none
	Day        uint32 // of the session's calendar, days since 1970
	Seq        uint64 // MsgSeqNum of the Logon that was received, 0 for none
	Form       uint8  // of the reports, where a generation begins
	Flags      uint8  // FixOpenReset, FixOpenTake, FixOpenLate, FixOpenCopies, FixOpenFix50
	SentNs     int64  // SendingTime of the Logon, unix nanoseconds; 0 for none
	Mode       uint8  // when orders of the session are cancelled because it is gone: 0 never, 1 without a Logout, 2 after one, too
	GraceMs    uint16 // for how long, 1..60000; 0 with mode 0
}

const fixOpenSize = HeaderSize + 64

// AppendFixOpen appends a FixOpen frame.
func AppendFixOpen(dst []byte, p PartitionID, m *FixOpen) []byte {
	dst, f := begin(dst, TypeFixOpen, 0, p, fixOpenSize)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Epoch)
	le.PutUint64(f[24:], m.IDHi)
	le.PutUint64(f[32:], m.IDLo)
	le.PutUint32(f[40:], m.Held)
	le.PutUint32(f[44:], m.Day)
	le.PutUint64(f[48:], m.Seq)
	le.PutUint64(f[56:], uint64(m.Form)|uint64(m.Flags)<<8|uint64(m.Mode)<<16|uint64(m.GraceMs)<<32)
	le.PutUint64(f[64:], uint64(m.SentNs))
	return dst
}

// DecodeFixOpen decodes a FixOpen frame.
func DecodeFixOpen(f []byte, m *FixOpen) error {
	if err := open(f, TypeFixOpen, fixOpenSize, true); err != nil {
		return err
	}
	*m = FixOpen{
		ReqID: le.Uint64(f[8:]), Epoch: le.Uint64(f[16:]), IDHi: le.Uint64(f[24:]), IDLo: le.Uint64(f[32:]),
		Held: le.Uint32(f[40:]), Day: le.Uint32(f[44:]), Seq: le.Uint64(f[48:]), Form: f[56], Flags: f[57], SentNs: int64(le.Uint64(f[64:])),
		Mode: f[58], GraceMs: le.Uint16(f[60:]),
	}
	switch {
	case m.IDHi|m.IDLo == 0:
		return &FrameError{Type: TypeFixOpen, Field: "id", Value: 0, Allowed: "the hash of the session's names, not all 0"}
	case m.Seq >= MaxFixSeq:
		return &FrameError{Type: TypeFixOpen, Field: "seq", Value: m.Seq, Allowed: "below 2^62"}
	case m.Mode > 2 || (m.Mode == 0) != (m.GraceMs == 0) || m.GraceMs > 60_000:
		return &FrameError{Type: TypeFixOpen, Field: "graceMs", Value: uint64(m.GraceMs), Allowed: "1..60000 with mode 1 or 2, 0 with mode 0"}
	}
	return nil
}

// MaxFixSeq is above every MsgSeqNum.
const MaxFixSeq = 1 << 62

// FixOpened answers a FixOpen, once everything that the numbers count is committed.
type FixOpened struct {
	ReqID      uint64
	Slot       uint32 // with Generation, identifies the session
	Generation uint32
	Attempt    uint32 // fences every gateway with a lower one
	Day        uint32
	In         uint64 // the MsgSeqNum expected next
	Out        uint64 // the MsgSeqNum sent next
	Number     uint64 // of the Logon that answers; 0 if the attempt was held
	Epoch      uint64
	Lineage    uint32
	Form       uint8 // of the reports of the generation
	Mode       uint8 // as in FixOpen; a node of a release before says 0
	Copies     uint8 // 1: the node knows drop copies; one of a release before says 0
}

const fixOpenedSize = HeaderSize + 64

// AppendFixOpened appends a FixOpened frame.
func AppendFixOpened(dst []byte, p PartitionID, m *FixOpened) []byte {
	dst, f := begin(dst, TypeFixOpened, 0, p, fixOpenedSize)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint32(f[16:], m.Slot)
	le.PutUint32(f[20:], m.Generation)
	le.PutUint32(f[24:], m.Attempt)
	le.PutUint32(f[28:], m.Day)
	le.PutUint64(f[32:], m.In)
	le.PutUint64(f[40:], m.Out)
	le.PutUint64(f[48:], m.Number)
	le.PutUint64(f[56:], m.Epoch)
	le.PutUint32(f[64:], m.Lineage)
	le.PutUint32(f[68:], uint32(m.Form)|uint32(m.Mode)<<8|uint32(m.Copies)<<16)
	return dst
}

// DecodeFixOpened decodes a FixOpened frame.
func DecodeFixOpened(f []byte, m *FixOpened) error {
	if err := open(f, TypeFixOpened, fixOpenedSize, true); err != nil {
		return err
	}
	*m = FixOpened{
		ReqID: le.Uint64(f[8:]), Slot: le.Uint32(f[16:]), Generation: le.Uint32(f[20:]), Attempt: le.Uint32(f[24:]), Day: le.Uint32(f[28:]),
		In: le.Uint64(f[32:]), Out: le.Uint64(f[40:]), Number: le.Uint64(f[48:]), Epoch: le.Uint64(f[56:]), Lineage: le.Uint32(f[64:]), Form: f[68], Mode: f[69], Copies: f[70],
	}
	return nil
}

// FixSubmit is an order of a FIX session. Its number need not follow the one before:
// messages that need no entry have those between.
type FixSubmit struct {
	Seq        uint64 // MsgSeqNum
	Slot       uint32
	Generation uint32
	Attempt    uint32
	Epoch      uint64
	Prev       uint64 // the number before it that this gateway submitted, In - 1 of FixOpened at first
	Payload    []byte // the FIX message
}

// FixSubmitFixed is the size of a FixSubmit frame without its payload.
const FixSubmitFixed = HeaderSize + 48

// AppendFixSubmit appends a FixSubmit frame.
func AppendFixSubmit(dst []byte, p PartitionID, m *FixSubmit) []byte {
	dst, f := begin(dst, TypeFixSubmit, 0, p, FixSubmitFixed+len(m.Payload))
	le.PutUint64(f[8:], m.Seq)
	le.PutUint32(f[16:], m.Slot)
	le.PutUint32(f[20:], m.Generation)
	le.PutUint32(f[24:], m.Attempt)
	le.PutUint32(f[28:], 0)
	le.PutUint64(f[32:], m.Epoch)
	le.PutUint64(f[40:], m.Prev)
	le.PutUint64(f[48:], 0)
	copy(f[FixSubmitFixed:], m.Payload)
	return dst
}

// DecodeFixSubmit decodes a FixSubmit frame.
func DecodeFixSubmit(f []byte, m *FixSubmit) error {
	if err := open(f, TypeFixSubmit, FixSubmitFixed, false); err != nil {
		return err
	}
	*m = FixSubmit{
		Seq: le.Uint64(f[8:]), Slot: le.Uint32(f[16:]), Generation: le.Uint32(f[20:]), Attempt: le.Uint32(f[24:]),
		Epoch: le.Uint64(f[32:]), Prev: le.Uint64(f[40:]), Payload: f[FixSubmitFixed:],
	}
	if m.Seq == 0 || m.Seq >= MaxFixSeq || m.Prev >= m.Seq {
		return &FrameError{Type: TypeFixSubmit, Field: "seq", Value: m.Seq, Allowed: "above prev, and below 2^62"}
	}
	if len(m.Payload) > MaxPayload {
		return &FrameError{Type: TypeFixSubmit, Field: "payload", Value: uint64(len(m.Payload)), Allowed: "at most 65472 bytes"}
	}
	return nil
}

// FixAck answers a FixSubmit, when its entry is committed: the order, or its refusal for
// good. Answers of a session come in the order of their numbers.
type FixAck struct {
	Seq    uint64 // of the FixSubmit
	Slot   uint32
	Code   Code   // of a refusal, 0 for an order
	Entry  uint64 // the sequence number of the entry
	Number uint64 // MsgSeqNum of the report
	TimeNs int64  // of the entry
	Epoch  uint32 // of the entry
	Body   []byte // of a refusal; of an order the message in the log, if functions changed it
}

const fixAckFixed = HeaderSize + 48

// AppendFixAck appends a FixAck frame.
func AppendFixAck(dst []byte, p PartitionID, m *FixAck) []byte {
	dst, f := begin(dst, TypeFixAck, 0, p, fixAckFixed+len(m.Body))
	le.PutUint64(f[8:], m.Seq)
	le.PutUint32(f[16:], m.Slot)
	le.PutUint32(f[20:], uint32(m.Code))
	le.PutUint64(f[24:], m.Entry)
	le.PutUint64(f[32:], m.Number)
	le.PutUint64(f[40:], uint64(m.TimeNs))
	le.PutUint64(f[48:], uint64(m.Epoch))
	copy(f[fixAckFixed:], m.Body)
	return dst
}

// DecodeFixAck decodes a FixAck frame.
func DecodeFixAck(f []byte, m *FixAck) error {
	if err := open(f, TypeFixAck, fixAckFixed, false); err != nil {
		return err
	}
	*m = FixAck{
		Seq: le.Uint64(f[8:]), Slot: le.Uint32(f[16:]), Code: Code(le.Uint16(f[20:])), Entry: le.Uint64(f[24:]),
		Number: le.Uint64(f[32:]), TimeNs: int64(le.Uint64(f[40:])), Epoch: le.Uint32(f[48:]), Body: f[fixAckFixed:],
	}
	switch {
	case m.Code != 0 && len(m.Body) > MaxFixBody:
		return &FrameError{Type: TypeFixAck, Field: "body", Value: uint64(len(m.Body)), Allowed: "at most 4096 bytes"}
	case len(m.Body) > MaxPayload:
		return &FrameError{Type: TypeFixAck, Field: "body", Value: uint64(len(m.Body)), Allowed: "at most 65472 bytes"}
	}
	return nil
}
