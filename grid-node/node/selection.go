package node

import (
	"hash/maphash"
	"math/bits"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// selection is what a stream sends. It is made beside the loop: a client may ask for
// hundreds of values, in many streams, and reconnect.
type selection struct {
	what uint16 // bits of wire.Selector, of what rows lets through
	// Each nil: all. Of rows those of the first are by account alone, and of the second by symbol; a stream with
	// StreamBySelect has chosen in place of both.
	accounts, symbols *rows
	chosen            *rows
}

// everything is what a Follow without a filter sends.
const everything = wire.SelectOrders | wire.SelectOther

// selectionOf makes what a stream sends of a Follow, Stream or StreamSelect, which was checked. It takes nothing of the
// frame along.
func selectionOf(frame []byte) (s selection) {
	var f wire.Follow
	var m wire.Stream
	switch wire.FrameType(frame) {
	case wire.TypeStreamSelect:
		s.chosen = newRows(func(add func(wire.Selector)) { wire.EachSelector(frame, add) })
		s.what = s.chosen.any
		return s
	case wire.TypeFollow:
		s.what = everything
		if wire.DecodeFollow(frame, &f) == nil && f.Filter == wire.FilterAccount {
			s.what = wire.SelectOrders
			s.accounts = newRows(func(add func(wire.Selector)) { add(wire.Selector{What: s.what, Account: f.Value}) })
		}
		return s
	}
	if wire.CheckStream(frame, &m) != nil || m.What == wire.StreamBySelect {
		return selection{chosen: &rows{}} // nothing yet
	}
	if m.What&wire.StreamOrders != 0 {
		s.what |= everything
	}
	if m.What&wire.StreamExecutions != 0 {
		s.what |= wire.SelectExecutions
	}
	s.accounts = newRows(func(add func(wire.Selector)) {
		wire.EachSelected(frame, func(v []byte) { add(wire.Selector{What: s.what, Account: v}) }, func([]byte) {})
	})
	s.symbols = newRows(func(add func(wire.Selector)) {
		wire.EachSelected(frame, func([]byte) {}, func(v []byte) { add(wire.Selector{What: s.what, Symbol: v}) })
	})
	if s.accounts.n == 0 {
		s.accounts = nil
	}
	if s.symbols.n == 0 {
		s.symbols = nil
	}
	if s.accounts != nil || s.symbols != nil {
		s.what &^= wire.SelectOther
	}
	return s
}

// all reports whether each entry has something to be sent.
func (s *selection) all() bool {
	if s.chosen != nil {
		return s.chosen.every&everything == everything
	}
	return s.what&everything == everything
}

// executions reports whether some executions are sent.
func (s *selection) executions() bool { return s.what&wire.SelectExecutions != 0 }

// takes reports whether an entry is sent.
func (s *selection) takes(entry []byte) bool {
	if order.Kind(entry[4]).IsOrder() {
		return s.what&wire.SelectOrders != 0 && s.of(wire.SelectOrders, order.Account(entry), order.Symbol(entry))
	}
	if s.chosen != nil {
		return s.chosen.every&wire.SelectOther != 0
	}
	return s.what&wire.SelectOther != 0
}

// of reports whether one of the bits is sent of an account and a symbol.
func (s *selection) of(what uint16, account, symbol []byte) bool {
	switch {
	case s.chosen != nil:
		return s.chosen.of(account, symbol)&what != 0
	case s.what&what == 0:
		return false
	}
	return (s.accounts == nil || s.accounts.of(account, nil) != 0) && (s.symbols == nil || s.symbols.of(nil, symbol) != 0)
}

// mayTake is of, where the account is not known yet: false is for any account.
func (s *selection) mayTake(kind match.Kind, symbol string) bool {
	what := uint16(1) << kind
	switch {
	case s.what&what == 0:
		return false
	case s.chosen != nil:
		return s.chosen.by[byAccount]+s.chosen.by[byBoth] > 0 || s.chosen.ofSymbol(symbol)&what != 0
	}
	return s.symbols == nil || s.symbols.ofSymbol(symbol) != 0
}

// byNothing and the others say what a row names.
const (
	byNothing = iota
	byAccount
	bySymbol
	byBoth
)

// rows find what is sent of an account and a symbol: by both of them, by one, and what is sent of all. There are no
// pointers in them, and none to be followed by the garbage collector; the hash has a seed of its own, so that no client
// can choose values that are in one place.
type rows struct {
	seed  maphash.Seed
	text  []byte
	table []row // a power of two, half of it free at least
	by    [4]int
	n     int
	every uint16 // of all accounts and symbols
	any   uint16 // of some
}

// rowsOf is how large a table of so many is.
func rowsOf(n int) int {
	if n == 0 {
		return 0
	}
	return 1 << bits.Len(uint(2*n-1))
}

const (
	rowBytes = 8
	// selectBytes are set aside for what a stream with StreamBySelect is asked to send: the largest table with its texts,
	// the frame that it is made of, and another one that has come meanwhile.
	selectBytes = mostRowBytes + 2*wire.MaxSelectSize
	// mostRowBytes is for a table that is as large as that of MaxSelectors, with the fewest that it is made for, so that
	// most of the frame is texts.
	mostRowBytes = 2*wire.MaxSelectors*rowBytes + wire.MaxSelectSize - wire.SelectSize - (wire.MaxSelectors/2+1)*4
)

// keptOf is how many bytes are set aside for what a stream is asked to send: the request, and what is made of it. It
// allocates nothing. What is the field of a Stream.
func keptOf(frame []byte, what uint8) int64 {
	n := 2 * int64(len(frame))
	switch {
	case what == wire.StreamBySelect:
		return selectBytes
	case what == 0:
		return n + int64(rowsOf(1)*rowBytes)
	}
	accounts, symbols := wire.Selected(frame)
	return n + int64((rowsOf(accounts)+rowsOf(symbols))*rowBytes)
}

// row has its text at an offset, the account first; what is 0 where it is free.
type row struct {
	at              uint32
	account, symbol uint8
	what            uint16
}

// newRows makes those that each calls add with.
func newRows(each func(add func(wire.Selector))) *rows {
	x, count, size := &rows{}, 0, 0
	each(func(s wire.Selector) { count, size = count+1, size+len(s.Account)+len(s.Symbol) })
	if count == 0 {
		return x
	}
	x.seed = maphash.MakeSeed()
	x.table = make([]row, rowsOf(count))
	x.text = make([]byte, 0, size)
	each(x.add)
	return x
}

func (x *rows) add(s wire.Selector) {
	x.any |= s.What
	kind := byNothing
	if len(s.Account) > 0 {
		kind |= byAccount
	}
	if len(s.Symbol) > 0 {
		kind |= bySymbol
	}
	if kind == byNothing {
		x.every |= s.What
		return
	}
	r := x.find(x.hash(s.Account), x.hash(s.Symbol), s.Account, s.Symbol)
	if r.what == 0 {
		*r = row{at: uint32(len(x.text)), account: uint8(len(s.Account)), symbol: uint8(len(s.Symbol))}
		x.text = append(append(x.text, s.Account...), s.Symbol...)
		x.by[kind]++
		x.n++
	}
	r.what |= s.What
}

// hash of no value is 0.
func (x *rows) hash(v []byte) uint64 {
	if len(v) == 0 {
		return 0
	}
	return maphash.Bytes(x.seed, v)
}

// find returns the row of an account and a symbol, or the free one where it would be.
func (x *rows) find(ha, hs uint64, account, symbol []byte) *row {
	mask := uint64(len(x.table) - 1)
	for i := ha ^ bits.RotateLeft64(hs, 31); ; i++ {
		r := &x.table[i&mask]
		if r.what == 0 {
			return r
		}
		if int(r.account) == len(account) && int(r.symbol) == len(symbol) {
			t := x.text[r.at:]
			if string(t[:len(account)]) == string(account) && string(t[len(account):len(account)+len(symbol)]) == string(symbol) {
				return r
			}
		}
	}
}

// of returns what is sent of an account and a symbol, either of which may be empty: not known, or not there.
func (x *rows) of(account, symbol []byte) uint16 {
	what := x.every
	if x.n == 0 {
		return what
	}
	var ha, hs uint64
	a, s := len(account) > 0, len(symbol) > 0
	if a && x.by[byAccount]+x.by[byBoth] > 0 {
		ha = x.hash(account)
	}
	if s && x.by[bySymbol]+x.by[byBoth] > 0 {
		hs = x.hash(symbol)
	}
	if a && x.by[byAccount] > 0 {
		what |= x.find(ha, 0, account, nil).what
	}
	if s && x.by[bySymbol] > 0 {
		what |= x.find(0, hs, nil, symbol).what
	}
	if a && s && x.by[byBoth] > 0 {
		what |= x.find(ha, hs, account, symbol).what
	}
	return what
}

// ofSymbol is of, for no account.
func (x *rows) ofSymbol(symbol string) uint16 {
	var b [order.MaxSymbol]byte
	return x.of(nil, b[:copy(b[:], symbol)])
}
