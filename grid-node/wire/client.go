package wire

// Sessions and orders.
const (
	TypeOpenSession   Type = 0x10
	TypeSessionOpened Type = 0x11
	TypeSubmit        Type = 0x20
	TypeAck           Type = 0x21
	TypeReject        Type = 0x22
	TypeNotPrimary    Type = 0x23
)

var orderFrames = []Frame{
	{Type: TypeOpenSession, Name: "OpenSession", From: FromClient, ToReplica: true, Needs: MaySubmit, codec: codecOn(DecodeOpenSession, AppendOpenSession),
		Example: &OpenSession{ReqID: 10, IDHi: 0x0123456789abcdef, IDLo: 0xfedcba9876543210, Epoch: 3, Attempt: 2}},
	{Type: TypeSessionOpened, Name: "SessionOpened", From: FromNode, codec: codecOn(DecodeSessionOpened, AppendSessionOpened),
		Example: &SessionOpened{ReqID: 10, Slot: 4, Generation: 1, Window: 512, LastClientSeq: 0, Epoch: 3}},
	{Type: TypeSubmit, Name: "Submit", From: FromClient, ToReplica: true, Needs: MaySubmit, codec: codecOn(DecodeSubmit, AppendSubmit),
		Example: &Submit{Epoch: 3, Slot: 4, Generation: 1, ClientSeq: 1, Payload: []byte("8=FIX.4.4\x01")}},
	{Type: TypeAck, Name: "Ack", From: FromNode, codec: codecOn(DecodeAck, AppendAck),
		Example: &Ack{ClientSeq: 1, Seq: 17, Epoch: 3, Slot: 4, Copies: 2, Flags: AckDup, Hash: 0x1122334455667788, Lineage: 1}},
	{Type: TypeReject, Name: "Reject", From: FromNode, codec: codecOn(DecodeReject, AppendReject),
		Example: &Reject{RequestID: 2, Slot: 4, Code: CodeBadFIX, ForType: TypeSubmit, Tag: 38, Text: []byte("tag 38 (OrderQty)")}},
	{Type: TypeNotPrimary, Name: "NotPrimary", From: FromNode, codec: codecOn(DecodeNotPrimary, AppendNotPrimary),
		Example: &NotPrimary{RequestID: 2, Epoch: 4, Slot: 4, ForType: TypeSubmit, Address: exampleOther.Address, Member: exampleOther.Member}},
}

func (m *OpenSession) request() (uint64, uint32) { return m.ReqID, 0 }
func (m *Submit) request() (uint64, uint32)      { return m.ClientSeq, m.Slot }

// OpenSession requests a session of a partition. Opening the same id again returns the
// same session, so a lost answer is repaired by a retry. The session is bound to the
// connection that opened it last: Submits on any other are rejected (CodeSessionMoved), so
// that one delayed on a connection the client has left is never applied.
type OpenSession struct {
	ReqID      uint64
	IDHi, IDLo uint64 // 128 random bits, chosen by the client, not both 0
	Epoch      uint64 // the epoch the client knows, 0 for none
	Attempt    uint64 // 1 or more; rises with every OpenSession of the id on another connection
}

const openSessionSize = HeaderSize + 40

// AppendOpenSession appends an OpenSession frame.
func AppendOpenSession(dst []byte, p PartitionID, m *OpenSession) []byte {
	dst, f := begin(dst, TypeOpenSession, 0, p, openSessionSize)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.IDHi)
	le.PutUint64(f[24:], m.IDLo)
	le.PutUint64(f[32:], m.Epoch)
	le.PutUint64(f[40:], m.Attempt)
	return dst
}

// DecodeOpenSession decodes an OpenSession frame.
func DecodeOpenSession(f []byte, m *OpenSession) error {
	if err := open(f, TypeOpenSession, openSessionSize, true); err != nil {
		return err
	}
	m.ReqID = le.Uint64(f[8:])
	m.IDHi = le.Uint64(f[16:])
	m.IDLo = le.Uint64(f[24:])
	m.Epoch = le.Uint64(f[32:])
	m.Attempt = le.Uint64(f[40:])
	if m.IDHi|m.IDLo == 0 {
		return &FrameError{Type: TypeOpenSession, Field: "id", Value: 0, Allowed: "128 random bits, not all 0"}
	}
	if m.Attempt == 0 {
		return &FrameError{Type: TypeOpenSession, Field: "attempt", Value: 0, Allowed: "1 or more, one more for every connection that opens the id"}
	}
	return nil
}

