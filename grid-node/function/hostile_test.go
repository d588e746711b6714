package function

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// loopForever is a loop that jumps to its start.
var loopForever = cat(opLoop, typeV, opBr, 0, opEnd)

// hostile are modules that load and must not get far.
func hostile(kind Kind) map[string]struct {
	bin  []byte
	want Fault
} {
	type module = struct {
		bin  []byte
		want Fault
	}
	list := map[string]module{
		"endless loop":     {entry(kind, nil, loopForever, constI32(0)), OutOfFuel},
		"endless br_if":    {entry(kind, nil, opLoop, typeV, constI32(1), opBrIf, 0, opEnd, constI32(0)), OutOfFuel},
		"endless br_table": {entry(kind, nil, opLoop, typeV, constI32(5), opBrTable, 1, 0, 0, opEnd, constI32(0)), OutOfFuel},
		"nested loops":     {entry(kind, nil, opLoop, typeV, opLoop, typeV, opBr, 1, opEnd, opEnd, constI32(0)), OutOfFuel},
		"out of bounds":    {entry(kind, nil, constI32(-4), 0x28, 2, 0), Trapped},
		"beyond the end":   {entry(kind, nil, constI32(0), constI32(1), 0x36, 2, "\xff\xff\xff\xff\x0f", constI32(0)), Trapped},
		"division by zero": {entry(kind, nil, constI32(1), constI32(0), 0x6d), Trapped},
		"unreachable":      {entry(kind, nil, opUnreachable), Trapped},
		"memory growth":    {entry(kind, nil, opLoop, typeV, constI32(1), opMemoryGrow, 0, 0x1a, opBr, 0, opEnd, constI32(0)), OutOfFuel},
		"growth at once":   {entry(kind, nil, constI32(-1), opMemoryGrow, 0), OutOfFuel},
		"fill":             {entry(kind, nil, opLoop, typeV, constI32(70000), constI32(0), constI32(61000), opPrefix, subMemoryFill, 0, opBr, 0, opEnd, constI32(0)), OutOfFuel},
		"copy too much":    {entry(kind, nil, constI32(0), constI32(0), constI32(-1), opPrefix, subMemoryCopy, 0, 0, constI32(0)), OutOfFuel},
		"unknown verdict":  {entry(kind, nil, constI32(-3)), BadResult},
		"output outside":   {entry(kind, nil, constI32(areaAt+areaOut), constI32(-8), "\x36\x02\x00", constI32(areaAt+areaOut+4), constI32(64), "\x36\x02\x00", constI32(1)), BadResult},
		"smaller area":     {entry(kind, nil, constI32(areaAt+areaSize), constI32(0), "\x36\x02\x00", constI32(-1)), BadResult},
	}
	a := newAsm()
	a.export(kind.entryPoint(), 0, a.fn(0, nil, opCall, 1))
	list["recursion"] = module{a.bytes(), TooDeep}
	a = newAsm()
	a.fn(0, nil, opCall, 2)
	a.export(kind.entryPoint(), 0, a.fn(0, nil, opCall, 1))
	list["recursion of two"] = module{a.bytes(), TooDeep}
	a = newAsm()
	a.table, a.elems = cat(1, 0x70, 0, 1), cat(1, 0, constI32(0), opEnd, 1, 1)
	a.export(kind.entryPoint(), 0, a.fn(0, nil, constI32(0), opIndirect, 0, 0))
	list["recursion by the table"] = module{a.bytes(), TooDeep}
	a = newAsm()
	locals := appendU32(nil, 1000)
	a.funcs = append(a.funcs, []byte{0})
	a.code = append(a.code, sized(cat(1, locals, i64, opCall, 1, opEnd)))
	a.export(kind.entryPoint(), 0, 1)
	list["recursion with locals"] = module{a.bytes(), TooDeep}
	return list
}

// call calls an instance of any kind with an order and returns its fault.
func call(i *Instance, tb testing.TB, o *Order) Fault {
	switch i.module.kind {
	case Pre:
		return i.Decide(tb.Context(), o).Fault
	case Post:
		_, f := i.Record(tb.Context(), o)
		return f
	}
	_, _, f := i.Compute(tb.Context(), o.Raw)
	return f
}

// TestHostileModulesAreCutOff calls each three times, compiled and interpreted: the same
// fault, the same fuel, every time.
func TestHostileModulesAreCutOff(t *testing.T) {
	o := &Order{Raw: message(t)}
	for _, kind := range []Kind{Pre, Post} {
		for name, c := range hostile(kind) {
			t.Run(fmt.Sprint(kind, "/", name), func(t *testing.T) {
				var used []int64
				for _, interpret := range []bool{false, true} {
					i := load(t, c.bin, kind, Options{Interpret: interpret})
					for range 3 {
						if c.want == BadResult && name == "smaller area" && len(used)%3 > 0 && kind == Post {
							break // the area stays as the first call left it
						}
						got := call(i, t, o)
						if got != c.want {
							t.Fatalf("%v (%v), want %v", got, i.Err(got), c.want)
						}
						used = append(used, i.Used())
					}
				}
				for _, u := range used {
					if u != used[0] {
						t.Fatalf("fuel differs between calls: %v", used)
					}
				}
			})
		}
	}
}

