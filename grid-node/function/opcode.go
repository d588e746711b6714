package function

import (
	"fmt"
	"strings"
)

// Opcodes that are treated in some way.
const (
	opUnreachable = 0x00
	opBlock       = 0x02
	opLoop        = 0x03
	opIf          = 0x04
	opElse        = 0x05
	opEnd         = 0x0b
	opBr          = 0x0c
	opBrIf        = 0x0d
	opBrTable     = 0x0e
	opReturn      = 0x0f
	opCall        = 0x10
	opIndirect    = 0x11
	opLocalGet    = 0x20
	opLocalSet    = 0x21
	opLocalTee    = 0x22
	opGlobalGet   = 0x23
	opGlobalSet   = 0x24
	opMemoryGrow  = 0x40
	opI32Const    = 0x41
	opI64Const    = 0x42
	opI32LtS      = 0x48
	opI64LtS      = 0x53
	opI32Add      = 0x6a
	opI32Sub      = 0x6b
	opI64Sub      = 0x7d
	opI64Mul      = 0x7e
	opI64ShrU     = 0x88
	opI64ExtendU  = 0xad
	opPrefix      = 0xfc
	subMemoryCopy = 10
	subMemoryFill = 11
)

// Value types.
const (
	typeI32 = 0x7f
	typeI64 = 0x7e
	typeF32 = 0x7d
	typeF64 = 0x7c
	typeV   = 0x40 // of a block without result
)

// memoryNames are 0x28 to 0x3e.
var memoryNames = strings.Fields(`i32.load i64.load f32.load f64.load i32.load8_s i32.load8_u i32.load16_s i32.load16_u
i64.load8_s i64.load8_u i64.load16_s i64.load16_u i64.load32_s i64.load32_u
i32.store i64.store f32.store f64.store i32.store8 i32.store16 i64.store8 i64.store16 i64.store32`)

// plainNames are 0x45 to 0xc4: no immediate.
var plainNames = strings.Fields(`i32.eqz i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u
i64.eqz i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s i64.gt_u i64.le_s i64.le_u i64.ge_s i64.ge_u
f32.eq f32.ne f32.lt f32.gt f32.le f32.ge f64.eq f64.ne f64.lt f64.gt f64.le f64.ge
i32.clz i32.ctz i32.popcnt i32.add i32.sub i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u
i32.and i32.or i32.xor i32.shl i32.shr_s i32.shr_u i32.rotl i32.rotr
i64.clz i64.ctz i64.popcnt i64.add i64.sub i64.mul i64.div_s i64.div_u i64.rem_s i64.rem_u
i64.and i64.or i64.xor i64.shl i64.shr_s i64.shr_u i64.rotl i64.rotr
f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt f32.add f32.sub f32.mul f32.div f32.min f32.max f32.copysign
f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest f64.sqrt f64.add f64.sub f64.mul f64.div f64.min f64.max f64.copysign
i32.wrap_i64 i32.trunc_f32_s i32.trunc_f32_u i32.trunc_f64_s i32.trunc_f64_u
i64.extend_i32_s i64.extend_i32_u i64.trunc_f32_s i64.trunc_f32_u i64.trunc_f64_s i64.trunc_f64_u
f32.convert_i32_s f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u f32.demote_f64
f64.convert_i32_s f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u f64.promote_f32
i32.reinterpret_f32 i64.reinterpret_f64 f32.reinterpret_i32 f64.reinterpret_i64
i32.extend8_s i32.extend16_s i64.extend8_s i64.extend16_s i64.extend32_s`)

// prefixNames are 0xfc 0 to 17.
var prefixNames = strings.Fields(`i32.trunc_sat_f32_s i32.trunc_sat_f32_u i32.trunc_sat_f64_s i32.trunc_sat_f64_u
i64.trunc_sat_f32_s i64.trunc_sat_f32_u i64.trunc_sat_f64_s i64.trunc_sat_f64_u
memory.init data.drop memory.copy memory.fill table.init elem.drop table.copy table.grow table.size table.fill`)

