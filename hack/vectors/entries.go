package main

import (
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// entryVectors are entries one by one, a log that chains, and bytes that are no entry.
func entryVectors() (file, error) {
	f := file{name: "entries.json", about: "A log entry with this header and payload is these bytes, without padding; hash is that of the entry, as 16 hex digits. " +
		"The entries named log chain. A vector with refused is no entry: of a list of padded entries it is the first."}
	for _, e := range entries() {
		v, err := entryVector(e.name, e.bytes)
		if err != nil {
			return f, fmt.Errorf("%s: %w", e.name, err)
		}
		f.vectors = append(f.vectors, v)
	}
	for _, h := range hostileEntries() {
		var e order.Entry
		var why *order.EntryError
		if _, _, err := order.NextEntry(h.bytes, &e); !errors.As(err, &why) {
			return f, errors.Join(errors.New(h.name+": taken, or refused without a field"), err)
		}
		f.vectors = append(f.vectors, object{{"name", h.name}, {"refused", true}, {"field", why.Field}, {"value", why.Value}, {"allowed", why.Allowed}, {"hex", h.bytes}})
	}
	return f, nil
}

func entryVector(name string, b []byte) (object, error) {
	var e order.Entry
	entry, err := order.DecodeEntry(b, &e)
	if err != nil {
		return nil, err
	}
	f := &e.Fields
	fields := object{
		{"size", small(e.Size)}, {"kind", small(e.Kind)}, {"side", small(f.Side)}, {"clOrdIDOff", small(f.ClOrdIDOff)}, {"seq", e.Seq},
		{"prevHash", hash16(e.PrevHash)}, {"epoch", small(e.Epoch)}, {"session", small(e.Session)}, {"clientSeq", e.ClientSeq}, {"timeNs", e.TimeNs},
		{"clOrdIDLen", small(f.ClOrdIDLen)}, {"symbolLen", small(f.SymbolLen)}, {"symbolOff", small(f.SymbolOff)},
		{"accountOff", small(f.AccountOff)}, {"accountLen", small(f.AccountLen)}, {"qtyOff", small(f.QtyOff)}, {"priceOff", small(f.PriceOff)},
	}
	return object{{"name", name}, {"fields", fields}, {"clOrdID", string(order.ClOrdID(entry))}, {"account", string(order.Account(entry))},
		{"payloadHex", order.Payload(entry)}, {"hash", hash16(order.Hash(entry))}, {"padded", small(order.Padded(len(entry)))}, {"hex", entry}}, nil
}

func hash16(h uint64) string { return fmt.Sprintf("%016x", h) }

// newOrder is a FIX 4.4 NewOrderSingle.
func newOrder(clOrdID string) []byte {
	return message("FIX.4.4", "35=D\x0149=CLIENT\x0156=GRID\x0134=1\x0152=20261123-09:30:00.000\x0111="+clOrdID+
		"\x011=ACCT-7\x0155=IBM\x0154=1\x0160=20261123-09:30:00.000\x0138=100\x0140=2\x0144=104.25\x01")
}

// message has the envelope around the fields.
func message(version, fields string) []byte {
	head := fmt.Sprintf("8=%s\x019=%d\x01", version, len(fields))
	b := []byte(head + fields + "10=000\x01")
	order.Seal(b)
	return b
}

// put makes an entry.
func put(e order.Entry, payload []byte) []byte {
	b := make([]byte, order.HeaderSize+len(payload))
	e.Size = uint32(len(b))
	if e.Kind == order.KindOrder {
		var o order.Order
		if err := order.Parse(payload, &o); err != nil {
			panic(err.Error()) // a bug of this program
		}
		e.Fields = o.Fields
	}
	e.Put(b)
	copy(b[order.HeaderSize:], payload)
	return b
}

const received = 1795426200000000000 // 2026-11-23 09:30 UTC

// log is a log of three entries: a new epoch, a session, an order of it.
func log() (out [][]byte) {
	prev := uint64(0)
	add := func(e order.Entry, payload []byte) {
		e.Seq, e.PrevHash, e.Epoch, e.TimeNs = uint64(len(out))+1, prev, 3, received+int64(len(out))
		b := put(e, payload)
		prev = order.Hash(b)
		out = append(out, b)
	}
	add(order.Entry{Kind: order.KindNoop}, le.AppendUint64(le.AppendUint64(nil, 1), 0xa1))
	add(order.Entry{Kind: order.KindSessionOpen, Session: 4, ClientSeq: 1}, le.AppendUint64(le.AppendUint64(nil, 0x0123456789abcdef), 0xfedcba9876543210))
	add(order.Entry{Kind: order.KindOrder, Session: 4, ClientSeq: 1}, newOrder("ORD-1"))
	return out
}

// fixSteps is a step of one FIX session and a refusal of another.
func fixSteps() []byte {
	b := order.AppendFixRecord(nil, &order.FixRecord{Slot: 4, Attempt: 7, Generation: 2, In: 9, Op: order.FixStep, Outs: 3})
	return order.AppendFixRecord(b, &order.FixRecord{Slot: 5, Attempt: 1, Generation: 1, In: 3, Op: order.FixRefusal, Outs: 1, Body: []byte("why")})
}

func fixOpening() []byte {
	o := order.FixOpening{ID: [2]uint64{0x0123456789abcdef, 0xfedcba9876543210}, Day: 20780, Form: 1, Flags: order.FixReset}
	return order.AppendFixRecord(nil, &order.FixRecord{Slot: 4, Attempt: 7, Generation: 2, In: 2, Op: order.FixOpen, Outs: 1, Body: o.Append(nil)})
}

// dropCopy has the sources of a session.
func dropCopy() []byte {
	c := order.DropCopy{Op: order.DropCopySources, Slot: 4, Generation: 2, Attempt: 7}
	c.Sources = order.AppendSource(order.AppendSource(nil, [2]uint64{1, 2}, "GRID\x01BANK"), [2]uint64{1, 3}, "GRID\x01FUND")
	return c.Append(nil)
}

func orderEntry() []byte { return log()[2] }

// padded is entry as it is sent among others.
func padded(entry []byte) []byte {
	return append(entry[:len(entry):len(entry)], make([]byte, order.Padded(len(entry))-len(entry))...)
}

// logBytes are the entries of log as they are sent.
func logBytes() (out []byte) {
	for _, e := range log() {
		out = append(out, padded(e)...)
	}
	return out
}

func entries() (out []frame) {
	for i, e := range log() {
		out = append(out, frame{name: fmt.Sprintf("log, entry %d", i+1), bytes: e})
	}
	seq := le.AppendUint64(nil, 7)
	cancel := message("FIX.4.2", "35=F\x0149=CLIENT\x0156=GRID\x0134=2\x0152=20261123-09:30:01\x0111=C-1\x0141=ORD-1\x0155=IBM\x0154=2\x0160=20261123-09:30:01\x0138=100\x01")
	var parsed order.Order
	if err := order.Parse(cancel, &parsed); err != nil {
		panic(err.Error()) // a bug of this program
	}
	instructed := parsed.Fields.Instructed()
	instruction := order.Instruction{Op: order.InstructCancel, Book: 3, Owner: 6, Orig: 9}
	market := order.Market{Op: order.MarketDefine, Book: 3, State: 3, PriceDigits: 2, Values: [5]uint64{1, 1, 0, 100, 50}, Symbol: []byte("IBM")}
	for _, e := range []struct {
		name    string
		e       order.Entry
		payload []byte
	}{
		{"cursor", order.Entry{Kind: order.KindCursor, Seq: 9, PrevHash: most, Epoch: 1<<32 - 1, TimeNs: -1}, seq},
		{"truncate", order.Entry{Kind: order.KindTruncate, Seq: most, PrevHash: 1}, seq},
		{"reader", order.Entry{Kind: order.KindReader, Seq: 9}, order.AppendReader(nil, 7, "kafka")},
		{"reader removed, longest name", order.Entry{Kind: order.KindReader, Seq: 9}, order.AppendReader(nil, order.ReaderGone, "abcdefghijklmnopqrstuvwxyz-01234")},
		{"fix, two records", order.Entry{Kind: order.KindFix, Seq: 9}, fixSteps()},
		{"fix, an opening", order.Entry{Kind: order.KindFix, Seq: 9}, fixOpening()},
		{"order of a FIX session", order.Entry{Kind: order.KindOrder, Flags: order.FlagFix, Seq: 10, Epoch: 1, Session: 5, ClientSeq: 1<<62 - 1}, cancel},
		{"order of a FIX session, on a day that is 77 modulo 128", order.Entry{Kind: order.KindOrder, Flags: order.FixFlags(20557), Seq: 10, Epoch: 1, Session: 5, ClientSeq: 2}, cancel},
		{"order without account and price", order.Entry{Kind: order.KindOrder, Seq: 10, Epoch: 1, Session: 1<<32 - 1, ClientSeq: most, TimeNs: 1<<63 - 1}, cancel},
		{"execute", order.Entry{Kind: order.KindExecute, Seq: 11, Session: 5, ClientSeq: 3, Fields: instructed}, append(instruction.Append(nil), cancel...)},
		{"market", order.Entry{Kind: order.KindMarket, Seq: 12}, market.Append(nil)},
		{"continue", order.Entry{Kind: order.KindContinue, Seq: 13}, nil},
		{"functions, an offer", order.Entry{Kind: order.KindFunctions, Seq: 14}, functions(order.FunctionsOffer)},
		{"functions, a piece", order.Entry{Kind: order.KindFunctions, Seq: 15}, functions(order.FunctionsPiece)},
		{"drop-copy, two sources", order.Entry{Kind: order.KindDropCopy, Seq: 13}, dropCopy()},
		{"functions, begin", order.Entry{Kind: order.KindFunctions, Seq: 16}, functions(order.FunctionsBegin)},
	} {
		out = append(out, frame{name: e.name, bytes: put(e.e, e.payload)})
	}
	return out
}

// functions is a step of a change of functions.
func functions(op order.FunctionsOp) []byte {
	c := order.FunctionsChange{Op: op}
	switch op {
	case order.FunctionsOffer:
		c.Offer = []order.Function{{Name: "audit", SHA256: [32]byte{1, 2, 3}, Fuel: 100000, Pages: 16, Config: "x=1"}}
	case order.FunctionsPiece:
		c.SHA256, c.Size, c.Offset, c.Piece = [32]byte{1, 2, 3}, 7, 4, []byte("end")
	}
	return c.Append(nil)
}

func hostileEntries() (out []frame) {
	good := padded(orderEntry())
	noop := log()[0]
	add := func(name string, b []byte) { out = append(out, frame{name: name, bytes: b}) }
	set := func(at int, v ...byte) []byte { return with(good, set(at, v...)) }
	add("63 bytes", good[:63])
	add("size 63", set(0, 63, 0, 0, 0))
	add("size 65,537", set(0, 1, 0, 1, 0))
	add("size beyond the bytes", good[:len(good)-8])
	add("padding cut", orderEntry())
	add("padding not zero", set(len(good)-1, 1))
	add("kind 0", set(4, 0))
	add("kind 250", set(4, 250))
	add("seq 0", set(8, 0))
	add("unknown flag in byte 55", set(55, 2))
	add("noop with the flag of a FIX session", with(noop, func(b []byte) { b[55] = 1 }))
	add("fix without a record", put(order.Entry{Kind: order.KindFix, Seq: 9}, nil))
	add("fix with slots that fall", put(order.Entry{Kind: order.KindFix, Seq: 9}, append(fixSteps()[24:], fixSteps()[:24]...)))
	add("reserved bytes at 60", set(60, 1))
	add("order without ClOrdID", set(6, 0, 0))
	add("ClOrdID of no bytes", set(48, 0))
	add("ClOrdID beyond the payload", set(6, 0xff, 0xff))
	add("Symbol beyond the payload", set(50, 0xff, 0xff))
	add("Account beyond the payload", set(52, 0xff, 0xff))
	add("quantity beyond the payload", set(56, 0xff, 0xff))
	add("price beyond the payload", set(58, 0xff, 0xff))
	add("noop with a payload of 8 bytes", with(noop[:72], func(b []byte) { b[0] = 72 }))
	add("noop with a ClOrdID", with(noop, func(b []byte) { b[6], b[48] = 1, 1 }))
	add("reader without a name", put(order.Entry{Kind: order.KindReader, Seq: 9}, order.AppendReader(nil, 7, "")))
	add("reader with a name in capitals", padded(put(order.Entry{Kind: order.KindReader, Seq: 9}, order.AppendReader(nil, 7, "Kafka"))))
	return out
}
