package wire

// What a Stream sends, where that is more than one set of accounts and one of symbols, and
// changes while the stream goes on.
const (
	TypeStreamSelect   Type = 0x14
	TypeStreamSelected Type = 0x15
)

var selectFrames = []Frame{
	{Type: TypeStreamSelect, Name: "StreamSelect", From: FromClient, Needs: MayWatch, codec: codecOn(DecodeStreamSelect, AppendStreamSelect),
		Example: &StreamSelect{ReqID: 18, Version: 2, QuietMs: 10, Selectors: []Selector{{What: SelectOrders, Account: []byte("A17")}, {What: SelectExecutions, Account: []byte("A17"), Symbol: []byte("IBM")}}}},
	{Type: TypeStreamSelected, Name: "StreamSelected", From: FromNode, codec: codecOn(DecodeStreamSelected, AppendStreamSelected),
		Example: &StreamSelected{ReqID: 18, Version: 2, From: 5}},
}

func (m *StreamSelect) request() (uint64, uint32) { return m.ReqID, 0 }

// Bits of Selector.What. Bit n, 1 to 8, is executions of kind n.
const (
	SelectOrders     uint16 = 1
	SelectExecutions uint16 = 0x1fe   // of all kinds
	SelectOther      uint16 = 1 << 15 // entries that are no orders, with neither account nor symbol
)

// MaxSelectors bounds those of a StreamSelect, MaxSelectSize its bytes, and MaxQuietMs its QuietMs.
const (
	MaxSelectors  = 4096
	MaxSelectSize = 56 << 10
	MaxQuietMs    = 1000
)

// Selector lets through what is of an account and of a symbol.
type Selector struct {
	What            uint16
	Account, Symbol []byte // none: of any
}

// StreamSelect says what a stream with StreamBySelect sends from now on: what any of its
// selectors lets through, without selectors nothing.
type StreamSelect struct {
	ReqID     uint64 // of the Stream
	Version   uint32 // the answer repeats it
	QuietMs   uint16 // an entry that is not let through is in a range that is sent this much later at most, 1..MaxQuietMs
	Selectors []Selector
}

const selectFixed = HeaderSize + 16

// SelectSize is the size of a StreamSelect frame, but for its selectors; SelectorSize that of one.
const SelectSize = selectFixed

// SelectorSize returns how many bytes of a StreamSelect a selector of such values takes.
func SelectorSize(account, symbol int) int { return 4 + account + symbol }

// AppendStreamSelect appends a StreamSelect frame.
func AppendStreamSelect(dst []byte, p PartitionID, m *StreamSelect) []byte {
	size := selectFixed
	for i := range m.Selectors {
		size += SelectorSize(len(m.Selectors[i].Account), len(m.Selectors[i].Symbol))
	}
	dst, f := begin(dst, TypeStreamSelect, 0, p, size)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint32(f[16:], m.Version)
	le.PutUint16(f[20:], m.QuietMs)
	le.PutUint16(f[22:], uint16(len(m.Selectors)))
	b := f[selectFixed:]
	for i := range m.Selectors {
		s := &m.Selectors[i]
		le.PutUint16(b, s.What)
		b[2], b[3] = uint8(len(s.Account)), uint8(len(s.Symbol))
		b = b[4+copy(b[4:], s.Account):]
		b = b[copy(b, s.Symbol):]
	}
	return dst
}

// DecodeStreamSelect decodes a StreamSelect frame.
func DecodeStreamSelect(f []byte, m *StreamSelect) error {
	if err := CheckStreamSelect(f, m); err != nil {
		return err
	}
	m.Selectors = nil
	EachSelector(f, func(s Selector) {
		if len(s.Account) == 0 {
			s.Account = nil
		}
		if len(s.Symbol) == 0 {
			s.Symbol = nil
		}
		m.Selectors = append(m.Selectors, s)
	})
	return nil
}

