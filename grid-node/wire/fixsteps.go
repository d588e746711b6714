package wire

// Numbers of FIX sessions without orders, and their reports again.
const (
	TypeFixStep    Type = 0x26
	TypeFixStepped Type = 0x27
	TypeFixResend  Type = 0x32
	TypeFixResent  Type = 0x33
)

const (
	// MaxFixBody is the most bytes that a report of a refusal is made of.
	MaxFixBody = 4096
	// MaxCopyList bounds the sources of a drop copy, in bytes.
	MaxCopyList = 40 << 10
	// FixStepCopies is the op of the one record of a FixStep that names the sources of a drop copy.
	FixStepCopies = 8
	// MaxFixRecords bounds the sessions of a FixStep.
	MaxFixRecords = 1024
	// MaxFixStep bounds the frame: its records fit an entry.
	MaxFixStep = 60 << 10
	// MaxFixResent bounds the entries of a FixResent, unless it has one only.
	MaxFixResent = 64 << 10
)

// FixStep asks for numbers of several sessions with one entry: of administrative messages,
// and of refusals by the gateway.
type FixStep struct {
	ReqID   uint64
	Epoch   uint64
	Records []FixStepRecord // rising slots
}

// FixStepRecord is one session of a FixStep.
type FixStepRecord struct {
	Slot       uint32
	Generation uint32
	Attempt    uint32
	Op         uint8  // 2 step, 3 refusal, 7 a step that answers the Logout of the counterparty, 8 sources of a drop copy
	Outs       uint8  // numbers that it takes: 1..255, of a refusal 1, of sources 0
	In         uint64 // the MsgSeqNum expected next
	Prev       uint64 // as in FixSubmit
	Body       []byte // of a refusal: what its report is made of; of a drop copy: its sources
}

const (
	fixStepFixed   = HeaderSize + 24
	fixRecordFixed = 32
)

func pad8(n int) int { return (n + 7) &^ 7 }

// AppendFixStep appends a FixStep frame.
func AppendFixStep(dst []byte, p PartitionID, m *FixStep) []byte {
	size := fixStepFixed
	for i := range m.Records {
		size += fixRecordFixed + pad8(len(m.Records[i].Body))
	}
	dst, f := begin(dst, TypeFixStep, 0, p, size)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Epoch)
	le.PutUint64(f[24:], uint64(len(m.Records)))
	b := f[fixStepFixed:]
	for i := range m.Records {
		r := &m.Records[i]
		le.PutUint32(b, r.Slot)
		le.PutUint32(b[4:], r.Generation)
		le.PutUint32(b[8:], r.Attempt)
		b[12], b[13] = r.Op, r.Outs
		le.PutUint16(b[14:], uint16(len(r.Body)))
		le.PutUint64(b[16:], r.In)
		le.PutUint64(b[24:], r.Prev)
		n := copy(b[fixRecordFixed:], r.Body)
		b = b[fixRecordFixed:]
		clear(b[n:pad8(n)])
		b = b[pad8(n):]
	}
	return dst
}

