package limits

import "math/big"

// oracle is the limits again, naively: maps, lists that are searched, and numbers of any
// size. It shares with Limits the operations, the reasons and nothing else.
type oracle struct {
	cfg        Config
	now        int64
	profiles   map[uint32]Rules
	authorised map[[2]uint32]bool
	restricted map[[2]uint32]bool
	killed     map[[2]uint32]bool // scope, number
	symbols    map[uint32]*oSymbol
	sessions   map[uint32]*oSession
	clients    map[uint32]uint32 // profile
	parties    map[uint32]Party
	credit     map[uint32]*oCredit
	orders     map[uint64]*oOrder
	recent     []oRecent
	algorithms map[uint32]*oAlgorithm
	took       map[uint32]uint64
}

type oSymbol struct {
	multiplier      int64
	reference, last int64
	traded          bool
}

type oSession struct {
	profile uint32
	tokens  *big.Rat
	at      int64
}

type oCredit struct{ limit, here, executed int64 }

type oOrder struct {
	op          Op // as it was entered; Party, Symbol and Side stay
	limit       int64
	charge      *big.Int
	leaves, cum int64
}

type oRecent struct {
	op Op
	at int64
}

type oAlgorithm struct {
	orders []int64 // times
	halted uint32  // by this profile
}

func newOracle(c Config) *oracle {
	return &oracle{cfg: c, profiles: map[uint32]Rules{}, authorised: map[[2]uint32]bool{}, restricted: map[[2]uint32]bool{}, killed: map[[2]uint32]bool{},
		symbols: map[uint32]*oSymbol{}, sessions: map[uint32]*oSession{}, clients: map[uint32]uint32{}, parties: map[uint32]Party{},
		credit: map[uint32]*oCredit{}, orders: map[uint64]*oOrder{}, algorithms: map[uint32]*oAlgorithm{}, took: map[uint32]uint64{}}
}

func number(v int64) *big.Int { return big.NewInt(v) }

func times(a *big.Int, more ...int64) *big.Int {
	p := new(big.Int).Set(a)
	for _, m := range more {
		p.Mul(p, number(m))
	}
	return p
}

var maxInt64 = number(1<<63 - 1)

func (x *oracle) apply(op Op) Reason {
	if op.Time != 0 {
		x.now = op.Time
	}
	switch op.Kind {
	case Filled:
		return x.fill(op)
	case Done:
		if x.orders[op.ID] == nil {
			return UnknownOrder
		}
		delete(x.orders, op.ID)
		return None
	case Revised:
		return x.revise(op, true)
	case Enter, Replace, Cancel:
	default:
		return BadField
	}
	p, known := x.parties[op.Party]
	if !known {
		return UnknownParty
	}
	if !x.message(op.Kind, p.Session) {
		return TooManyMessages
	}
	if op.Kind == Cancel {
		return None
	}
	client, why := x.sender(p)
	switch {
	case why != None:
		return why
	case op.Kind == Replace:
		return x.revise(op, false)
	}
	return x.enter(op, p, client)
}

// message takes a message from the session's bucket.
func (x *oracle) message(k Kind, session uint32) bool {
	s := x.sessions[session]
	if s == nil || x.profiles[s.profile].Rate == 0 {
		return true
	}
	r := x.profiles[s.profile]
	burst := new(big.Rat).SetInt64(int64(r.Burst))
	at := x.now
	t := new(big.Rat).SetFrac(times(span(x.now, s.at), int64(r.Rate)), number(second))
	if x.now < s.at && t.Cmp(burst) <= 0 {
		t.SetInt64(0) // no time has passed
		at = s.at
	}
	t.Add(t, s.tokens)
	if t.Cmp(burst) > 0 {
		t.Set(burst)
	}
	need := new(big.Rat).SetInt64(1)
	if k != Cancel {
		need.SetInt64(1 + int64(r.Reserve))
	}
	if t.Cmp(need) < 0 {
		return false
	}
	s.tokens, s.at = t.Sub(t, new(big.Rat).SetInt64(1)), at
	return true
}

