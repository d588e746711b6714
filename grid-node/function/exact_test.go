package function

import (
	"bytes"
	"testing"
)

// drops are n instructions that do nothing, n even.
func drops(n int) []byte { return bytes.Repeat(cat(constI32(3), 0x1a), n/2) }

const (
	opEqz  = 0x45
	caller = 1 + 1 + callCost // what exactPaths has around the function: const, load, call
)

// exactPaths are functions of one i32 with every way out of a function, and what each takes
// for an argument, counted by hand by the rule of docs/functions.md: one for an instruction
// but labels, callCost for a call; a stretch is paid for where it begins, one of fewer than
// minForward instructions behind a branch with the one before it.
var exactPaths = []struct {
	name string
	body []byte
	want map[int]int64 // argument -> fuel of the function itself
}{
	{"end", cat(opLocalGet, 0), map[int]int64{0: 1, 5: 1}},
	{"return", cat(opLocalGet, 0, opReturn), map[int]int64{0: 2, 5: 2}},
	{"return with more on the stack", cat(constI32(1), constI32(2), opLocalGet, 0, opReturn), map[int]int64{1: 4}},
	{"return in a block", cat(opBlock, typeV, opLocalGet, 0, opReturn, opEnd, constI32(1)), map[int]int64{1: 3}},
	{"return in a block of a block", cat(opBlock, typeV, opBlock, typeV, opLocalGet, 0, opReturn, opEnd, opEnd, constI32(1)), map[int]int64{1: 3}},
	{"return in a short branch", cat(opLocalGet, 0, opIf, typeV, constI32(1), opReturn, opEnd, constI32(2)), map[int]int64{0: 5, 1: 5}},
	{"return in a long branch", cat(opLocalGet, 0, opIf, typeV, drops(12), constI32(1), opReturn, opEnd, constI32(2)), map[int]int64{0: 3, 1: 3 + 14}},
	{"return in else", cat(opLocalGet, 0, opIf, typeV, drops(16), opElse, drops(20), constI32(1), opReturn, opEnd, constI32(2)), map[int]int64{0: 3 + 22, 1: 3 + 16}},
	{"return in a loop", cat(opLoop, typeV, opLocalGet, 0, opEqz, opIf, typeV, constI32(7), opReturn, opEnd,
		opLocalGet, 0, constI32(1), opI32Sub, opLocalSet, 0, opBr, 0, opEnd, opUnreachable), map[int]int64{0: 1 + 10, 1: 1 + 20, 6: 1 + 70}},
	{"branch to the function", cat(opBlock, typeV, opLocalGet, 0, opBr, 1, opEnd, constI32(1)), map[int]int64{1: 3}},
	{"branch out of a loop to the function", cat(opLoop, typeV, opLocalGet, 0, opBr, 1, opEnd, constI32(1)), map[int]int64{1: 1 + 2}},
	{"conditional branch to the function", cat(opLocalGet, 0, opLocalGet, 0, opBrIf, 0, drops(12)), map[int]int64{0: 3 + 12, 1: 3}},
	{"branch by a table to the function", cat(opBlock, typeV, opLocalGet, 0, opLocalGet, 0, opBrTable, 1, 1, 1, opEnd, drops(14), constI32(1)), map[int]int64{0: 3 + 15, 1: 3 + 15}},
	{"two calls that return", cat(opLocalGet, 0, opCall, 1, opCall, 1), map[int]int64{1: 1 + 2*callCost + 2*2}},
	{"a call that returns, then return", cat(opLocalGet, 0, opCall, 1, opReturn), map[int]int64{1: 2 + callCost + 2}},
	{"a call by the table that returns", cat(opLocalGet, 0, constI32(0), opIndirect, 1, 0), map[int]int64{1: 2 + callCost + 2}},
	{"a call without result that returns", cat(opCall, 2, opLocalGet, 0), map[int]int64{1: 1 + callCost + 3}},
	{"recursion that returns", cat(opLocalGet, 0, opEqz, opIf, typeV, constI32(0), opReturn, opEnd,
		opLocalGet, 0, constI32(1), opI32Sub, opCall, 3), map[int]int64{0: 16, 1: 32, 9: 160}},
	{"fill", cat(constI32(0), constI32(1), opLocalGet, 0, opPrefix, subMemoryFill, 0, opLocalGet, 0, opReturn), map[int]int64{0: 6, 7: 6, 8: 7, 800: 106}},
	{"copy", cat(constI32(0), constI32(64), opLocalGet, 0, opPrefix, subMemoryCopy, 0, 0, opLocalGet, 0), map[int]int64{0: 5, 80: 15}},
	{"grow", cat(opLocalGet, 0, opMemoryGrow, 0, opReturn), map[int]int64{0: 1 + callCost + 1, 1: 1 + callCost + 1 + pageCost}},
}

// exactModule calls body, function 3, with the length of its argument.
func exactModule(body []byte) []byte {
	a := newAsm()
	v := a.typ(nil, nil)
	a.table, a.elems = cat(1, 0x70, 0, 1), cat(1, 0, constI32(0), opEnd, 1, 1)
	a.fn(1, nil, opLocalGet, 0, opReturn)          // 1
	a.fn(v, nil, constI32(1), opBrIf, 0, opReturn) // 2
	a.export("og1_compute", 0, 4)                  // calls
	a.fn(1, nil, body)                             // 3
	a.fn(0, nil, constI32(areaAt+areaPayload+4), "\x28\x02\x00", opCall, 3)
	return a.bytes()
}

// TestFuelIsExact: what each path takes is what it takes by hand, compiled and interpreted.
// A way out of a function that forgets to write the fuel back makes the caller go on with
// what it had before the call.
func TestFuelIsExact(t *testing.T) {
	for _, c := range exactPaths {
		t.Run(c.name, func(t *testing.T) {
			for _, interpret := range []bool{false, true} {
				i := load(t, exactModule(c.body), Compute, Options{Interpret: interpret})
				for arg, want := range c.want {
					want += caller
					if _, _, fault := i.Compute(t.Context(), make([]byte, arg)); fault != None || i.Used() != want {
						t.Errorf("argument %d, interpreted %t: fuel %d, fault %v; by hand %d", arg, interpret, i.Used(), fault, want)
					}
				}
				for arg, want := range c.want { // and with one less it is not enough
					short := load(t, exactModule(c.body), Compute, Options{Interpret: interpret, Fuel: max(want+caller-1, 8)})
					if _, _, fault := short.Compute(t.Context(), make([]byte, arg)); fault != OutOfFuel && want+caller > 8 {
						t.Errorf("argument %d, interpreted %t: fault %v with fuel %d, want out of fuel", arg, interpret, fault, want+caller-1)
					}
				}
			}
		})
	}
}