// DecodeFixStep decodes a FixStep frame. Records of m are reused.
func DecodeFixStep(f []byte, m *FixStep) error {
	if err := open(f, TypeFixStep, fixStepFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Epoch = le.Uint64(f[8:]), le.Uint64(f[16:])
	n, b := le.Uint32(f[24:]), f[fixStepFixed:]
	if n == 0 || n > MaxFixRecords || len(f) > MaxFixStep {
		return &FrameError{Type: TypeFixStep, Field: "nRecords", Value: uint64(n), Allowed: "1..1024, in a frame of at most 61440 bytes"}
	}
	m.Records = m.Records[:0]
	for last := int64(-1); n > 0; n-- {
		if len(b) < fixRecordFixed {
			return &FrameError{Type: TypeFixStep, Field: "records", Value: uint64(len(b)), Allowed: "32 bytes and the body"}
		}
		r := FixStepRecord{
			Slot: le.Uint32(b), Generation: le.Uint32(b[4:]), Attempt: le.Uint32(b[8:]), Op: b[12], Outs: b[13],
			In: le.Uint64(b[16:]), Prev: le.Uint64(b[24:]),
		}
		size := int(le.Uint16(b[14:]))
		switch b = b[fixRecordFixed:]; {
		case r.Op == FixStepCopies && (n > 1 || last >= 0 || r.Outs != 0 || size > MaxCopyList || pad8(size) > len(b)):
			return &FrameError{Type: TypeFixStep, Field: "bodySize", Value: uint64(size), Allowed: "0..40960 for the sources of a drop copy, the one record of its frame, with outs 0"}
		case r.Op == FixStepCopies:
		case size > MaxFixBody || pad8(size) > len(b):
			return &FrameError{Type: TypeFixStep, Field: "bodySize", Value: uint64(size), Allowed: "0..4096, and no more than the bytes that follow"}
		case r.Op != 2 && r.Op != 3 && r.Op != 7:
			return &FrameError{Type: TypeFixStep, Field: "op", Value: uint64(r.Op), Allowed: "2 step, 3 refusal, 7 leave, 8 sources of a drop copy"}
		case r.Outs == 0 || r.Op == 3 && r.Outs != 1 || r.Op != 3 && size != 0:
			return &FrameError{Type: TypeFixStep, Field: "outs", Value: uint64(r.Outs), Allowed: "1..255 and no body for a step and a leave, 1 for a refusal"}
		case r.In == 0 || r.In > MaxFixSeq:
			return &FrameError{Type: TypeFixStep, Field: "in", Value: r.In, Allowed: "1..2^62"}
		case int64(r.Slot) <= last:
			return &FrameError{Type: TypeFixStep, Field: "slot", Value: uint64(r.Slot), Allowed: "rising slots"}
		}
		last = int64(r.Slot)
		if size > 0 {
			r.Body = b[:size:size]
		}
		b = b[pad8(size):]
		m.Records = append(m.Records, r)
	}
	return done(b, TypeFixStep)
}

// FixStepped answers a FixStep: at once for the records that are refused, and for the
// others when their entry is committed.
type FixStepped struct {
	ReqID   uint64
	TimeNs  int64  // of the entry, 0 for refused records
	Entry   uint64 // its sequence number, likewise
	Records []FixNumber
}

// FixNumber is the answer to one record.
type FixNumber struct {
	Slot  uint32
	Code  Code   // why it is refused, 0 if it is not
	First uint64 // the first number that it takes; of a refused one what the code says
}

const (
	fixSteppedFixed = HeaderSize + 32
	fixNumberSize   = 16
)

// AppendFixStepped appends a FixStepped frame.
func AppendFixStepped(dst []byte, p PartitionID, m *FixStepped) []byte {
	dst, f := begin(dst, TypeFixStepped, 0, p, fixSteppedFixed+len(m.Records)*fixNumberSize)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], uint64(m.TimeNs))
	le.PutUint64(f[24:], m.Entry)
	le.PutUint64(f[32:], uint64(len(m.Records)))
	b := f[fixSteppedFixed:]
	for i := range m.Records {
		r := &m.Records[i]
		le.PutUint32(b, r.Slot)
		le.PutUint32(b[4:], uint32(r.Code))
		le.PutUint64(b[8:], r.First)
		b = b[fixNumberSize:]
	}
	return dst
}

