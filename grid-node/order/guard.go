package order

import "fmt"

// GuardOp is what an entry of kind guard does.
type GuardOp uint8

// Operations of kind guard.
const (
	GuardProfile GuardOp = 1 // the limits are those of Profile from here on
	GuardKill    GuardOp = 2 // what Scope and Name mean may not enter orders
	GuardUnkill  GuardOp = 3 // it may again
	// GuardNames: from here on the books know of an order who answers for it, and kills, those
	// in effect too, cancel what rests. In a partition that matches, by its primary.
	GuardNames GuardOp = 4
)

// GuardScope is what a kill stops.
type GuardScope uint8

// Scopes, with the values of grid-node/limits.
const (
	GuardSession GuardScope = iota
	GuardTrader
	GuardDesk
	GuardAlgorithm
	GuardClient
	GuardAll
)

var guardScopes = [...]string{"session", "trader", "desk", "algorithm", "client", "all"}

// String returns the word of the command line.
func (s GuardScope) String() string {
	if int(s) < len(guardScopes) {
		return guardScopes[s]
	}
	return fmt.Sprintf("scope%d", uint8(s))
}

// Bounds of the texts in a Guard, in bytes.
const (
	MaxGuardName = 64
	MaxGuardWho  = 200
	MaxGuardWhy  = 400
	MaxGuard     = 60_000 // of a profile
)

// Guard is the payload of an entry of kind guard: a change of limits, who made it and why.
//
//	off size field            off size field
//	 0  u8   op                4  u16  bytes of why
//	 1  u8   scope             6  u16  0
//	 2  u8   bytes of name     8       name, who, why, then the profile
//	 3  u8   bytes of who
type Guard struct {
	Op      GuardOp
	Scope   GuardScope
	Name    []byte // of a kill: of a session its id, 32 hexadecimal digits; none of all
	Who     []byte
	Why     []byte
	Profile []byte // as grid-node/limits writes it
}

const guardFixed = 8

// Append appends the payload.
func (g *Guard) Append(dst []byte) []byte {
	dst = append(dst, byte(g.Op), byte(g.Scope), byte(len(g.Name)), byte(len(g.Who)))
	dst = le.AppendUint16(le.AppendUint16(dst, uint16(len(g.Why))), 0)
	return append(append(append(append(dst, g.Name...), g.Who...), g.Why...), g.Profile...)
}

// GuardOf reads the payload of an entry of kind guard that DecodeEntry accepted.
func GuardOf(payload []byte) Guard {
	name, who, why := int(payload[2]), int(payload[3]), int(le.Uint16(payload[4:]))
	b := payload[guardFixed:]
	return Guard{Op: GuardOp(payload[0]), Scope: GuardScope(payload[1]), Name: b[:name], Who: b[name:][:who], Why: b[name+who:][:why], Profile: b[name+who+why:]}
}

// CheckGuard checks the form of a payload before it is an entry.
func CheckGuard(payload []byte) error { return checkGuard(0, payload) }

// checkGuard checks the form of the payload of an entry of kind guard.
func checkGuard(seq uint64, b []byte) error {
	bad := func(field string, v int, allowed string) error {
		return &EntryError{Seq: seq, Field: field, Value: uint64(v), Allowed: allowed}
	}
	if len(b) < guardFixed {
		return bad("size", HeaderSize+len(b), "72 or more for a guard entry")
	}
	op, scope := GuardOp(b[0]), GuardScope(b[1])
	name, who, why := int(b[2]), int(b[3]), int(le.Uint16(b[4:]))
	rest := len(b) - guardFixed - name - who - why
	kill := op == GuardKill || op == GuardUnkill
	switch {
	case op < GuardProfile || op > GuardNames || le.Uint16(b[6:]) != 0:
		return bad("op", int(op), "1 profile, 2 kill, 3 unkill, 4 names")
	case rest < 0 || (op == GuardProfile) != (rest > 0) || rest > MaxGuard:
		return bad("size", HeaderSize+len(b), "the texts, and a profile of up to 60000 bytes where it is one")
	case scope > GuardAll || !kill && (scope != 0 || name != 0):
		return bad("scope", int(scope), "0 session, 1 trader, 2 desk, 3 algorithm, 4 client, 5 all; 0 and no name where there is no kill")
	case kill && (scope == GuardAll) != (name == 0) || name > MaxGuardName:
		return bad("nameLen", name, "1..64, and 0 for all")
	case who == 0 || who > MaxGuardWho:
		return bad("whoLen", who, "1..200")
	case why > MaxGuardWhy || kill && why == 0:
		return bad("whyLen", why, "1..400")
	}
	return nil
}