func TestMemoryGrowsNoFurtherThanGranted(t *testing.T) {
	// Asks for a page at a time and returns how many it got, as reason of a refusal.
	bin := entry(Pre, []byte{1, i32}, opLoop, typeV, constI32(1), opMemoryGrow, 0, constI32(-1), 0x47, opIf, typeV,
		opLocalGet, 0, constI32(1), opI32Add, opLocalSet, 0, opBr, 1, opEnd, opEnd,
		constI32(areaAt+areaReason), opLocalGet, 0, "\x36\x02\x00", constI32(1))
	a := newAsm() // its own maximum is 4
	a.memory = cat(1, 0, 2)
	a.export("og1_pre", 0, a.fn(0, []byte{1, i32}, entryBody(bin)))
	for pages, want := range map[uint32]uint32{2: 0, 5: 3, 16: 14} {
		d := load(t, a.bytes(), Pre, Options{Pages: pages, Fuel: 1_000_000}).Decide(t.Context(), &Order{Raw: message(t)})
		if d.Fault != None || d.Reason != want {
			t.Errorf("%d pages: %+v, want %d more", pages, d, want)
		}
	}
}

// entryBody returns the instructions of the last function of a module of entry.
func entryBody(bin []byte) []byte {
	m, err := parse(bin)
	if err != nil {
		panic(err)
	}
	raw := m.code[len(m.code)-1].raw
	return raw[3 : len(raw)-1]
}

// TestStartsThatNeverEnd: what runs while loading has fuel, too.
func TestStartsThatNeverEnd(t *testing.T) {
	a := newAsm()
	a.exports = nil
	a.export("og1_area", 0, a.fn(0, nil, loopForever, constI32(0)))
	a.export("og1_pre", 0, 0)
	refused(t, a.bytes(), Pre, "og1_area failed: out of fuel")
	a = newAsm()
	a.typ(nil, nil)
	a.export("_initialize", 0, a.fn(2, nil, loopForever))
	a.export("og1_pre", 0, 0)
	refused(t, a.bytes(), Pre, "_initialize failed: out of fuel")
	a = newAsm()
	a.export("og1_configure", 0, a.fn(1, nil, loopForever, constI32(0)))
	a.export("og1_pre", 0, 0)
	refused(t, a.bytes(), Pre, "og1_configure failed: out of fuel")
}

// TestAFailureLeavesNothingBehind: a Pre function that counted, then trapped, begins anew.
func TestAFailureLeavesNothingBehind(t *testing.T) {
	counter := cat(constI32(64), constI32(64), "\x28\x02\x00", constI32(1), opI32Add, "\x36\x02\x00")
	i := load(t, entry(Pre, nil, counter, // reason = count; trap at 3
		constI32(areaAt+areaReason), constI32(64), "\x28\x02\x00", "\x36\x02\x00",
		constI32(64), "\x28\x02\x00", constI32(3), 0x46, opIf, typeV, opUnreachable, opEnd, constI32(1)), Pre, Options{})
	var got []uint32
	for range 5 {
		d := i.Decide(t.Context(), &Order{Raw: message(t)})
		if d.Fault != None {
			d.Reason = 99
		}
		got = append(got, d.Reason)
	}
	if want := fmt.Sprint([]uint32{1, 2, 99, 1, 2}); fmt.Sprint(got) != want {
		t.Fatalf("counts %v, want %v", got, want)
	}
}

func TestOnError(t *testing.T) {
	failed := Decision{Fault: OutOfFuel}
	if d := Reject.Apply(failed); d.Verdict != Refuse || d.Reason != FaultReason || string(d.Text) != "function: out of fuel" || d.Fault != OutOfFuel {
		t.Errorf("Reject: %+v", d)
	}
	if d := Pass.Apply(failed); d.Verdict != Accept || d.Fault != OutOfFuel {
		t.Errorf("Pass: %+v", d)
	}
	if d := Reject.Apply(Decision{Verdict: Refuse, Reason: 3}); d.Reason != 3 {
		t.Errorf("a decision: %+v", d)
	}
}

// TestPostStateIsItsMemory counts in memory, moves the state to another instance and goes on.
func TestPostStateIsItsMemory(t *testing.T) {
	body := cat(constI32(areaAt+areaData), constI32(64), constI32(64), "\x28\x02\x00", constI32(1), opI32Add, "\x36\x02\x00",
		constI32(64), "\x28\x02\x00", "\x36\x02\x00",
		constI32(areaAt+areaOut), constI32(areaData), "\x36\x02\x00", constI32(areaAt+areaOut+4), constI32(4), "\x36\x02\x00", constI32(1))
	bin := entry(Post, nil, body)
	a, b := load(t, bin, Post, Options{}), load(t, bin, Post, Options{})
	step := func(i *Instance) uint32 {
		out, f := i.Record(t.Context(), &Order{Raw: message(t)})
		if f != None || len(out) != 4 {
			t.Fatalf("%v, %x", f, out)
		}
		return binary.LittleEndian.Uint32(out)
	}
	for range 3 {
		step(a)
	}
	if a.Digest() == b.Digest() {
		t.Fatal("digests of different states are the same")
	}
	state := a.AppendState(nil)
	if err := b.Restore(state); err != nil {
		t.Fatal(err)
	}
	if a.Digest() != b.Digest() || step(a) != 4 || step(b) != 4 || a.Digest() != b.Digest() {
		t.Fatal("a restored function goes on differently")
	}
	for n := range min(len(state), 64) {
		if load(t, bin, Post, Options{}).Restore(state[:n]) == nil && n != 8+8*len(a.globals) {
			t.Fatalf("restored from %d bytes", n)
		}
	}
}
