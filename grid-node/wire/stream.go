package wire

// A log and what it did as a stream: orders, executions, or both, selected by account and
// symbol. FollowCredit gives it room, FollowEnd ends it.
const (
	TypeStream     Type = 0x7c
	TypeStreamPart Type = 0x7d
)

var streamFrames = []Frame{
	{Type: TypeStream, Name: "Stream", From: FromClient, Needs: MayWatch, codec: codecOn(DecodeStream, AppendStream),
		Example: &Stream{ReqID: 18, FromSeq: 5, FromHash: 0x1122334455667788, Lineage: 1, Window: 1 << 20, What: StreamExecutions, Accounts: [][]byte{[]byte("A17")}, Symbols: [][]byte{[]byte("IBM")}}},
	{Type: TypeStreamPart, Name: "StreamPart", From: FromNode, codec: codecOn(DecodeStreamPart, AppendStreamPart),
		Example: &StreamPart{ReqID: 18, From: 5, Through: 5, CommitSeq: 5, ThroughHash: 0x1122334455667788, Lineage: 1, Window: 1 << 20, Entries: exampleEntry,
			Executions: AppendExecuted(nil, &Executed{Entry: 5, N: 2, TimeNs: 1000000, Record: exampleRecord(nil, 2)[8:], PriceDigits: 2, Symbol: []byte("IBM"), Account: []byte("A17"), ClOrdID: []byte("A-1")})}},
}

func (m *Stream) request() (uint64, uint32) { return m.ReqID, 0 }

// Stream.What: what is sent of an entry that is committed.
const (
	StreamOrders     uint8 = 1 // the entry; without accounts and symbols entries of all kinds
	StreamExecutions uint8 = 2 // what it did, in a partition that matches
	// StreamBySelect, alone and without accounts and symbols: what StreamSelect says. Until one
	// comes nothing is examined.
	StreamBySelect uint8 = 4
)

// MaxSelected bounds the accounts, and the symbols, of a Stream; MaxSelectedValue the bytes
// of each.
const (
	MaxSelected      = 256
	MaxSelectedValue = 64
)

// Stream asks a replica for what its committed log has and does, from an entry on.
type Stream struct {
	ReqID    uint64
	FromSeq  uint64 // first entry wanted; 0: the one behind what is committed when the request comes
	FromHash uint64 // of entry FromSeq-1; 0: not known
	Lineage  uint32 // of what the follower holds; 0: it does not know
	Window   uint32 // bytes of frames that may be sent and not credited, 1 or more
	What     uint8  // StreamOrders, StreamExecutions or both; or StreamBySelect
	// Orders and executions of one of these accounts, and of one of these symbols; none: of all.
	Accounts, Symbols [][]byte
}

const streamFixed = HeaderSize + 40

// AppendStream appends a Stream frame.
func AppendStream(dst []byte, p PartitionID, m *Stream) []byte {
	size := streamFixed
	for _, list := range [2][][]byte{m.Accounts, m.Symbols} {
		for _, v := range list {
			size += size8(v)
		}
	}
	dst, f := begin(dst, TypeStream, 0, p, size)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.FromSeq)
	le.PutUint64(f[24:], m.FromHash)
	le.PutUint32(f[32:], m.Lineage)
	le.PutUint32(f[36:], m.Window)
	f[40], f[41], f[42], f[43] = m.What, 0, 0, 0
	le.PutUint16(f[44:], uint16(len(m.Accounts)))
	le.PutUint16(f[46:], uint16(len(m.Symbols)))
	b := f[streamFixed:]
	for _, list := range [2][][]byte{m.Accounts, m.Symbols} {
		for _, v := range list {
			b = putString8(b, v)
		}
	}
	return dst
}

// DecodeStream decodes a Stream frame.
func DecodeStream(f []byte, m *Stream) error {
	if err := CheckStream(f, m); err != nil {
		return err
	}
	EachSelected(f, func(v []byte) { m.Accounts = append(m.Accounts, v) }, func(v []byte) { m.Symbols = append(m.Symbols, v) })
	return nil
}

// CheckStream is DecodeStream without accounts and symbols. It allocates nothing.
func CheckStream(f []byte, m *Stream) (err error) {
	if err := open(f, TypeStream, streamFixed, false); err != nil {
		return err
	}
	*m = Stream{ReqID: le.Uint64(f[8:]), FromSeq: le.Uint64(f[16:]), FromHash: le.Uint64(f[24:]), Lineage: le.Uint32(f[32:]), Window: le.Uint32(f[36:]), What: f[40]}
	accounts, symbols := le.Uint16(f[44:]), le.Uint16(f[46:])
	switch {
	case m.Window == 0:
		return &FrameError{Type: TypeStream, Field: "window", Value: 0, Allowed: "1 or more bytes"}
	case m.FromSeq <= 1 && m.FromHash != 0:
		return &FrameError{Type: TypeStream, Field: "fromHash", Value: m.FromHash, Allowed: "0 where no entry is before"}
	case m.What < StreamOrders || m.What > StreamBySelect:
		return &FrameError{Type: TypeStream, Field: "what", Value: uint64(m.What), Allowed: "1 orders, 2 executions, 3 both, 4 what StreamSelect says"}
	case m.What == StreamBySelect && accounts > 0:
		return &FrameError{Type: TypeStream, Field: "accounts", Value: uint64(accounts), Allowed: "none where what is 4"}
	case m.What == StreamBySelect && symbols > 0:
		return &FrameError{Type: TypeStream, Field: "symbols", Value: uint64(symbols), Allowed: "none where what is 4"}
	}
	b := f[streamFixed:]
	if b, err = checkSelected(b, accounts, TypeStream, "account"); err != nil {
		return err
	}
	if b, err = checkSelected(b, symbols, TypeStream, "symbol"); err != nil {
		return err
	}
	return done(b, TypeStream)
}

