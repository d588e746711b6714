package wire

// Books of a partition that matches: a client reads one, and the exchange acts on one.
const (
	TypeReadBook   Type = 0x3a
	TypeBookLevels Type = 0x3b
	TypeMarket     Type = 0x3c
	TypeMarketDone Type = 0x3d
)

var marketFrames = []Frame{
	{Type: TypeReadBook, Name: "ReadBook", From: FromClient, ToReplica: true, Needs: MayWatch, codec: codecOn(DecodeReadBook, AppendReadBook),
		Example: &ReadBook{ReqID: 14, Depth: 10, Symbol: []byte("IBM")}},
	{Type: TypeBookLevels, Name: "BookLevels", From: FromNode, codec: codecOn(DecodeBookLevels, AppendBookLevels),
		Example: &BookLevels{ReqID: 14, Seq: 20, Hash: 0x1122334455667788, ExecSeq: 31, Last: 12525, Until: 0, Low: 0, High: 100000, Bids: 1, Asks: 1, State: 3, Flags: BookTraded, PriceDigits: 2, Book: 5,
			Levels: AppendLevel(AppendLevel(nil, &BookLevel{Price: 12520, Qty: 100, Orders: 2}), &BookLevel{Price: 12530, Qty: 40, Orders: 1})}},
	{Type: TypeMarket, Name: "Market", From: FromClient, ToReplica: true, Needs: MayAdmin, codec: codecOn(DecodeMarket, AppendMarket),
		Example: &Market{ReqID: 15, Op: MarketState, State: 4, Symbol: []byte("IBM"), Reason: []byte("news pending")}},
	{Type: TypeMarketDone, Name: "MarketDone", From: FromNode, codec: codecOn(DecodeMarketDone, AppendMarketDone),
		Example: &MarketDone{ReqID: 15, Seq: 21, State: 4}},
}

// MostLevels bounds the levels of a side in one answer.
const MostLevels = 64

// ReadBook requests the best levels of a book, of a primary or backup.
type ReadBook struct {
	ReqID  uint64
	Depth  uint16 // levels of a side, 1..MostLevels
	Symbol []byte
}

func (m *ReadBook) request() (uint64, uint32) { return m.ReqID, 0 }

const readBookFixed = HeaderSize + 12

// AppendReadBook appends a ReadBook frame.
func AppendReadBook(dst []byte, p PartitionID, m *ReadBook) []byte {
	dst, f := begin(dst, TypeReadBook, 0, p, readBookFixed+size8(m.Symbol))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint16(f[16:], m.Depth)
	le.PutUint16(f[18:], 0)
	putString8(f[20:], m.Symbol)
	return dst
}

