package function

// meter writes functions that count fuel.
//
// Fuel is in a global between functions and in a local within one, where a compiler keeps
// it in a register. A function becomes
//
//	fuel = global - cost of its first stretch; if fuel < 0 { stop }
//	block: the function as it was, in which
//	    a loop and a long stretch begin with fuel -= cost (and a loop with the comparison),
//	    a call has global = fuel before it and fuel = global after it,
//	    a return leaves the block
//	global = fuel
//
// All labels stay as they were: the one of the function is the block's now.
type meter struct {
	m       *module
	g       *graph
	fuel    uint32 // globals
	stack   uint32
	out     []byte
	local   uint32 // fuel in this function
	operand uint32 // of an instruction that costs by it; during a recursive call what is left of the stack
}

// op appends an instruction with an index.
func (w *meter) op(code byte, index uint32) { w.out = appendU32(append(w.out, code), index) }

func (w *meter) i64(v int64) { w.out = appendS64(append(w.out, opI64Const), v) }

func (w *meter) i32(v int64) { w.out = appendS64(append(w.out, opI32Const), v) }

// stop appends: if what is on the stack is true, keep the fuel and stop.
func (w *meter) stop() {
	w.out = append(w.out, opIf, typeV)
	w.save()
	w.out = append(w.out, opUnreachable, opEnd)
}

func (w *meter) save() {
	w.op(opLocalGet, w.local)
	w.op(opGlobalSet, w.fuel)
}

func (w *meter) load() {
	w.op(opGlobalGet, w.fuel)
	w.op(opLocalSet, w.local)
}

// spent appends: the difference on the stack is the fuel; stop if it is negative.
func (w *meter) spent(check bool) {
	if !check {
		w.op(opLocalSet, w.local)
		return
	}
	w.op(opLocalTee, w.local)
	w.i64(0)
	w.out = append(w.out, opI64LtS)
	w.stop()
}

func (w *meter) pay(s *stretch) {
	w.op(opLocalGet, w.local)
	w.i64(s.cost)
	w.out = append(w.out, opI64Sub)
	w.spent(s.check)
}

// payOperand pays by the operand on top of the stack, and leaves it there.
func (w *meter) payOperand(in *instr) {
	w.op(opLocalTee, w.operand)
	w.op(opLocalGet, w.local)
	w.op(opLocalGet, w.operand)
	w.out = append(w.out, opI64ExtendU)
	if in.op == opMemoryGrow {
		w.i64(pageCost)
		w.out = append(w.out, opI64Mul)
	} else {
		w.i64(bytesPerShift)
		w.out = append(w.out, opI64ShrU)
	}
	w.out = append(w.out, opI64Sub)
	w.spent(true)
}

// call appends a call, with the budget of stack around it if it can be recursive.
func (w *meter) call(f uint32, in *instr, raw []byte) {
	w.save()
	weight := w.g.weight(f, in)
	if weight > 0 {
		w.op(opGlobalGet, w.stack)
		w.i32(weight)
		w.out = append(w.out, opI32Sub)
		w.op(opLocalTee, w.operand)
		w.op(opGlobalSet, w.stack)
		w.op(opLocalGet, w.operand)
		w.i32(0)
		w.out = append(w.out, opI32LtS)
		w.stop()
	}
	w.out = append(w.out, raw...)
	if weight > 0 { // a call that returns has put the global back to what it found
		w.op(opLocalGet, w.operand)
		w.i32(weight)
		w.out = append(w.out, opI32Add)
		w.op(opGlobalSet, w.stack)
	}
	w.load()
}

// function returns the rewritten body of a function that scan accepted.
func (w *meter) function(f uint32) []byte {
	p, raw := w.g.plans[f], w.m.code[f].raw
	w.out = make([]byte, 0, 2*len(raw)+64)
	w.declare(p, raw)
	w.load()
	next := 0
	r := &reader{buf: raw, pos: p.locals}
	w.due(p, &next, r.pos)
	result := byte(typeV)
	if t := w.m.typeOf(f); len(t.results) == 1 {
		result = t.results[0]
	}
	w.out = append(w.out, opBlock, result)
	depth := uint32(1)
	var in instr
	for !r.done() {
		r.next(&in)
		code := raw[in.start:in.end]
		switch {
		case in.op == opCall || in.op == opIndirect:
			w.call(f, &in, code)
		case in.op == opReturn:
			w.op(opBr, depth-1)
		case in.op == opMemoryGrow || in.op == opPrefix && in.sub >= subMemoryCopy:
			w.payOperand(&in)
			w.out = append(w.out, code...)
		default:
			w.out = append(w.out, code...)
		}
		if in.op == opBlock || in.op == opLoop || in.op == opIf {
			depth++
		} else if in.op == opEnd {
			depth--
		}
		w.due(p, &next, in.end)
	}
	w.save()
	w.out = append(w.out, opEnd)
	return w.out
}

// due pays for the stretches that begin here. They are in order of their places.
func (w *meter) due(p *plan, next *int, at int) {
	for ; *next < len(p.stretches) && p.stretches[*next].start <= at; *next++ {
		if s := &p.stretches[*next]; s.cost > 0 || s.check {
			w.pay(s)
		}
	}
}

// declare copies the declarations of locals and adds those of the meter.
func (w *meter) declare(p *plan, raw []byte) {
	r := &reader{buf: raw}
	groups := r.u32()
	w.local, w.operand = uint32(p.values), uint32(p.values+1)
	added := []byte{1, typeI64}
	if p.dynamic || w.g.loops[p.cycle] {
		added = append(added, 1, typeI32)
	}
	w.out = appendU32(w.out, groups+uint32(len(added)/2))
	w.out = append(w.out, raw[r.pos:p.locals]...)
	w.out = append(w.out, added...)
}