// Selected returns how many accounts and symbols a Stream frame has that CheckStream takes.
func Selected(f []byte) (accounts, symbols int) {
	return int(le.Uint16(f[44:])), int(le.Uint16(f[46:]))
}

// EachSelected calls account and symbol with those of a Stream frame that CheckStream takes. They refer to the frame.
func EachSelected(f []byte, account, symbol func([]byte)) {
	accounts, b := le.Uint16(f[44:]), f[streamFixed:]
	for i := range accounts + le.Uint16(f[46:]) {
		v := b[1 : 1+int(b[0]) : 1+int(b[0])]
		if i < accounts {
			account(v)
		} else {
			symbol(v)
		}
		b = b[1+len(v):]
	}
}

// checkSelected passes over a list of values.
func checkSelected(b []byte, n uint16, t Type, field string) (rest []byte, err error) {
	if n > MaxSelected || int(n) > len(b) {
		return nil, &FrameError{Type: t, Field: field + "s", Value: uint64(n), Allowed: "at most 256, and no more than the bytes that follow"}
	}
	for range n {
		var v []byte
		if v, b, err = cutString8(b, t, field); err != nil {
			return nil, err
		}
		if len(v) == 0 || len(v) > MaxSelectedValue {
			return nil, &FrameError{Type: t, Field: field + "Len", Value: uint64(len(v)), Allowed: "1..64 bytes"}
		}
	}
	return b, nil
}

// FlagUnfinished on StreamPart: the frame has executions of entry Through+1, and those that are
// missing follow. Only of an entry that did so much that a frame does not hold it.
const FlagUnfinished uint8 = 1

// StreamPart is the next part of a Stream. Every entry of From..Through is committed and was
// examined, and what is selected of them is here. The first frame follows the request at
// once, and may be empty.
type StreamPart struct {
	ReqID       uint64
	From        uint64 // the entry behind Through of the frame before
	Through     uint64 // From-1: none was examined
	CommitSeq   uint64 // committed prefix of the replica when it sent this
	ThroughHash uint64 // hash of entry Through: with it a follower resumes elsewhere
	Lineage     uint32 // of the log
	Window      uint32 // bytes that may be sent and not credited, as granted
	Entries     []byte // whole entries, each padded to 8 bytes, in the order of their seq
	Executions  []byte // each as AppendExecuted writes it, in the order of their entries and numbers
	More        bool   // FlagUnfinished
}

// StreamPartFixed is the size of a StreamPart frame without what follows.
const StreamPartFixed = HeaderSize + 56

// AppendStreamPart appends a StreamPart frame.
func AppendStreamPart(dst []byte, p PartitionID, m *StreamPart) []byte {
	dst, f := begin(dst, TypeStreamPart, 0, p, StreamPartFixed+len(m.Entries)+len(m.Executions))
	if m.More {
		f[5] = FlagUnfinished
	}
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.From)
	le.PutUint64(f[24:], m.Through)
	le.PutUint64(f[32:], m.CommitSeq)
	le.PutUint64(f[40:], m.ThroughHash)
	le.PutUint32(f[48:], m.Lineage)
	le.PutUint32(f[52:], m.Window)
	le.PutUint32(f[56:], uint32(len(m.Entries)))
	le.PutUint32(f[60:], uint32(len(m.Executions)))
	copy(f[StreamPartFixed+copy(f[StreamPartFixed:], m.Entries):], m.Executions)
	return dst
}

// SetStreamed sets Through, ThroughHash and More of a StreamPart frame, and how many bytes of
// entries and executions were written behind it since.
func SetStreamed(f []byte, through, hash uint64, entries, executions int, more bool) {
	if more {
		f[5] = FlagUnfinished
	}
	le.PutUint64(f[24:], through)
	le.PutUint64(f[40:], hash)
	le.PutUint32(f[56:], uint32(entries))
	le.PutUint32(f[60:], uint32(executions))
}