// SessionOpened answers an OpenSession.
type SessionOpened struct {
	ReqID         uint64
	Slot          uint32 // with Generation, identifies the session in Submit
	Generation    uint32
	Window        uint32 // submits the session may have in flight, and replies kept
	LastClientSeq uint64 // highest clientSeq applied so far; the next is one more
	Epoch         uint64
}

// AppendSessionOpened appends a SessionOpened frame.
func AppendSessionOpened(dst []byte, p PartitionID, m *SessionOpened) []byte {
	dst, f := begin(dst, TypeSessionOpened, 0, p, HeaderSize+40)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint32(f[16:], m.Slot)
	le.PutUint32(f[20:], m.Generation)
	le.PutUint32(f[24:], m.Window)
	le.PutUint32(f[28:], 0)
	le.PutUint64(f[32:], m.LastClientSeq)
	le.PutUint64(f[40:], m.Epoch)
	return dst
}

// DecodeSessionOpened decodes a SessionOpened frame.
func DecodeSessionOpened(f []byte, m *SessionOpened) error {
	if err := open(f, TypeSessionOpened, HeaderSize+40, true); err != nil {
		return err
	}
	m.ReqID = le.Uint64(f[8:])
	m.Slot = le.Uint32(f[16:])
	m.Generation = le.Uint32(f[20:])
	m.Window = le.Uint32(f[24:])
	m.LastClientSeq = le.Uint64(f[32:])
	m.Epoch = le.Uint64(f[40:])
	return nil
}

// Submit carries one order.
type Submit struct {
	Epoch      uint64
	Slot       uint32
	Generation uint32
	ClientSeq  uint64 // from 1, contiguous in the session
	Payload    []byte // the FIX message, 1..MaxPayload bytes
}

// SubmitFixed is the size of a Submit frame without its payload.
const SubmitFixed = HeaderSize + 24

// AppendSubmit appends a Submit frame. A payload over MaxPayload is the caller's bug; it
// is cut, and then rejected by the receiver.
func AppendSubmit(dst []byte, p PartitionID, m *Submit) []byte {
	payload := clip(m.Payload, MaxPayload+1)
	dst, f := begin(dst, TypeSubmit, 0, p, SubmitFixed+len(payload))
	le.PutUint64(f[8:], m.Epoch)
	le.PutUint32(f[16:], m.Slot)
	le.PutUint32(f[20:], m.Generation)
	le.PutUint64(f[24:], m.ClientSeq)
	copy(f[SubmitFixed:], payload)
	return dst
}

// DecodeSubmit decodes a Submit frame. A payload that is too long is left to the receiver
// to reject by code, since the stream itself is intact.
func DecodeSubmit(f []byte, m *Submit) error {
	if err := open(f, TypeSubmit, SubmitFixed, false); err != nil {
		return err
	}
	m.Epoch = le.Uint64(f[8:])
	m.Slot = le.Uint32(f[16:])
	m.Generation = le.Uint32(f[20:])
	m.ClientSeq = le.Uint64(f[24:])
	m.Payload = f[SubmitFixed:]
	if m.ClientSeq == 0 {
		return &FrameError{Type: TypeSubmit, Field: "clientSeq", Value: 0, Allowed: "1 or more"}
	}
	return nil
}

// AckDup of Ack.Flags: the order had been applied before; this is the stored reply.
const AckDup uint8 = 1

// Ack confirms that the order is committed: Copies processes hold it in memory.
type Ack struct {
	ClientSeq uint64
	Seq       uint64 // position in the partition's log
	Epoch     uint64
	Slot      uint32
	Copies    uint8
	Flags     uint8  // AckDup
	Hash      uint64 // of the log entry, 0 if it is freed; unique among all orders of all logs
	Lineage   uint32 // of the partition at the time of the answer
}

// AckSize is the size of an Ack frame.
const AckSize = HeaderSize + 48

// AppendAck appends an Ack frame.
func AppendAck(dst []byte, p PartitionID, m *Ack) []byte {
	dst, f := begin(dst, TypeAck, 0, p, AckSize)
	putAck(f, m)
	return dst
}

func putAck(f []byte, m *Ack) {
	_ = f[AckSize-1]
	le.PutUint64(f[8:], m.ClientSeq)
	le.PutUint64(f[16:], m.Seq)
	le.PutUint64(f[24:], m.Epoch)
	le.PutUint32(f[32:], m.Slot)
	f[36], f[37], f[38], f[39] = m.Copies, m.Flags, 0, 0
	le.PutUint64(f[40:], m.Hash)
	le.PutUint64(f[48:], uint64(m.Lineage))
}