// DecodeReadBook decodes a ReadBook frame.
func DecodeReadBook(f []byte, m *ReadBook) (err error) {
	if err = open(f, TypeReadBook, readBookFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Depth = le.Uint64(f[8:]), le.Uint16(f[16:])
	if m.Depth < 1 || m.Depth > MostLevels {
		return &FrameError{Type: TypeReadBook, Field: "depth", Value: uint64(m.Depth), Allowed: "1..64"}
	}
	var rest []byte
	if m.Symbol, rest, err = cutString8(f[readBookFixed:], TypeReadBook, "symbol"); err != nil {
		return err
	}
	return done(rest, TypeReadBook)
}

// BookTraded is a flag of BookLevels: Last is a price.
const BookTraded uint8 = 1

// BookLevelSize is the size of a level: price and quantity as i64, orders as u32, u32 0.
const BookLevelSize = 24

// BookLevel is what is shown of the orders of a price.
type BookLevel struct {
	Price, Qty int64
	Orders     uint32
}

// AppendLevel appends a level.
func AppendLevel(dst []byte, l *BookLevel) []byte {
	dst = le.AppendUint64(le.AppendUint64(dst, uint64(l.Price)), uint64(l.Qty))
	return le.AppendUint64(dst, uint64(l.Orders))
}

// LevelOf reads a level of BookLevels.
func LevelOf(b []byte) BookLevel {
	return BookLevel{Price: int64(le.Uint64(b)), Qty: int64(le.Uint64(b[8:])), Orders: le.Uint32(b[16:])}
}

// BookLevels answers a ReadBook with the book as it is after a committed entry.
type BookLevels struct {
	ReqID       uint64
	Seq, Hash   uint64 // the entry, which is committed
	ExecSeq     uint64 // records up to it
	Last        int64  // price of the last trade, with flag BookTraded
	Until       int64  // a halt ends by itself at this time, unix ns; 0: never
	Low, High   int64  // new prices are within
	Bids, Asks  uint16 // levels
	State       uint8  // 0 closed, 1 call, 2 uncrossing, 3 open, 4 halted
	Flags       uint8
	PriceDigits uint8 // behind the point
	QtyDigits   uint8
	Book        uint16 // its number, which records of executions have
	Levels      []byte // of BookLevelSize each, bids first, the best of each first
}

const bookLevelsFixed = HeaderSize + 76

// AppendBookLevels appends a BookLevels frame.
func AppendBookLevels(dst []byte, p PartitionID, m *BookLevels) []byte {
	dst, f := begin(dst, TypeBookLevels, 0, p, bookLevelsFixed+len(m.Levels))
	for i, v := range [...]uint64{m.ReqID, m.Seq, m.Hash, m.ExecSeq, uint64(m.Last), uint64(m.Until), uint64(m.Low), uint64(m.High)} {
		le.PutUint64(f[8+8*i:], v)
	}
	le.PutUint16(f[72:], m.Bids)
	le.PutUint16(f[74:], m.Asks)
	f[76], f[77], f[78], f[79] = m.State, m.Flags, m.PriceDigits, m.QtyDigits
	le.PutUint16(f[80:], m.Book)
	le.PutUint16(f[82:], 0)
	copy(f[bookLevelsFixed:], m.Levels)
	return dst
}

// DecodeBookLevels decodes a BookLevels frame.
func DecodeBookLevels(f []byte, m *BookLevels) error {
	if err := open(f, TypeBookLevels, bookLevelsFixed, false); err != nil {
		return err
	}
	*m = BookLevels{ReqID: le.Uint64(f[8:]), Seq: le.Uint64(f[16:]), Hash: le.Uint64(f[24:]), ExecSeq: le.Uint64(f[32:]), Last: int64(le.Uint64(f[40:])),
		Until: int64(le.Uint64(f[48:])), Low: int64(le.Uint64(f[56:])), High: int64(le.Uint64(f[64:])), Bids: le.Uint16(f[72:]), Asks: le.Uint16(f[74:]),
		State: f[76], Flags: f[77], PriceDigits: f[78], QtyDigits: f[79], Book: le.Uint16(f[80:]), Levels: f[bookLevelsFixed:]}
	n := int(m.Bids) + int(m.Asks)
	if m.Bids > MostLevels || m.Asks > MostLevels || n*BookLevelSize != len(m.Levels) {
		return &FrameError{Type: TypeBookLevels, Field: "levels", Value: uint64(n), Allowed: "up to 64 a side, as many as the bytes that follow are"}
	}
	return nil
}

// What Market asks for.
const (
	MarketState   uint8 = 5 // the book goes to State
	MarketUncross uint8 = 6 // the call ends with an auction, then State
	MarketBand    uint8 = 7 // new prices are within Price and Top from here on
)

// MaxReason bounds the reason of a Market, in bytes.
const MaxReason = 128

// Market has the exchange act on a book: an entry of the log, with the reason.
type Market struct {
	ReqID  uint64
	Until  int64 // a halt ends by itself at this time, unix ns; 0: never
	Price  int64 // the reference price of an auction, 0 for that of the last trade; the lowest of a band
	Top    int64 // the highest price of a band; it has the place of Until
	Op     uint8
	State  uint8 // as in BookLevels, never 2; of a band 0
	Symbol []byte
	Reason []byte // 1..MaxReason bytes of printable text
}

func (m *Market) request() (uint64, uint32) { return m.ReqID, 0 }

const marketFixed = HeaderSize + 28

// AppendMarket appends a Market frame.
func AppendMarket(dst []byte, p PartitionID, m *Market) []byte {
	dst, f := begin(dst, TypeMarket, 0, p, marketFixed+size8(m.Symbol)+size8(m.Reason))
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], uint64(m.Until))
	if m.Op == MarketBand {
		le.PutUint64(f[16:], uint64(m.Top))
	}
	le.PutUint64(f[24:], uint64(m.Price))
	f[32], f[33], f[34], f[35] = m.Op, m.State, 0, 0
	putString8(putString8(f[36:], m.Symbol), m.Reason)
	return dst
}