// DecodeStreamPart decodes a StreamPart frame. Entries are iterated with order.NextEntry,
// executions with NextExecuted.
func DecodeStreamPart(f []byte, m *StreamPart) error {
	if err := open(f, TypeStreamPart, StreamPartFixed, false); err != nil {
		return err
	}
	*m = StreamPart{ReqID: le.Uint64(f[8:]), From: le.Uint64(f[16:]), Through: le.Uint64(f[24:]), CommitSeq: le.Uint64(f[32:]), ThroughHash: le.Uint64(f[40:]),
		Lineage: le.Uint32(f[48:]), Window: le.Uint32(f[52:]), More: f[5]&FlagUnfinished != 0}
	entries, executions := uint64(le.Uint32(f[56:])), uint64(le.Uint32(f[60:]))
	b := f[StreamPartFixed:]
	switch {
	case m.From == 0:
		return &FrameError{Type: TypeStreamPart, Field: "from", Value: 0, Allowed: "1 or more"}
	case m.Through < m.From-1 || m.Through > m.CommitSeq:
		return &FrameError{Type: TypeStreamPart, Field: "through", Value: m.Through, Allowed: "from-1 or more, at most commitSeq"}
	case entries+executions != uint64(len(b)):
		return &FrameError{Type: TypeStreamPart, Field: "executionBytes", Value: executions, Allowed: "with entryBytes as many as follow"}
	case m.Through < m.From && entries > 0:
		return &FrameError{Type: TypeStreamPart, Field: "entryBytes", Value: entries, Allowed: "none where no entry was examined"}
	case m.Through < m.From && executions > 0 && !m.More:
		return &FrameError{Type: TypeStreamPart, Field: "executionBytes", Value: executions, Allowed: "none where no entry was examined, but with flag 1"}
	case executions%8 != 0:
		return &FrameError{Type: TypeStreamPart, Field: "executionBytes", Value: executions, Allowed: "a multiple of 8"}
	}
	m.Entries, m.Executions = b[:entries:entries], b[entries:]
	return entriesLen(m.Entries, TypeStreamPart)
}

// ExecutedUnknown of Executed.Flags: the entry of the order was freed, and with it who it is of.
const ExecutedUnknown uint8 = 1

// Executed is a record of what a committed entry did, with what its reader would otherwise
// have to look up.
type Executed struct {
	Entry  uint64
	N      uint32 // in its entry, from 1
	TimeNs int64  // of the entry: when the primary received it
	Record []byte // ExecRecordSize bytes
	// Digits behind the point of prices and quantities, which are in units.
	PriceDigits, QtyDigits uint8
	Flags                  uint8
	Symbol                 []byte
	Account                []byte // FIX tag 1 of the order's last accepted message
	ClOrdID                []byte // of that message
}

// executedFixed is what is before the record, the record, and six bytes of lengths.
const executedFixed = 24 + ExecRecordSize + 8

// AppendExecuted appends an execution of a StreamPart.
func AppendExecuted(dst []byte, x *Executed) []byte {
	at := len(dst)
	dst = le.AppendUint32(le.AppendUint32(dst, 0), x.N)
	dst = le.AppendUint64(le.AppendUint64(dst, x.Entry), uint64(x.TimeNs))
	dst = append(dst, x.Record[:ExecRecordSize]...)
	dst = append(dst, x.PriceDigits, x.QtyDigits, x.Flags, uint8(len(x.Symbol)), uint8(len(x.Account)), uint8(len(x.ClOrdID)), 0, 0)
	dst = append(append(append(dst, x.Symbol...), x.Account...), x.ClOrdID...)
	for (len(dst)-at)%8 != 0 {
		dst = append(dst, 0)
	}
	le.PutUint32(dst[at:], uint32(len(dst)-at))
	return dst
}

// NextExecuted reads the first of several executions and returns the bytes after it. x
// refers to b.
func NextExecuted(b []byte, x *Executed) (rest []byte, err error) {
	if len(b) < executedFixed {
		return nil, &FrameError{Type: TypeStreamPart, Field: "execution", Value: uint64(len(b)), Allowed: "96 bytes or more"}
	}
	size := uint64(le.Uint32(b))
	*x = Executed{N: le.Uint32(b[4:]), Entry: le.Uint64(b[8:]), TimeNs: int64(le.Uint64(b[16:])), Record: b[24 : 24+ExecRecordSize]}
	s := b[24+ExecRecordSize:]
	x.PriceDigits, x.QtyDigits, x.Flags = s[0], s[1], s[2]
	symbol, account, id := int(s[3]), int(s[4]), int(s[5])
	if want := uint64(executedFixed+symbol+account+id+7) &^ 7; size != want || size > uint64(len(b)) {
		return nil, &FrameError{Type: TypeStreamPart, Field: "executionSize", Value: size, Allowed: "as its lengths say, and no more than the bytes that follow"}
	}
	t := b[executedFixed:size]
	x.Symbol, x.Account, x.ClOrdID = t[:symbol:symbol], t[symbol:symbol+account:symbol+account], t[symbol+account:symbol+account+id]
	return b[size:], nil
}