// DecodeAck decodes an Ack frame.
func DecodeAck(f []byte, m *Ack) error {
	if err := open(f, TypeAck, AckSize, true); err != nil {
		return err
	}
	m.get(f)
	return nil
}

func (m *Ack) get(f []byte) {
	m.ClientSeq = le.Uint64(f[8:])
	m.Seq = le.Uint64(f[16:])
	m.Epoch = le.Uint64(f[24:])
	m.Slot = le.Uint32(f[32:])
	m.Copies, m.Flags = f[36], f[37]
	m.Hash, m.Lineage = le.Uint64(f[40:]), le.Uint32(f[48:])
}

// Reject reports that a request was not executed, and why.
type Reject struct {
	RequestID uint64 // clientSeq of a Submit, reqID of any other request
	Slot      uint32 // of a Submit
	Code      Code
	ForType   Type   // type of the refused frame
	Tag       uint32 // FIX tag at fault, 0 if none
	Detail    uint64 // see the codes
	Limit     uint64 // the allowed value, in the unit of Detail; 0 where the code defines none
	Text      []byte // human-readable
}

const rejectFixed = HeaderSize + 40

// AppendReject appends a Reject frame.
func AppendReject(dst []byte, p PartitionID, m *Reject) []byte {
	text := clip(m.Text, MaxText)
	dst, f := begin(dst, TypeReject, 0, p, rejectFixed+len(text))
	le.PutUint64(f[8:], m.RequestID)
	le.PutUint64(f[16:], m.Detail)
	le.PutUint32(f[24:], m.Slot)
	le.PutUint32(f[28:], m.Tag)
	le.PutUint16(f[32:], uint16(m.Code))
	f[34], f[35] = byte(m.ForType), 0
	le.PutUint16(f[36:], uint16(len(text)))
	f[38], f[39] = 0, 0
	le.PutUint64(f[40:], m.Limit)
	copy(f[rejectFixed:], text)
	return dst
}

// DecodeReject decodes a Reject frame.
func DecodeReject(f []byte, m *Reject) (err error) {
	if err = open(f, TypeReject, rejectFixed, false); err != nil {
		return err
	}
	m.RequestID = le.Uint64(f[8:])
	m.Detail = le.Uint64(f[16:])
	m.Slot = le.Uint32(f[24:])
	m.Tag = le.Uint32(f[28:])
	m.Code = Code(le.Uint16(f[32:]))
	m.ForType = Type(f[34])
	m.Limit = le.Uint64(f[40:])
	m.Text, err = cutText(f[rejectFixed:], le.Uint16(f[36:]), TypeReject)
	return err
}

// NotPrimary reports that another node, or none, is the partition's primary.
type NotPrimary struct {
	RequestID uint64 // clientSeq of a Submit, reqID of any other request
	Epoch     uint64 // the epoch this node knows
	Slot      uint32 // of a Submit
	ForType   Type   // type of the refused frame
	Address   []byte // "ip:port" of the primary, empty if not known
	Member    []byte // "<pod>/<bootID>" of the primary, empty if not known
}

const notPrimaryFixed = HeaderSize + 24

// AppendNotPrimary appends a NotPrimary frame.
func AppendNotPrimary(dst []byte, p PartitionID, m *NotPrimary) []byte {
	dst, f := begin(dst, TypeNotPrimary, 0, p, notPrimaryFixed+size8(m.Address)+size8(m.Member))
	le.PutUint64(f[8:], m.RequestID)
	le.PutUint64(f[16:], m.Epoch)
	le.PutUint32(f[24:], m.Slot)
	f[28], f[29], f[30], f[31] = byte(m.ForType), 0, 0, 0
	putString8(putString8(f[notPrimaryFixed:], m.Address), m.Member)
	return dst
}

// DecodeNotPrimary decodes a NotPrimary frame.
func DecodeNotPrimary(f []byte, m *NotPrimary) (err error) {
	if err = open(f, TypeNotPrimary, notPrimaryFixed, false); err != nil {
		return err
	}
	m.RequestID = le.Uint64(f[8:])
	m.Epoch = le.Uint64(f[16:])
	m.Slot = le.Uint32(f[24:])
	m.ForType = Type(f[28])
	b := f[notPrimaryFixed:]
	if m.Address, b, err = cutString8(b, TypeNotPrimary, "address"); err != nil {
		return err
	}
	if m.Member, b, err = cutString8(b, TypeNotPrimary, "member"); err != nil {
		return err
	}
	return done(b, TypeNotPrimary)
}
