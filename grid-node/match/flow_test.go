package match

// flow draws operations for a few small books, so that orders meet, and among them what an
// engine has to refuse.
type flow struct {
	draw  func(n int) int // 0..n-1
	time  int64
	next  uint64
	ids   []uint64 // given out, some of them gone
	calls int
}

// flowConfig is small, so that orders, pages and work run out.
var flowConfig = Config{Orders: 60, Pages: 14, Books: 5, Work: 12, Data: L1 | L2 | L3, Seed: 7}

var flowInstruments = map[uint16]Instrument{
	0: {Tick: 5, Lot: 10, Low: 16_777_000_000, High: 16_777_000_700, Ref: 16_777_000_350}, // not a float32
	1: {Tick: 1, Lot: 1, Low: -40, High: 60, Ref: 0},
	3: {Tick: 100, Lot: 1, Low: 100, High: 100 * 5000, Ref: 100 * 2500},
}

func (f *flow) percent(p int) bool { return f.draw(100) < p }

// op draws the next operation.
func (f *flow) op() Op {
	f.time += int64(f.draw(3))
	op := Op{Time: f.time, Book: []uint16{0, 0, 0, 1, 1, 3}[f.draw(6)], Owner: uint32(1 + f.draw(3)), Side: Buy + Side(f.draw(2))}
	switch p := f.draw(100); {
	case p < 55:
		f.enter(&op)
	case p < 67:
		op.Kind, op.Orig = Cancel, f.known()
	case p < 82:
		f.enter(&op)
		op.Kind, op.Orig = Replace, f.known()
		if f.percent(60) {
			op.ID = 0
		}
		if f.percent(60) {
			op.Stop = 0
		}
	case p < 83:
		f.massCancel(&op)
	case p < 89:
		f.state(&op)
	default:
		op.Kind = Continue
	}
	if f.percent(50) {
		op.Owner = 0
	}
	if f.percent(4) {
		f.spoil(&op)
	}
	return op
}

// known draws an order id that was given out.
func (f *flow) known() uint64 {
	if len(f.ids) == 0 {
		return 1
	}
	return f.ids[max(0, len(f.ids)-1-f.draw(40))]
}

func (f *flow) enter(op *Op) {
	f.next++
	op.Kind, op.ID, op.Group, op.SMP = Enter, f.next, uint32(f.draw(3)), SMP(f.draw(4))
	op.Party = f.party()
	f.ids = append(f.ids, op.ID)
	op.Type = []Type{Limit, Limit, Limit, Limit, Limit, Limit, Market, StopLimit, StopMarket}[f.draw(9)]
	op.TIF = []TIF{Day, Day, Day, Day, Day, IOC, FOK}[f.draw(7)]
	i := flowInstruments[op.Book]
	if op.Type == Limit || op.Type == StopLimit {
		op.Price = f.price(i)
	}
	if op.Type >= StopLimit {
		op.Stop = f.price(i)
		if op.TIF == FOK {
			op.TIF = Day
		}
	}
	op.Qty = i.Lot * int64(1+f.draw(20))
	if op.TIF == Day && op.Price != 0 && f.percent(25) {
		op.Display = i.Lot * int64(1+f.draw(4))
	}
	op.Post = op.Type == Limit && op.TIF == Day && f.percent(10)
}

// price draws one near the middle mostly, so that books are crossed.
func (f *flow) price(i Instrument) int64 {
	if f.percent(90) {
		return i.Ref + i.Tick*int64(f.draw(13)-6)
	}
	return i.Low + i.Tick*int64(f.draw(int((i.High-i.Low)/i.Tick)+1))
}

func (f *flow) massCancel(op *Op) {
	f.next++
	op.Kind, op.ID = MassCancel, f.next
	if f.percent(50) {
		op.Book = All
	}
	if f.percent(50) {
		op.Side = 0
	}
	op.Group = uint32(f.draw(2))
	if op.Lapse = f.percent(20); op.Lapse { // of two words, some of which have no owner
		op.Owner, op.Parties = uint32(f.draw(3)), make([]uint64, 1+f.draw(2))
		op.Parties[0] = uint64(f.draw(16))
		return
	}
	if op.Kill = f.percent(50); op.Kill && f.percent(70) {
		op.Parties = make([]uint64, 1+f.draw(2)) // of one word and of two
		for range 1 + f.draw(3) {
			n := f.party() % uint32(64*len(op.Parties))
			op.Parties[n/64] |= 1 << (n % 64)
		}
	}
}

// party draws none, one of the first word of parties, or one of the second.
func (f *flow) party() uint32 { return []uint32{0, 1, 2, 63, 64, 99}[f.draw(6)] }

func (f *flow) state(op *Op) {
	i := flowInstruments[op.Book]
	switch f.draw(9) {
	case 0, 1:
		op.Kind, op.State = SetState, Open
	case 2:
		op.Kind, op.State = SetState, Call
	case 3:
		op.Kind, op.State, op.Until = SetState, Halted, int64(f.draw(2))*(f.time+int64(f.draw(20)))
	case 4:
		op.Kind, op.Price, op.Stop = SetBand, i.Low, i.High
		if f.percent(50) {
			op.Price, op.Stop = i.Ref-4*i.Tick, i.Ref+4*i.Tick
		}
	default:
		op.Kind, op.State = Uncross, Open
		if f.percent(50) {
			op.Price = f.price(i)
		}
		if f.percent(5) {
			op.State = Closed
		}
	}
}

// spoil makes one field something else.
func (f *flow) spoil(op *Op) {
	odd := []int64{0, -1, 1, 3, 7, 1 << 40, 1 << 62, -1 << 63, 1<<63 - 1}
	v := odd[f.draw(len(odd))]
	switch f.draw(14) {
	case 12:
		op.Price++
	case 13:
		op.Qty = MaxLots * flowInstruments[op.Book].Lot
	case 0:
		op.Price = v
	case 1:
		op.Qty = v
	case 2:
		op.Display = v
	case 3:
		op.Stop = v
	case 4:
		op.ID = f.known() * uint64(f.draw(2))
	case 5:
		op.Book = uint16(v)
	case 6:
		op.Side = Side(v)
	case 7:
		op.Type = Type(v)
	case 8:
		op.TIF, op.SMP = TIF(v), SMP(f.draw(6))
	case 9:
		op.Kind = OpKind(f.draw(12))
	case 10:
		op.State = State(v)
	case 11:
		op.Orig = uint64(v)
	}
}