func (x *oracle) sender(p Party) (profile uint32, why Reason) {
	for s, v := range map[Scope]uint32{Session: p.Session, Trader: p.Trader, Desk: p.Desk, Algorithm: p.Algorithm, Client: p.Client, All: 0} {
		if x.killed[[2]uint32{uint32(s), v}] {
			return 0, Killed
		}
	}
	if a := x.algorithms[p.Algorithm]; a != nil && a.halted != 0 {
		return 0, Halted
	}
	profile = x.clients[p.Client]
	if !x.authorised[[2]uint32{profile, p.Trader}] {
		return 0, NotAuthorised
	}
	return profile, None
}

func (x *oracle) enter(op Op, p Party, profile uint32) Reason {
	y, r := x.symbols[uint32(op.Symbol)], x.profiles[profile]
	switch {
	case y == nil:
		return UnknownSymbol
	case x.restricted[[2]uint32{profile, uint32(op.Symbol)}]:
		return RestrictedSymbol
	case op.Side != Buy && op.Side != Sell:
		return BadField
	case op.Qty <= 0:
		return BadQty
	}
	limit, charge, why := x.size(op, op.Side, y, r)
	if why != None {
		return why
	}
	if r.DuplicateWindow != 0 {
		for _, q := range x.recent {
			if !x.past(q) && equal(q.op, op) {
				return Duplicate
			}
		}
	}
	if why := x.afford(p.Client, times(charge, op.Qty, y.multiplier)); why != None {
		return why
	}
	if op.ID == 0 || x.orders[op.ID] != nil {
		return BadID
	}
	if len(x.orders) == x.cfg.Orders || r.DuplicateWindow != 0 && len(x.recent) == x.cfg.Recent && !x.past(x.recent[0]) {
		return Full
	}
	if r.DuplicateWindow != 0 {
		for i := 0; i < 2 && len(x.recent) > 0 && x.past(x.recent[0]); i++ {
			x.recent = x.recent[1:]
		}
		x.recent = append(x.recent, oRecent{op, x.now})
	}
	x.orders[op.ID] = &oOrder{op: op, limit: limit, charge: charge, leaves: op.Qty}
	return None
}

// past reports whether an order is remembered no longer.
func (x *oracle) past(q oRecent) bool {
	window := x.profiles[x.clients[x.parties[q.op.Party].Client]].DuplicateWindow
	return span(q.at, x.now).Cmp(number(window)) >= 0
}

func span(a, b int64) *big.Int {
	d := new(big.Int).Sub(number(a), number(b))
	return d.Abs(d)
}

func equal(a, b Op) bool {
	return a.Party == b.Party && a.Symbol == b.Symbol && a.Side == b.Side && a.Qty == b.Qty && a.Market == b.Market && a.Stop == b.Stop &&
		(a.Market || a.Price == b.Price) && (!a.Stop || a.Trigger == b.Trigger)
}

// revise judges a replace, and does it if it was done.
func (x *oracle) revise(op Op, did bool) Reason {
	o := x.orders[op.Orig]
	if o == nil {
		return UnknownOrder
	}
	p := x.parties[o.op.Party]
	profile, y := x.clients[p.Client], x.symbols[uint32(o.op.Symbol)]
	if !did && x.restricted[[2]uint32{profile, uint32(o.op.Symbol)}] {
		return RestrictedSymbol
	}
	if op.Qty <= o.cum {
		return BadQty
	}
	limit, charge, why := x.size(op, o.op.Side, y, x.profiles[profile])
	if why != None {
		return why
	}
	more := times(charge, op.Qty-o.cum, y.multiplier)
	more.Sub(more, times(o.charge, o.leaves, y.multiplier))
	if more.Sign() > 0 {
		if why := x.afford(p.Client, more); why != None {
			return why
		}
	}
	if op.ID != 0 && op.ID != op.Orig && x.orders[op.ID] != nil {
		return BadID
	}
	if did {
		delete(x.orders, op.Orig)
		o.limit, o.charge, o.leaves = limit, charge, op.Qty-o.cum
		if op.ID == 0 {
			op.ID = op.Orig
		}
		x.orders[op.ID] = o
	}
	return None
}
