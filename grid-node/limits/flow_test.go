package limits

import "testing"

// flowConfig is small, so that numbers meet and memory runs out.
var flowConfig = Config{Orders: 24, Recent: 6, Parties: 10, Sessions: 3, Traders: 4, Desks: 2, Algorithms: 3, Clients: 3, Symbols: 3, Profiles: 3, Partitions: 3, Kills: 3, Seed: 9}

// flow draws operations and changes, among them what has to be refused. It is also the
// book: it says what was filled, and at times what cannot have been.
type flow struct {
	draw  func(n int) int // 0..n-1
	time  int64
	next  uint64
	ids   []uint64 // in the book, or gone
	kills []Change
	after []Op // what the book does next
	gifts [3]uint64
}

func (f *flow) percent(p int) bool { return f.draw(100) < p }

func (f *flow) number(n int) uint32 { return uint32(1 + f.draw(n)) }

func (f *flow) id() uint64 {
	if len(f.ids) == 0 {
		return 1
	}
	return f.ids[max(0, len(f.ids)-1-f.draw(12))]
}

// setup is a state in which most orders pass.
func (f *flow) setup() (changes []Change) {
	for n := range uint32(3) {
		changes = append(changes, Change{Kind: SetProfile, N: n + 1, Rules: f.rules()}, Change{Kind: Authorise, N: n + 1, Other: 1}, Change{Kind: Authorise, N: n + 1, Other: 2},
			Change{Kind: Authorise, N: n + 1}, Change{Kind: SetSession, N: n + 1, Profile: n + 1}, Change{Kind: SetClient, N: n + 1, Profile: n + 1},
			Change{Kind: SetSymbol, N: n, Multiplier: 1 + n, Price: 100}, Change{Kind: SetCredit, N: n + 1, Amount: 60_000})
	}
	for n := range uint32(6) {
		changes = append(changes, Change{Kind: SetParty, N: n + 1, Party: Party{Session: 1 + n%3, Trader: n % 3, Desk: n % 3 % 2, Algorithm: n % 4, Client: 1 + n%3}})
	}
	changes = append(changes, Change{Kind: SetCredit, Amount: 130_000})
	for i := range changes {
		changes[i].Who = 7
	}
	return changes
}

func (f *flow) rules() Rules {
	odd := func(n int64) int64 { return n * int64(f.draw(4)/3^1) } // mostly n, else 0
	return Rules{
		CollarReference: uint32(odd(2000)), CollarLast: uint32(odd(1500)), CollarLeast: int64(f.draw(8)), MaxVolume: odd(300), MaxValue: odd(20_000),
		Rate: uint32(odd(3)), Burst: 6 + uint32(f.draw(6)), Reserve: uint32(f.draw(3)), Repeats: uint32(odd(int64(3 + f.draw(6)))), RepeatWindow: odd(5 * second),
		DuplicateWindow: odd(second), Officers: [4]uint32{7, 0, 8},
	}
}

// step draws what happens next: an operation or a change.
func (f *flow) step() (op Op, c Change) {
	if f.percent(30) {
		f.time += int64(f.draw(4)) * second / 8
	}
	if f.percent(1) { // another primary's clock
		f.time -= int64(f.draw(4)) * second / 3 * int64(1+f.draw(20))
	}
	if len(f.after) > 0 && f.percent(90) {
		op, f.after = f.after[0], f.after[1:]
		return op, c
	}
	f.after = nil
	if len(f.kills) > 0 && f.percent(10) {
		c = Change{Time: f.time, Who: 7, Kind: Unkill, Scope: f.kills[0].Scope, N: f.kills[0].N}
		f.kills = f.kills[1:]
		return op, c
	}
	if f.percent(12) {
		return op, f.change()
	}
	return f.op(), c
}

