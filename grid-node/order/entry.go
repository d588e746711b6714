package order

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

var le = binary.LittleEndian

// Kind of a log entry.
type Kind uint8

// Kinds. One dense sequence per partition covers all of them.
const (
	KindNoop        Kind = 1 // begins an epoch; payload: lineage u64, boot id of the primary u64
	KindOrder       Kind = 2 // payload: the FIX message verbatim
	KindSessionOpen Kind = 3 // payload: session id, hi u64, lo u64
	KindCursor      Kind = 4 // payload: seq u64 up to which the unnamed sink holds everything
	KindTruncate    Kind = 5 // payload: seq u64 up to which entries may be freed
	KindReader      Kind = 6 // payload: seq u64 up to which a reader holds everything, or ReaderGone; its name
	KindFix         Kind = 7 // payload: records of FIX sessions, see FixRecord

	// Of partitions that match, see execute.go.

	KindExecute  Kind = 8  // payload: an Instruction, then the FIX message verbatim
	KindMarket   Kind = 9  // payload: a Market
	KindContinue Kind = 10 // what is pending in the books goes on; no payload

	KindGuard Kind = 11 // payload: a Guard, a change of limits

	KindRegion Kind = 14 // payload: a RegionOp

	KindDropCopy Kind = 15 // payload: a DropCopy, of whose reports a FIX session gets copies
)

// String returns the word that the file sink prints.
func (k Kind) String() string {
	switch k {
	case KindNoop:
		return "noop"
	case KindOrder:
		return "order"
	case KindSessionOpen:
		return "session"
	case KindCursor:
		return "cursor"
	case KindTruncate:
		return "truncate"
	case KindReader:
		return "reader"
	case KindFix:
		return "fix"
	case KindExecute:
		return "execute"
	case KindMarket:
		return "market"
	case KindContinue:
		return "continue"
	case KindFunctions:
		return "functions"
	case KindRegion:
		return "region"
	case KindGuard:
		return "guard"
	case KindDropCopy:
		return "drop-copy"
	}
	return fmt.Sprintf("kind%d", uint8(k))
}

// IsOrder reports whether an entry of this kind is an order message of a client: it has a
// ClOrdID and the other fields.
func (k Kind) IsOrder() bool { return k == KindOrder || k == KindExecute }

// Sizes of entries, in bytes.
const (
	// HeaderSize is the fixed part of an entry.
	HeaderSize = 64
	// MaxPayload keeps every offset in an entry within 16 bits.
	MaxPayload = 64<<10 - 64
)

// Padded returns the size of an entry of n bytes in the store and on the wire.
func Padded(n int) int { return (n + 7) &^ 7 }

// ReaderGone is the position of a removed reader.
const ReaderGone = 1<<64 - 1

// MaxReaderName is the maximum length of a reader's name in bytes: lowercase letters,
// digits and hyphens.
const MaxReaderName = 32

// IsReaderName reports whether a reader may have this name.
func IsReaderName[T string | []byte](name T) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return len(name) > 0 && len(name) <= MaxReaderName
}

// AppendReader appends the payload of an entry of kind reader.
func AppendReader(dst []byte, seq uint64, name string) []byte {
	return append(le.AppendUint64(dst, seq), name...)
}

// Reader reads the payload of an entry of kind reader.
func Reader(payload []byte) (seq uint64, name []byte) { return le.Uint64(payload), payload[8:] }

// Entry is the header of a log entry. The same bytes are in the store, in Prepare and in
// LogChunk frames, so replicas are byte-identical.
//
//	off size field            off size field
//	 0  u32  size             48  u8   clOrdIDLen
//	 4  u8   kind             49  u8   symbolLen
//	 5  u8   side             50  u16  symbolOff
//	 6  u16  clOrdIDOff       52  u16  accountOff
//	 8  u64  seq              54  u8   accountLen
//	16  u64  prevHash         55  u8   flags
//	24  u32  epoch            56  u16  qtyOff
//	28  u32  session          58  u16  priceOff
//	32  u64  clientSeq        60  u32  0
//	40  i64  timeNs           64  payload, then 0..7 zero bytes
type Entry struct {
	Size      uint32 // header and payload, without padding
	Kind      Kind
	Seq       uint64
	PrevHash  uint64 // hash of the entry before, 0 for the first of a log
	Epoch     uint32
	Session   uint32 // session slot, 0 if none; of an order with FlagFix a slot of the FIX sessions
	ClientSeq uint64 // of an order with FlagFix its MsgSeqNum
	TimeNs    int64  // primary's receive time, unix nanoseconds
	Fields    Fields
	Flags     uint8 // FixFlags of an order of a FIX session, otherwise 0
}