// DecodeFixStepped decodes a FixStepped frame. Records of m are reused.
func DecodeFixStepped(f []byte, m *FixStepped) error {
	if err := open(f, TypeFixStepped, fixSteppedFixed, false); err != nil {
		return err
	}
	m.ReqID, m.TimeNs, m.Entry = le.Uint64(f[8:]), int64(le.Uint64(f[16:])), le.Uint64(f[24:])
	n, b := le.Uint32(f[32:]), f[fixSteppedFixed:]
	if n > MaxFixRecords || int(n)*fixNumberSize != len(b) {
		return &FrameError{Type: TypeFixStepped, Field: "nRecords", Value: uint64(n), Allowed: "0..1024, and all of them in the frame"}
	}
	m.Records = m.Records[:0]
	for ; len(b) > 0; b = b[fixNumberSize:] {
		m.Records = append(m.Records, FixNumber{Slot: le.Uint32(b), Code: Code(le.Uint16(b[4:])), First: le.Uint64(b[8:])})
	}
	return nil
}

// FixResend asks for the entries of the reports with these numbers.
type FixResend struct {
	ReqID          uint64
	Slot           uint32
	Generation     uint32
	Attempt        uint32
	First, Through uint64 // numbers
}

const fixResendSize = HeaderSize + 40

// AppendFixResend appends a FixResend frame.
func AppendFixResend(dst []byte, p PartitionID, m *FixResend) []byte {
	dst, f := begin(dst, TypeFixResend, 0, p, fixResendSize)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint32(f[16:], m.Slot)
	le.PutUint32(f[20:], m.Generation)
	le.PutUint64(f[24:], uint64(m.Attempt))
	le.PutUint64(f[32:], m.First)
	le.PutUint64(f[40:], m.Through)
	return dst
}

// DecodeFixResend decodes a FixResend frame.
func DecodeFixResend(f []byte, m *FixResend) error {
	if err := open(f, TypeFixResend, fixResendSize, true); err != nil {
		return err
	}
	*m = FixResend{ReqID: le.Uint64(f[8:]), Slot: le.Uint32(f[16:]), Generation: le.Uint32(f[20:]), Attempt: le.Uint32(f[24:]), First: le.Uint64(f[32:]), Through: le.Uint64(f[40:])}
	if m.First == 0 || m.First > m.Through || m.Through >= MaxFixSeq {
		return &FrameError{Type: TypeFixResend, Field: "first", Value: m.First, Allowed: "1 to through, which is below 2^62"}
	}
	return nil
}

// FixResent answers a FixResend. Numbers below Next that have no entry were of
// administrative messages, or their entries are freed: they are gap filled.
type FixResent struct {
	ReqID   uint64
	Next    uint64 // the first number that was not looked at
	Entries []byte // for each its number, u64, and the entry, padded to 8 bytes
}

const fixResentFixed = HeaderSize + 16

// AppendFixResent appends a FixResent frame.
func AppendFixResent(dst []byte, p PartitionID, m *FixResent) []byte {
	dst, f := begin(dst, TypeFixResent, 0, p, fixResentFixed+len(m.Entries))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Next)
	copy(f[fixResentFixed:], m.Entries)
	return dst
}

// DecodeFixResent decodes a FixResent frame. NextResent iterates over its entries.
func DecodeFixResent(f []byte, m *FixResent) error {
	if err := open(f, TypeFixResent, fixResentFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Next, m.Entries = le.Uint64(f[8:]), le.Uint64(f[16:]), f[fixResentFixed:]
	return checkResent(TypeFixResent, m.Entries)
}

func checkResent(t Type, b []byte) error {
	for len(b) > 0 {
		_, entry, rest := NextResent(b)
		if entry == nil {
			return &FrameError{Type: t, Field: "entries", Value: uint64(len(b)), Allowed: "numbers, each with an entry padded to 8 bytes"}
		}
		b = rest
	}
	return nil
}

// NextResent returns the first number and its padded entry; nil if the bytes are none.
func NextResent(b []byte) (number uint64, entry, rest []byte) {
	if len(b) < 12 {
		return 0, nil, nil
	}
	n := uint64(le.Uint32(b[8:])+7) &^ 7
	if n == 0 || n > uint64(len(b)-8) {
		return 0, nil, nil
	}
	return le.Uint64(b), b[8 : 8+n : 8+n], b[8+n:]
}
