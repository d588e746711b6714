package function

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

func message(tb testing.TB) []byte {
	tb.Helper()
	b, err := os.ReadFile("../order/testdata/order-305-fix44.txt")
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// load loads a module and makes an instance of it, both closed with the test.
func load(tb testing.TB, bin []byte, kind Kind, opts Options) *Instance {
	tb.Helper()
	m, err := Load(tb.Context(), bin, kind, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = m.Close(context.Background()) })
	i, err := m.Instance(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return i
}

// refused loads a module that has to be refused with this text.
func refused(t *testing.T, bin []byte, kind Kind, want string) {
	t.Helper()
	m, err := Load(t.Context(), bin, kind, Options{})
	if err == nil {
		_ = m.Close(t.Context())
		t.Fatalf("loaded, want a refusal with %q", want)
	}
	if _, ok := errors.AsType[*Refusal](err); !ok || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v (%T), want a refusal with %q", err, err, want)
	}
}

func TestRefusedInstructions(t *testing.T) {
	f32 := cat(0x43, 0, 0, 0xc0, 0x7f) // a NaN
	for _, c := range []struct {
		name string
		kind Kind
		body []byte
		want string
	}{
		{"float const", Post, cat(f32, 0x1a, constI32(0)), "instruction f32.const: floating point"},
		{"float from bits", Post, cat(constI32(0x7fc00001), 0xbe, 0x1a, constI32(0)), "f32.reinterpret_i32"},
		{"float load", Post, cat(constI32(0), 0x2b, 3, 0, 0x1a, constI32(0)), "f64.load"},
		{"saturating", Post, cat(f32, 0xfc, 0), "f32.const"},
		{"float block", Post, cat(0x02, typeF64, 0x00, opEnd, 0x1a, constI32(0)), "floating point"},
		{"atomic", Pre, cat(constI32(0), 0xfe, 0x10, 2, 0), "atomic instruction (threads)"},
		{"vector", Pre, cat(0xfd, 12, make([]byte, 16), 0x1a, constI32(0)), "vector instruction (SIMD)"},
		{"memory.init", Pre, cat(constI32(0), constI32(0), constI32(0), 0xfc, 8, 0, 0, constI32(0)), "memory.init"},
		{"table.grow", Compute, cat(0xd0, 0x70, constI32(1), 0xfc, 15, 0), "ref.null"},
		{"tail call", Compute, cat(0x12, 0), "return_call"},
		{"unknown", Compute, cat(0xff), "0xff"},
		{"local beyond", Pre, cat(opLocalGet, 0), "local 0, there are 0"},
		{"the meter's global", Pre, cat(opGlobalGet, 0, 0xa7), "global 0, there are 0"},
		{"label beyond", Pre, cat(constI32(0), opBr, 1), "label 1, there are 1"},
		{"branch table beyond", Pre, cat(constI32(0), constI32(0), opBrTable, 1, 0, 1), "label 1, there are 1"},
		{"function beyond", Pre, cat(opCall, 9), "function 9, there are 2"},
		{"else alone", Pre, cat(opElse, constI32(0)), "else without if"},
		{"wrong types", Pre, cat(opI32Add), "not valid WebAssembly"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, entry(c.kind, nil, c.body), c.kind, c.want) })
	}
}

func TestFloatsAreForThoseThatAreNotReplicated(t *testing.T) {
	bin := entry(Compute, []byte{1, typeF64}, 0x44, make([]byte, 8), 0x1a, constI32(7))
	if _, code, fault := load(t, bin, Compute, Options{}).Compute(t.Context(), nil); code != 7 || fault != None {
		t.Fatalf("code %d, fault %v", code, fault)
	}
	post := newAsm()
	post.export("og1_post", 0, post.fn(0, []byte{1, typeF64}, constI32(0)))
	refused(t, post.bytes(), Post, "floating-point local")
	post = newAsm()
	post.typ([]byte{typeF64}, nil)
	post.export("og1_post", 0, post.fn(0, nil, constI32(0)))
	refused(t, post.bytes(), Post, "type 2 has a floating-point value")
}

