package function

// stretch is code that runs at most once for each time its start is passed. It is paid for
// there. The first one of a function and of a loop also compare: fuel that has run out is
// noticed at the next call or the next round of a loop, at most one stretch late.
type stretch struct {
	start  int // in the body: what is paid is put before the instruction here
	parent int // the stretch before it
	cost   int64
	check  bool
}

// control is an open block. stretch is what goes on after its end: code after a block runs
// at most as often as the code before it.
type control struct {
	op      byte
	stretch int
}

// plan is what scan found in a function.
type plan struct {
	values     int // parameters and locals
	params     int
	locals     int // where declarations end and instructions begin
	stretches  []stretch
	calls      []uint32
	indirect   bool // calls by the table
	dynamic    bool // has instructions that cost by an operand
	labels     int  // blocks and branches: where a compiler joins values
	slots      int  // of stack that a frame may take
	cycle      int  // number of the strongly connected component of calls, -1 before it has one
	controlled []control
}

// scanner reads one function after another.
type scanner struct {
	m      *module
	floats bool // allowed
}

// scan reads a function, checks each instruction and splits it into stretches.
func (s *scanner) scan(f int) (*plan, error) {
	b, t := s.m.code[f], s.m.typeOf(uint32(f))
	r := &reader{buf: b.raw, base: b.offset}
	p := &plan{params: len(t.params), values: len(t.params), cycle: -1}
	s.locals(r, p)
	p.locals = r.pos
	p.stretches = []stretch{{start: r.pos, check: true}}
	p.controlled = append(p.controlled, control{op: opBlock})
	var in instr
	current, count := 0, 0
	for r.err == nil && len(p.controlled) > 0 {
		r.next(&in)
		if r.err != nil {
			break
		}
		s.check(r, p, &in)
		count++
		p.stretches[current].cost += cost(&in)
		current = p.follow(r, &in, current)
	}
	if r.err == nil && !r.done() {
		r.fail("function %d: instructions after its end", f)
	}
	if flow := p.values * p.labels; r.err == nil && flow > maxFlow {
		r.fail("function %d: %d parameters and locals times %d blocks and branches, at most %d are allowed; compiling it takes too long, split it",
			f, p.values, p.labels, maxFlow)
	}
	p.merge()
	p.slots = p.values + count
	return p, r.err
}

func (s *scanner) locals(r *reader, p *plan) {
	for n := r.count("groups of locals", maxLocals); n > 0 && r.err == nil; n-- {
		p.values += r.count("locals", maxLocals)
		t := r.byte()
		r.checkValueType(t)
		if !s.floats && (t == typeF32 || t == typeF64) {
			r.fail("a floating-point local; what copies compute has to be the same, use integers")
		}
		if p.values > maxLocals {
			r.fail("more than %d parameters and locals", maxLocals)
		}
	}
}

// check holds an instruction against the module as it came: an index beyond it could point
// at what the rewriting adds.
func (s *scanner) check(r *reader, p *plan, in *instr) {
	index, limit, what := int(in.a), 0, ""
	switch in.op {
	case opLocalGet, opLocalSet, opLocalTee:
		limit, what = p.values, "local"
	case opGlobalGet, opGlobalSet:
		limit, what = len(s.m.globals), "global"
	case opCall:
		limit, what = len(s.m.funcs), "function"
		p.calls = append(p.calls, in.a)
	case opIndirect:
		limit, what = len(s.m.types), "type"
		p.indirect = true
	case opBr, opBrIf:
		limit, what = len(p.controlled), "label"
	case opBrTable:
		for _, l := range in.labels {
			if int(l) >= len(p.controlled) {
				r.fail("label %d, there are %d", l, len(p.controlled))
			}
		}
	case opMemoryGrow:
		p.dynamic = true
	case opPrefix:
		p.dynamic = p.dynamic || in.sub >= subMemoryCopy
	}
	if what != "" && index >= limit {
		r.pos = in.start
		r.fail("%s %d, there are %d", what, index, limit)
	}
	if in.op >= opBlock && in.op <= opBrTable && in.op != opEnd {
		p.labels += 1 + len(in.labels)
	}
	if !s.floats && (in.float() || in.op >= opBlock && in.op <= opIf && (in.a == typeF32 || in.a == typeF64)) {
		r.pos = in.start
		r.fail("instruction %s: floating point is not allowed, what copies compute has to be the same; use integers", in.name())
	}
}

// cost is how many instructions one counts as. What marks places and does nothing is free.
func cost(in *instr) int64 {
	switch in.op {
	case 0x01, opBlock, opLoop, opElse, opEnd:
		return 0
	case opCall, opIndirect, opMemoryGrow:
		return callCost
	}
	return 1
}

// follow returns the stretch of the next instruction.
func (p *plan) follow(r *reader, in *instr, current int) int {
	switch in.op {
	case opBlock, opIf, opLoop:
		p.controlled = append(p.controlled, control{in.op, current})
		if len(p.controlled) > maxNesting {
			r.fail("blocks are nested deeper than %d", maxNesting)
		}
		if in.op != opBlock {
			return p.begin(in.end, current, in.op == opLoop)
		}
	case opElse:
		top := &p.controlled[len(p.controlled)-1]
		if top.op != opIf {
			r.fail("else without if")
		}
		top.op = opElse
		return p.begin(in.end, top.stretch, false)
	case opEnd:
		top := p.controlled[len(p.controlled)-1]
		p.controlled = p.controlled[:len(p.controlled)-1]
		return top.stretch
	case opBrIf:
		return p.begin(in.end, current, false)
	}
	return current
}

func (p *plan) begin(start, parent int, check bool) int {
	p.stretches = append(p.stretches, stretch{start: start, parent: parent, check: check})
	return len(p.stretches) - 1
}

// merge charges short stretches with the one before, so that straight code with many
// branches is not slowed down by its meter. A stretch comes after its parent in the list.
func (p *plan) merge() {
	for i := len(p.stretches) - 1; i > 0; i-- {
		if s := &p.stretches[i]; !s.check && s.cost < minForward {
			p.stretches[s.parent].cost += s.cost
			s.cost = 0
		}
	}
}