// FlagFix marks an order of a FIX session, whose numbers are state of the machine.
const FlagFix uint8 = 1

// FixFlags are the flags of an order of a FIX session: the upper bits are its session's day
// modulo 128, since a ClOrdID is unique in its session and day.
func FixFlags(day uint32) uint8 { return FlagFix | uint8(day)<<1 }

// IsFix reports whether an entry, as returned by DecodeEntry, is an order of a FIX session.
func IsFix(entry []byte) bool { return entry[55]&FlagFix != 0 }

// SlotOf returns the session slot of an entry, without decoding the rest.
func SlotOf(entry []byte) uint32 { return le.Uint32(entry[28:]) }

// Fields are the positions of the indexed fields in the payload. Offset 0 means that the
// field is absent (a FIX message never begins with a value). Quantity and price end at the
// next SOH.
type Fields struct {
	ClOrdIDOff, SymbolOff, AccountOff, QtyOff, PriceOff uint16
	ClOrdIDLen, SymbolLen, AccountLen                   uint8
	Side                                                uint8 // FIX tag 54 as its ASCII byte, 0 if none
}

// Put writes the header into the first 64 bytes of b.
func (e *Entry) Put(b []byte) {
	_ = b[HeaderSize-1]
	f := &e.Fields
	le.PutUint32(b[0:], e.Size)
	b[4], b[5] = byte(e.Kind), f.Side
	le.PutUint16(b[6:], f.ClOrdIDOff)
	le.PutUint64(b[8:], e.Seq)
	le.PutUint64(b[16:], e.PrevHash)
	le.PutUint32(b[24:], e.Epoch)
	le.PutUint32(b[28:], e.Session)
	le.PutUint64(b[32:], e.ClientSeq)
	le.PutUint64(b[40:], uint64(e.TimeNs))
	b[48], b[49] = f.ClOrdIDLen, f.SymbolLen
	le.PutUint16(b[50:], f.SymbolOff)
	le.PutUint16(b[52:], f.AccountOff)
	b[54], b[55] = f.AccountLen, e.Flags
	le.PutUint16(b[56:], f.QtyOff)
	le.PutUint16(b[58:], f.PriceOff)
	le.PutUint32(b[60:], 0)
}

// EntryError names the invalid field of an entry.
type EntryError struct {
	Seq     uint64 // as read, 0 if not read yet
	Field   string
	Value   uint64
	Allowed string
}

func (e *EntryError) Error() string {
	return fmt.Sprintf("entry %d: %s is %d, allowed: %s", e.Seq, e.Field, e.Value, e.Allowed)
}

// DecodeEntry decodes the header of the entry at the start of b and checks that everything
// it refers to lies inside. It returns the entry's bytes (unpadded).
func DecodeEntry(b []byte, e *Entry) (entry []byte, err error) {
	if len(b) < HeaderSize {
		return nil, &EntryError{Field: "bytes", Value: uint64(len(b)), Allowed: "64 or more"}
	}
	e.Size = le.Uint32(b)
	e.Seq = le.Uint64(b[8:])
	if e.Size < HeaderSize || e.Size > HeaderSize+MaxPayload || uint64(e.Size) > uint64(len(b)) {
		return nil, &EntryError{Seq: e.Seq, Field: "size", Value: uint64(e.Size), Allowed: "64..65536 and no more than the bytes there"}
	}
	e.Kind = Kind(b[4])
	e.PrevHash = le.Uint64(b[16:])
	e.Epoch = le.Uint32(b[24:])
	e.Session = le.Uint32(b[28:])
	e.ClientSeq = le.Uint64(b[32:])
	e.TimeNs = int64(le.Uint64(b[40:]))
	e.Flags = b[55]
	e.Fields = Fields{
		Side: b[5], ClOrdIDOff: le.Uint16(b[6:]), ClOrdIDLen: b[48],
		SymbolOff: le.Uint16(b[50:]), SymbolLen: b[49],
		AccountOff: le.Uint16(b[52:]), AccountLen: b[54],
		QtyOff: le.Uint16(b[56:]), PriceOff: le.Uint16(b[58:]),
	}
	if err := e.check(b); err != nil {
		return nil, err
	}
	return b[:e.Size:e.Size], nil
}

