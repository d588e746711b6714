//go:build mutants

package match

import "time"

// selected is set before any engine is used and not changed after.
var selected mutantID

func mutant(id mutantID) bool { return selected == id }

// Mutant is a deliberately broken variant.
type Mutant struct {
	Name   string
	Breaks string // what it does, against which rule
	Proof  string // a test of this package that fails with it
}

var mutantList = [mutants]Mutant{
	mutNone:           {"none", "nothing", ""},
	mutSweepMap:       {"sweep-map", "a mass cancel visits orders in the order of a map", "TestOracleEveryByte"},
	mutLocalClock:     {"local-clock", "time is this machine's, not the operation's", "TestOracleEveryByte"},
	mutFloatPrice:     {"float-price", "prices are computed in floating point", "TestOracleEveryByte"},
	mutKeepPriority:   {"keep-priority", "an order keeps its priority when its price changes", "TestOracleEveryByte"},
	mutSelfTrade:      {"self-trade", "orders of one group trade with each other", "TestOracleEveryByte"},
	mutPressure:       {"pressure", "a surplus of buys takes the lowest price of an auction, one of sells the highest", "TestOracleEveryByte"},
	mutIcebergKeeps:   {"iceberg-keeps", "an iceberg keeps its priority when it shows its next part", "TestOracleEveryByte"},
	mutFOKPartial:     {"fok-partial", "a FOK order is filled in part", "TestOracleEveryByte"},
	mutRestoreDisplay: {"restore-display", "a restored engine forgets what icebergs hide", "TestSnapshot"},
	mutSweepLate:      {"sweep-late", "an order that a pending mass cancel includes trades until it is visited", "TestOracleEveryByte"},
	mutRestoreSweep:   {"restore-sweep", "a restored engine forgets mass cancels that are pending", "TestSnapshot"},
	mutRestoreParty:   {"restore-party", "a restored engine forgets who answers for an order", "TestSnapshot"},
	mutBandStands:     {"band-stands", "new orders have the prices of the band that the book began with", "TestOracleEveryByte"},
	mutRestoreBand:    {"restore-band", "a restored engine has the price bands that books began with", "TestSnapshot"},
	mutKilledTrades:   {"killed-trades", "an order that the kill switch includes trades until its turn to be cancelled", "TestOracleEveryByte"},
}

// Mutants lists the variants.
func Mutants() []Mutant { return mutantList[1:] }

// SelectMutant breaks the engine in one way from here on, in this process, or not at all
// if there is no such variant. It reports whether there is.
func SelectMutant(name string) bool {
	selected = mutNone
	for id := range mutantList {
		if id > 0 && mutantList[id].Name == name {
			selected = mutantID(id)
		}
	}
	return selected != mutNone
}

// clock returns the engine's time.
func clock(now int64) int64 {
	if mutant(mutLocalClock) {
		return time.Now().UnixNano()
	}
	return now
}

// victim returns the order that a mass cancel visits next.
func (e *Engine) victim(s *sweep) uint32 {
	if !mutant(mutSweepMap) {
		return s.slot
	}
	queue := map[uint32]bool{}
	for slot := s.slot; slot != 0 && e.orders[slot].prio <= s.prio; slot = e.orders[slot].next {
		if s.includes(&e.orders[slot]) {
			queue[slot] = true
		}
	}
	for slot := range queue {
		return slot
	}
	return s.slot
}