func TestRefusedSections(t *testing.T) {
	with := func(change func(*asm)) []byte {
		a := newAsm()
		a.export("og1_pre", 0, a.fn(0, nil, constI32(0)))
		change(a)
		return a.bytes()
	}
	million := appendU32(nil, 1_000_000)
	for _, c := range []struct {
		name string
		bin  []byte
		want string
	}{
		{"nothing", nil, "not a WebAssembly module"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), "not a WebAssembly module"},
		{"start", with(func(a *asm) { a.start = cat(1) }), "start function"},
		{"a clock", with(func(a *asm) {
			a.imports = cat(1, sized([]byte("wasi_snapshot_preview1")), sized([]byte("clock_time_get")), 0, 0)
		}),
			`1 imports, the first is "clock_time_get" of "wasi_snapshot_preview1"`},
		{"a million imports", with(func(a *asm) { a.imports = cat(million, sized([]byte("x")), sized([]byte("y")), 0, 0) }), `1000000 imports, the first is "y"`},
		{"a million functions", with(func(a *asm) { a.funcs = [][]byte{million} }), "functions"},
		{"memory", with(func(a *asm) { a.memory = cat(1, 0, 17) }), "17 pages of memory at the start, 16 are granted"},
		{"memory beyond all", with(func(a *asm) { a.memory = cat(1, 0, 0xff, 0xff, 3) }), "65535 at the start, at most 1024"},
		{"shared memory", with(func(a *asm) { a.memory = cat(1, 3, 1, 2) }), "shared"},
		{"no memory", with(func(a *asm) { a.memory = nil }), "no memory"},
		{"table", with(func(a *asm) { a.table = cat(1, 0x70, 0, 0x81, 0x20) }), "4097 at the start, at most 4096"},
		{"a name table of 100 MB", with(func(a *asm) { a.custom = cat("\x04name", make([]byte, 100<<20)) }), "at most 1048576"},
		{"announced", cat("\x00asm\x01\x00\x00\x00", 0, "\xff\xff\xff\xff\x0f"), "4294967295 bytes announced"},
		{"order", cat("\x00asm\x01\x00\x00\x00", 5, 3, 1, 0, 1, 1, 1, 0), "out of order"},
		{"bytes left over", cat("\x00asm\x01\x00\x00\x00", 1, 2, 0, 0), "1 bytes too many"},
		{"no entry", newAsm().bytes(), `no export "og1_pre"`},
		{"entry with a parameter", with(func(a *asm) { a.exports = nil; a.export("og1_pre", 0, a.fn(1, nil, constI32(0))) }), "has parameters 0x7f"},
		{"export twice", with(func(a *asm) { a.export("og1_pre", 0, 1) }), "twice"},
		{"element beyond", with(func(a *asm) { a.table = cat(1, 0x70, 0, 1); a.elems = cat(1, 0, constI32(0), opEnd, 1, 77) }), "function 77 of 2"},
		{"chain of calls", with(func(a *asm) {
			for range 600 {
				a.fn(0, nil, opCall, appendU32(nil, uint32(len(a.funcs)+1)))
			}
			a.fn(0, nil, constI32(0))
		}), "a chain of calls takes"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.bin, Pre, c.want) })
	}
}

// TestEveryInstructionHasItsName holds the tables of names against their ranges.
func TestEveryInstructionHasItsName(t *testing.T) {
	for op, want := range map[byte]string{0x28: "i32.load", 0x3e: "i64.store32", 0x45: "i32.eqz", 0x50: "i64.eqz", 0x5b: "f32.eq", 0x67: "i32.clz",
		opI32Add: "i32.add", opI64Sub: "i64.sub", opI64ShrU: "i64.shr_u", opI64ExtendU: "i64.extend_i32_u", opI64LtS: "i64.lt_s",
		0xa7: "i32.wrap_i64", 0xbf: "f64.reinterpret_i64", 0xc4: "i64.extend32_s"} {
		if got := (&instr{op: op}).name(); got != want {
			t.Errorf("%#02x is %q, want %q", op, got, want)
		}
	}
	if n := len(memoryNames); n != 0x3f-0x28 {
		t.Errorf("%d memory instructions", n)
	}
	if n := len(plainNames); n != 0xc5-0x45 {
		t.Errorf("%d plain instructions", n)
	}
	if n := len(prefixNames); n != 18 {
		t.Errorf("%d prefixed instructions", n)
	}
}