// DecodeMarket decodes a Market frame.
func DecodeMarket(f []byte, m *Market) (err error) {
	if err = open(f, TypeMarket, marketFixed, false); err != nil {
		return err
	}
	m.ReqID, m.Until, m.Top, m.Price, m.Op, m.State = le.Uint64(f[8:]), int64(le.Uint64(f[16:])), 0, int64(le.Uint64(f[24:])), f[32], f[33]
	if m.Op == MarketBand {
		m.Until, m.Top = 0, m.Until
	}
	switch {
	case m.Op < MarketState || m.Op > MarketBand:
		return &FrameError{Type: TypeMarket, Field: "op", Value: uint64(m.Op), Allowed: "5 state, 6 uncross, 7 band"}
	case m.Op == MarketBand && m.State != 0:
		return &FrameError{Type: TypeMarket, Field: "state", Value: uint64(m.State), Allowed: "0, of a band"}
	case m.State > 4 || m.State == 2:
		return &FrameError{Type: TypeMarket, Field: "state", Value: uint64(m.State), Allowed: "0 closed, 1 call, 3 open, 4 halted"}
	}
	var rest []byte
	if m.Symbol, rest, err = cutString8(f[marketFixed:], TypeMarket, "symbol"); err != nil {
		return err
	}
	if m.Reason, rest, err = cutString8(rest, TypeMarket, "reason"); err != nil {
		return err
	}
	if err = done(rest, TypeMarket); err != nil {
		return err
	}
	if len(m.Reason) < 1 || len(m.Reason) > MaxReason {
		return &FrameError{Type: TypeMarket, Field: "reason", Value: uint64(len(m.Reason)), Allowed: "1..128 bytes"}
	}
	for _, c := range m.Reason {
		if c < ' ' || c == 127 {
			return &FrameError{Type: TypeMarket, Field: "reason", Value: uint64(c), Allowed: "printable text"}
		}
	}
	return nil
}

// MarketDone answers a Market whose entry is committed.
type MarketDone struct {
	ReqID  uint64
	Seq    uint64 // the entry
	Reason uint8  // why the book refused it, as of executions; 0: it was done
	State  uint8  // of the book after it
}

const marketDoneSize = HeaderSize + 20

// AppendMarketDone appends a MarketDone frame.
func AppendMarketDone(dst []byte, p PartitionID, m *MarketDone) []byte {
	dst, f := begin(dst, TypeMarketDone, 0, p, marketDoneSize)
	le.PutUint64(f[8:], m.ReqID)
	le.PutUint64(f[16:], m.Seq)
	f[24], f[25], f[26], f[27] = m.Reason, m.State, 0, 0
	return dst
}

// DecodeMarketDone decodes a MarketDone frame.
func DecodeMarketDone(f []byte, m *MarketDone) error {
	if err := open(f, TypeMarketDone, marketDoneSize, true); err != nil {
		return err
	}
	m.ReqID, m.Seq, m.Reason, m.State = le.Uint64(f[8:]), le.Uint64(f[16:]), f[24], f[25]
	return nil
}