// refusedNames are opcodes that no kind of function may have.
var refusedNames = map[byte]string{
	0x06: "try", 0x07: "catch", 0x08: "throw", 0x09: "rethrow", 0x0a: "throw_ref", 0x12: "return_call", 0x13: "return_call_indirect",
	0x14: "call_ref", 0x15: "return_call_ref", 0x18: "delegate", 0x19: "catch_all", 0x1c: "select with types", 0x1f: "try_table",
	0x25: "table.get", 0x26: "table.set", 0xd0: "ref.null", 0xd1: "ref.is_null", 0xd2: "ref.func", 0xd3: "ref.eq",
	0xd4: "ref.as_non_null", 0xd5: "br_on_null", 0xd6: "br_on_non_null", 0xfb: "an instruction of garbage collection",
	0xfd: "a vector instruction (SIMD)", 0xfe: "an atomic instruction (threads)",
}

// instr is a decoded instruction: where it is in the body, and its first two numbers.
type instr struct {
	op         byte
	sub        uint32 // after opPrefix
	a, b       uint32
	start, end int
	labels     []uint32 // of a br_table, the default last
}

// name is for messages.
func (in *instr) name() string {
	switch op := in.op; {
	case op >= 0x28 && op <= 0x3e:
		return memoryNames[op-0x28]
	case op >= 0x45 && op <= 0xc4:
		return plainNames[op-0x45]
	case op == 0x43:
		return "f32.const"
	case op == 0x44:
		return "f64.const"
	case op == opPrefix && in.sub < uint32(len(prefixNames)):
		return prefixNames[in.sub]
	case op == opPrefix:
		return fmt.Sprintf("0xfc %d", in.sub)
	case refusedNames[op] != "":
		return refusedNames[op]
	default:
		return fmt.Sprintf("%#02x", op)
	}
}

// floats are the opcodes with a floating-point operand or result.
var floats = func() (list [256]bool) {
	for op := range list {
		name := (&instr{op: byte(op)}).name()
		list[op] = strings.Contains(name, "f32") || strings.Contains(name, "f64")
	}
	list[opPrefix] = false
	return list
}()

// float reports whether the instruction has a floating-point operand or result.
func (in *instr) float() bool { return floats[in.op] || in.op == opPrefix && in.sub < 8 }

// next decodes one instruction.
func (r *reader) next(in *instr) {
	start := r.pos
	*in = instr{start: start, op: r.byte(), labels: in.labels[:0]}
	switch op := in.op; {
	case op <= 0x01 || op == opElse || op == opEnd || op == opReturn || op == 0x1a || op == 0x1b || op >= 0x45 && op <= 0xc4:
	case op == opBlock || op == opLoop || op == opIf:
		in.a = r.blockType()
	case op == opBr || op == opBrIf || op == opCall || op >= opLocalGet && op <= opGlobalSet:
		in.a = r.u32()
	case op == opBrTable:
		for n := r.count("branches of a br_table", maxBranches) + 1; n > 0 && r.err == nil; n-- {
			in.labels = append(in.labels, r.u32())
		}
	case op == opIndirect:
		in.a, in.b = r.u32(), r.u32()
	case op >= 0x28 && op <= 0x3e:
		in.a, in.b = r.u32(), r.u32()
		if in.a >= 64 { // bit 6: another memory
			r.fail("%s: alignment %d", in.name(), in.a)
		}
	case op == 0x3f || op == opMemoryGrow:
		r.zero(in)
	case op == opI32Const:
		r.skipSigned(5)
	case op == opI64Const:
		r.skipSigned(10)
	case op == 0x43:
		r.take(4)
	case op == 0x44:
		r.take(8)
	case op == opPrefix:
		r.prefixed(in)
	default:
		r.pos = in.start
		r.fail("instruction %s is not allowed", in.name())
	}
	in.end = r.pos
}

// zero reads the byte for another memory, which there is not.
func (r *reader) zero(in *instr) {
	if b := r.byte(); b != 0 {
		r.fail("instruction %#02x names memory %d, there is one", in.op, b)
	}
}

func (r *reader) prefixed(in *instr) {
	in.sub = r.u32()
	switch {
	case in.sub < 8: // trunc_sat
	case in.sub == subMemoryCopy:
		r.zero(in)
		r.zero(in)
	case in.sub == subMemoryFill:
		r.zero(in)
	default:
		r.pos = in.start
		r.fail("instruction %s is not allowed", in.name())
	}
}

// blockType reads the type of a block: no result or one. A type index would be several.
func (r *reader) blockType() uint32 {
	b := r.byte()
	if b != typeV && (b < typeF64 || b > typeI32) && r.err == nil {
		r.pos--
		r.fail("block type %#02x: a block has no parameters and at most one result of i32, i64, f32 or f64", b)
	}
	return uint32(b)
}
