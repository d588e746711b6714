package function

import (
	"fmt"
	"slices"
)

// asm builds modules for tests, section by section.
type asm struct {
	types, funcs, exports, code [][]byte
	table, memory, globals      []byte // contents of sections
	elems, custom, start        []byte
	imports                     []byte
}

const (
	i32 = typeI32
	i64 = typeI64
)

// cat puts pieces together: bytes, opcodes, strings and other pieces.
func cat(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		default:
			panic(fmt.Sprintf("a piece of type %T", p))
		}
	}
	return b
}

func sized(b []byte) []byte { return append(appendU32(nil, uint32(len(b))), b...) }

// constI32 is i32.const.
func constI32(v int64) []byte { return appendS64([]byte{opI32Const}, v) }

// fn adds a function of type t with locals (pairs of count and type) and instructions,
// without its end, and returns its number.
func (a *asm) fn(t int, locals []byte, body ...any) int {
	a.funcs = append(a.funcs, appendU32(nil, uint32(t)))
	b := cat(len(locals)/2, locals, cat(body...), opEnd)
	a.code = append(a.code, sized(b))
	return len(a.funcs) - 1
}

func (a *asm) typ(params, results []byte) int {
	a.types = append(a.types, cat(0x60, sized(params), sized(results)))
	return len(a.types) - 1
}

func (a *asm) export(name string, kind, index int) {
	a.exports = append(a.exports, cat(sized([]byte(name)), kind, appendU32(nil, uint32(index))))
}

func vector(list [][]byte) []byte {
	if len(list) == 0 {
		return nil
	}
	return append(appendU32(nil, uint32(len(list))), slices.Concat(list...)...)
}

func (a *asm) bytes() []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id      byte
		content []byte
	}{{0, a.custom}, {1, vector(a.types)}, {2, a.imports}, {3, vector(a.funcs)}, {4, a.table}, {5, a.memory}, {6, a.globals},
		{7, vector(a.exports)}, {8, a.start}, {9, a.elems}, {10, vector(a.code)}} {
		b = section(b, s.id, s.content)
	}
	return b
}

// areaAt is where the area of modules of newAsm is.
const areaAt = 1024

// newAsm returns a module with memory and og1_area; type 0 is () -> i32, 1 is (i32) -> i32.
func newAsm() *asm {
	a := &asm{memory: cat(1, 1, 2, 4)}
	a.typ(nil, []byte{i32})
	a.typ([]byte{i32}, []byte{i32})
	a.fn(0, nil, // og1_area: version 1, size 200,000, flags 0
		constI32(areaAt), constI32(1), "\x36\x02\x00",
		constI32(areaAt+areaSize), constI32(areaData+order64K), "\x36\x02\x00",
		constI32(areaAt))
	a.export("og1_area", 0, 0)
	a.export("memory", 2, 0)
	return a
}

const order64K = 64 << 10

// entry makes a module whose entry point is these instructions.
func entry(kind Kind, locals []byte, body ...any) []byte {
	a := newAsm()
	a.export(kind.entryPoint(), 0, a.fn(0, locals, body...))
	return a.bytes()
}