// check is the semantic part of DecodeEntry.
func (e *Entry) check(b []byte) error {
	payload := int(e.Size) - HeaderSize
	if want, fixed := fixedPayload(e.Kind); fixed && payload != want {
		return &EntryError{Seq: e.Seq, Field: "size", Value: uint64(e.Size), Allowed: fmt.Sprintf("%d for a %s entry", HeaderSize+want, e.Kind)}
	} else if !fixed && e.Kind != KindOrder && e.Kind != KindReader && (e.Kind < KindFix || e.Kind > KindMarket) && e.Kind != KindGuard && e.Kind != KindFunctions && e.Kind != KindRegion && e.Kind != KindDropCopy {
		return &EntryError{Seq: e.Seq, Field: "kind", Value: uint64(e.Kind), Allowed: "1 noop, 2 order, 3 session, 4 cursor, 5 truncate, 6 reader, 7 fix, 8 execute, 9 market, 10 continue, 11 guard, 12 functions, 14 region, 15 drop-copy"}
	}
	if e.Kind == KindReader && (payload < 8 || !IsReaderName(b[HeaderSize+8:e.Size])) {
		return &EntryError{Seq: e.Seq, Field: "size", Value: uint64(e.Size), Allowed: "72 and a name of 1 to 32 lowercase letters, digits and hyphens for a reader entry"}
	}
	if e.Seq == 0 {
		return &EntryError{Field: "seq", Value: 0, Allowed: "1 or more"}
	}
	if e.Flags != 0 && (!e.Kind.IsOrder() || e.Flags&FlagFix == 0) {
		return &EntryError{Seq: e.Seq, Field: "flags", Value: uint64(e.Flags), Allowed: "0, and an odd number for an order"}
	}
	if le.Uint32(b[60:]) != 0 {
		return &EntryError{Seq: e.Seq, Field: "reserved", Value: uint64(le.Uint32(b[60:])), Allowed: "0"}
	}
	if e.Kind == KindFix {
		if err := checkFix(e.Seq, b[HeaderSize:e.Size]); err != nil {
			return err
		}
	}
	if e.Kind == KindRegion {
		if err := e.checkRegion(b[HeaderSize:e.Size]); err != nil {
			return err
		}
	}
	if e.Kind == KindExecute || e.Kind == KindMarket {
		if err := e.checkExecution(b[HeaderSize:e.Size]); err != nil {
			return err
		}
	}
	if e.Kind == KindGuard {
		if err := checkGuard(e.Seq, b[HeaderSize:e.Size]); err != nil {
			return err
		}
	}
	if e.Kind == KindDropCopy {
		if err := checkDropCopy(e.Seq, b[HeaderSize:e.Size]); err != nil {
			return err
		}
	}
	if e.Kind == KindFunctions {
		if _, err := ParseFunctionsChange(b[HeaderSize:e.Size]); err != nil {
			return fmt.Errorf("entry %d: %w", e.Seq, err)
		}
	}
	f := &e.Fields
	if e.Kind.IsOrder() && (f.ClOrdIDOff == 0 || f.ClOrdIDLen == 0) {
		return &EntryError{Seq: e.Seq, Field: "clOrdIDOff", Value: uint64(f.ClOrdIDOff), Allowed: "1 or more: an order has a ClOrdID"}
	}
	if !e.Kind.IsOrder() && *f != (Fields{}) {
		return &EntryError{Seq: e.Seq, Field: "clOrdIDOff", Value: uint64(f.ClOrdIDOff), Allowed: "0: only an order has fields"}
	}
	switch {
	case int(f.ClOrdIDOff)+int(f.ClOrdIDLen) > payload:
		return e.outside("clOrdIDOff", f.ClOrdIDOff)
	case int(f.SymbolOff)+int(f.SymbolLen) > payload:
		return e.outside("symbolOff", f.SymbolOff)
	case int(f.AccountOff)+int(f.AccountLen) > payload:
		return e.outside("accountOff", f.AccountOff)
	case f.QtyOff != 0 && int(f.QtyOff) >= payload:
		return e.outside("qtyOff", f.QtyOff)
	case f.PriceOff != 0 && int(f.PriceOff) >= payload:
		return e.outside("priceOff", f.PriceOff)
	}
	return nil
}