func (f *flow) op() Op {
	op := Op{Time: f.time, Party: f.number(6), Symbol: uint16(f.draw(3)), Side: Buy + Side(f.draw(2)), Price: int64(90 + f.draw(22)), Qty: int64(1 + f.draw(60))}
	if f.percent(10) {
		op.Price, op.Qty = 100, 10 // again and again
	}
	op.Market = f.percent(12)
	if f.percent(12) {
		op.Stop, op.Trigger = true, int64(70+f.draw(80))
		op.Price = op.Trigger + int64(f.draw(30)-15)
	}
	switch p := f.draw(100); {
	case p < 50:
		f.next++
		op.Kind, op.ID = Enter, f.next
	case p < 62:
		op.Kind, op.Orig = Replace, f.id()
		if f.percent(50) {
			f.next++
			op.ID = f.next
		}
		revised := op
		revised.Kind = Revised
		f.after = append(f.after, revised)
	case p < 70:
		op.Kind, op.Orig = Cancel, f.id()
		f.after = append(f.after, Op{Time: f.time, Kind: Done, ID: op.Orig})
	case p < 92:
		op.Kind, op.ID = Filled, f.id()
		op.Qty = int64(1 + f.draw(40))
	default:
		op.Kind, op.ID = Done, f.id()
	}
	if f.percent(4) {
		f.spoil(&op)
	}
	return op
}

// spoil makes one field something else.
func (f *flow) spoil(op *Op) {
	odd := []int64{0, -1, 1, 1 << 31, 1 << 40, 1 << 62, -1 << 63, 1<<63 - 1, -100}
	v := odd[f.draw(len(odd))]
	switch f.draw(8) {
	case 0:
		op.Price = v
	case 1:
		op.Qty = v
	case 2:
		op.Party = uint32(v)
	case 3:
		op.Symbol = uint16(v)
	case 4:
		op.Side = Side(v)
	case 5:
		op.Kind = Kind(f.draw(9))
	case 6:
		op.ID = f.id() * uint64(f.draw(2))
	case 7:
		op.Trigger, op.Price, op.Qty = v, v, odd[f.draw(len(odd))]
	}
}

func (f *flow) change() Change {
	c := Change{Time: f.time, Who: f.number(9) % 9, N: f.number(4) % 4, Other: f.number(4) % 5, Profile: f.number(4) % 4, Off: f.percent(60),
		Multiplier: f.number(3), Price: int64(80 + f.draw(40)), Scope: Scope(f.draw(7)), Amount: int64(f.draw(9000))}
	switch f.draw(17) {
	case 0:
		c.Kind, c.Rules = SetProfile, f.rules()
	case 1:
		c.Kind = Authorise
	case 2:
		c.Kind = Restrict
	case 3:
		c.Kind = SetSymbol
	case 4:
		c.Kind = SetSession
	case 5:
		c.Kind = SetClient
	case 6:
		c.Kind, c.N = SetParty, f.number(11)
		c.Party = Party{Session: f.number(3), Trader: f.number(4), Desk: f.number(2), Algorithm: f.number(4) % 4, Client: f.number(4)}
	case 7:
		c.Kind = SetCredit
		c.Amount *= 15
	case 8:
		c.Kind = Give
	case 9:
		c.Kind, c.Other = Take, c.Other%3
		c.Gift = f.gifts[c.Other] + uint64(f.draw(3))
	case 10:
		c.Kind = Kill
		copy(c.Why[:], "test")
		if f.percent(10) {
			c.Why = Text{}
		}
		if c.Scope == All {
			c.N = 0
		}
	case 11, 12:
		if len(f.kills) > 0 && f.percent(90) {
			c.Scope, c.N, f.kills = f.kills[0].Scope, f.kills[0].N, f.kills[1:]
		}
		c.Kind = Unkill
	case 13:
		c.Kind = []ChangeKind{NewDay, 0, 77}[f.draw(3)]
	default:
		c.Kind, c.N = Enable, f.number(3)
	}
	if f.percent(3) {
		c.N, c.Other, c.Amount = 1<<31, 1<<30, -5
		c.Rules.CollarLast = 1 << 30
	}
	return c
}

// run gives f's steps to x, and what they lead to back to f.
func (f *flow) run(t testing.TB, n int, x func(op *Op, c *Change) Reason) {
	t.Helper()
	for range n {
		op, c := f.step()
		if c.Who != 0 || c.Kind != 0 {
			switch why := x(nil, &c); {
			case why == None && c.Kind == Take:
				f.gifts[c.Other]++
			case why == None && c.Kind == Kill:
				f.kills = append(f.kills, c)
			}
			continue
		}
		why := x(&op, nil)
		if why == None && (op.Kind == Enter || op.Kind == Revised && op.ID != 0) {
			f.ids = append(f.ids, op.ID)
		}
		if why != None && (op.Kind == Replace || op.Kind == Cancel) {
			f.after = nil
		}
	}
}