// CheckStreamSelect is DecodeStreamSelect without the selectors. It allocates nothing.
func CheckStreamSelect(f []byte, m *StreamSelect) error {
	if err := open(f, TypeStreamSelect, selectFixed, false); err != nil {
		return err
	}
	*m = StreamSelect{ReqID: le.Uint64(f[8:]), Version: le.Uint32(f[16:]), QuietMs: le.Uint16(f[20:])}
	n, b := int(le.Uint16(f[22:])), f[selectFixed:]
	switch {
	case m.QuietMs < 1 || m.QuietMs > MaxQuietMs:
		return &FrameError{Type: TypeStreamSelect, Field: "quietMs", Value: uint64(m.QuietMs), Allowed: "1..1000"}
	case len(f) > MaxSelectSize:
		return &FrameError{Type: TypeStreamSelect, Field: "size", Value: uint64(len(f)), Allowed: "at most 57344 bytes"}
	case n > MaxSelectors || 4*n > len(b):
		return &FrameError{Type: TypeStreamSelect, Field: "selectors", Value: uint64(n), Allowed: "at most 4096, and no more than the bytes that follow"}
	}
	for range n {
		if len(b) < 4 {
			return &FrameError{Type: TypeStreamSelect, Field: "selector", Value: uint64(len(b)), Allowed: "4 bytes or more"}
		}
		what, account, symbol := le.Uint16(b), int(b[2]), int(b[3])
		switch {
		case what == 0 || what&^(SelectOrders|SelectExecutions|SelectOther) != 0:
			return &FrameError{Type: TypeStreamSelect, Field: "what", Value: uint64(what), Allowed: "bits 0 to 8 and 15, one at least"}
		case what&SelectOther != 0 && account+symbol > 0:
			return &FrameError{Type: TypeStreamSelect, Field: "what", Value: uint64(what), Allowed: "without bit 15 where there is an account or a symbol"}
		case account > MaxSelectedValue || symbol > MaxSelectedValue || 4+account+symbol > len(b):
			return &FrameError{Type: TypeStreamSelect, Field: "accountLen", Value: uint64(account), Allowed: "with symbolLen 0..64 each, and no more than the bytes that follow"}
		}
		b = b[4+account+symbol:]
	}
	return done(b, TypeStreamSelect)
}

// EachSelector calls f with the selectors of a StreamSelect frame that CheckStreamSelect takes. They refer to the frame.
func EachSelector(frame []byte, f func(Selector)) {
	b := frame[selectFixed:]
	for range le.Uint16(frame[22:]) {
		account, symbol := 4+int(b[2]), 4+int(b[2])+int(b[3])
		f(Selector{What: le.Uint16(b), Account: b[4:account:account], Symbol: b[account:symbol:symbol]})
		b = b[symbol:]
	}
}

// StreamSelected says from which entry on a stream sends what a StreamSelect says. It is
// sent before the StreamPart that From is in, or is behind of.
type StreamSelected struct {
	ReqID   uint64
	Version uint32 // of the StreamSelect
	From    uint64 // entries before it were examined by what was said before
}

// AppendStreamSelected appends a StreamSelected frame.
func AppendStreamSelected(dst []byte, p PartitionID, m *StreamSelected) []byte {
	dst, f := begin(dst, TypeStreamSelected, 0, p, HeaderSize+24)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint32(f[16:], m.Version)
	le.PutUint32(f[20:], 0)
	le.PutUint64(f[24:], m.From)
	return dst
}

// DecodeStreamSelected decodes a StreamSelected frame.
func DecodeStreamSelected(f []byte, m *StreamSelected) error {
	if err := open(f, TypeStreamSelected, HeaderSize+24, true); err != nil {
		return err
	}
	m.ReqID, m.Version, m.From = le.Uint64(f[8:]), le.Uint32(f[16:]), le.Uint64(f[24:])
	if m.From == 0 {
		return &FrameError{Type: TypeStreamSelected, Field: "from", Value: 0, Allowed: "1 or more"}
	}
	return nil
}