func (e *Entry) outside(field string, v uint16) error {
	return &EntryError{Seq: e.Seq, Field: field, Value: uint64(v), Allowed: "an offset inside the payload"}
}

func fixedPayload(k Kind) (int, bool) {
	switch k {
	case KindNoop, KindSessionOpen:
		return 16, true
	case KindCursor, KindTruncate:
		return 8, true
	case KindContinue:
		return 0, true
	}
	return 0, false
}

// NextEntry decodes the first of several padded entries and returns the bytes after it.
// Padding bytes must be zero: replicas compare them too.
func NextEntry(b []byte, e *Entry) (entry, rest []byte, err error) {
	entry, err = DecodeEntry(b, e)
	if err != nil {
		return nil, nil, err
	}
	n := Padded(len(entry))
	if n > len(b) {
		return nil, nil, &EntryError{Seq: e.Seq, Field: "padding", Value: uint64(len(b)), Allowed: "entries padded to 8 bytes"}
	}
	for _, c := range b[len(entry):n] {
		if c != 0 {
			return nil, nil, &EntryError{Seq: e.Seq, Field: "padding", Value: uint64(c), Allowed: "zero bytes"}
		}
	}
	return entry, b[n:], nil
}

// Hash of an unpadded entry. It covers PrevHash, so equal hashes at equal seq mean equal
// logs up to there.
func Hash(entry []byte) uint64 { return xxhash.Sum64(entry) }

// Payload of an entry as returned by DecodeEntry or the store.
func Payload(entry []byte) []byte { return entry[HeaderSize:] }

// ClOrdID of an entry of kind order or execute; empty for other kinds.
func ClOrdID(entry []byte) []byte {
	off, n := int(le.Uint16(entry[6:])), int(entry[48])
	return entry[HeaderSize+off : HeaderSize+off+n]
}

// Account returns the account of an entry of kind order; empty for other kinds, and where the order has none.
func Account(entry []byte) []byte {
	off, n := int(le.Uint16(entry[52:])), int(entry[54])
	return entry[HeaderSize+off : HeaderSize+off+n]
}

// Symbol returns the symbol of an entry of kind order or execute; empty for other kinds, and where the order has none.
func Symbol(entry []byte) []byte {
	off, n := int(le.Uint16(entry[50:])), int(entry[49])
	return entry[HeaderSize+off : HeaderSize+off+n]
}

// PeekClOrdID returns the ClOrdID of the entry that b may begin with, unchecked: nil, or
// any bytes of b. For prefetching.
func PeekClOrdID(b []byte) []byte {
	if len(b) < HeaderSize || !Kind(b[4]).IsOrder() {
		return nil
	}
	from := HeaderSize + int(le.Uint16(b[6:]))
	to := from + int(b[48])
	if to > len(b) {
		return nil
	}
	return b[from:to]
}

// ClientSeqOf returns the number of an order in its session, without decoding the rest.
func ClientSeqOf(entry []byte) uint64 { return le.Uint64(entry[32:]) }

// Seq of an entry, without decoding the rest.
func Seq(entry []byte) uint64 { return le.Uint64(entry[8:]) }

// EpochOf returns the epoch of an entry.
func EpochOf(entry []byte) uint32 { return le.Uint32(entry[24:]) }

// Received returns the wall clock of the primary at receipt, ns since 1970.
func Received(entry []byte) int64 { return int64(le.Uint64(entry[40:])) }

// PrevHash of an entry, without decoding the rest.
func PrevHash(entry []byte) uint64 { return le.Uint64(entry[16:]) }

// HashClOrdID is the hash of indexes and of the routing of orders to partitions.
func HashClOrdID(id []byte) uint64 { return xxhash.Sum64(id) }
