package function

import "slices"

func (m *module) readGlobals(r *reader) {
	for n := r.count("globals", maxGlobals); n > 0 && r.err == nil; n-- {
		from := r.pos
		g := global{valueType: r.byte()}
		r.checkValueType(g.valueType)
		switch b := r.byte(); b {
		case 0:
		case 1:
			g.mutable = true
		default:
			r.fail("global: mutability %#02x, allowed are 0 and 1", b)
		}
		r.constant()
		if r.err == nil {
			g.raw = r.buf[from:r.pos]
		}
		m.globals = append(m.globals, g)
	}
}

// constant passes an expression of one constant.
func (r *reader) constant() {
	switch op := r.byte(); op {
	case opI32Const:
		r.skipSigned(5)
	case opI64Const:
		r.skipSigned(10)
	case 0x43:
		r.take(4)
	case 0x44:
		r.take(8)
	default:
		r.fail("constant expression with instruction %#02x, only a constant is allowed", op)
	}
	if end := r.byte(); end != opEnd && r.err == nil {
		r.fail("constant expression goes on with %#02x, only a constant is allowed", end)
	}
}

func (m *module) readExports(r *reader) {
	for n := r.count("exports", maxExports); n > 0 && r.err == nil; n-- {
		size := r.count("bytes of an export's name", maxName)
		name := string(r.take(uint32(size)))
		e := export{name: name, kind: r.byte(), index: r.u32()}
		if slices.ContainsFunc(m.exports, func(o export) bool { return o.name == name }) {
			r.fail("export %q is there twice", name)
		}
		m.exports = append(m.exports, e)
	}
}

func (m *module) readElements(r *reader) {
	for n := r.count("element segments", maxSegments); n > 0 && r.err == nil; n-- {
		if kind := r.u32(); kind != 0 {
			r.fail("element segment of kind %d, only active ones of functions (0) are allowed", kind)
			return
		}
		r.constant()
		for k := r.count("functions of an element segment", maxTable); k > 0 && r.err == nil; k-- {
			m.indirect = append(m.indirect, r.u32())
		}
		if len(m.indirect) > 4*maxTable {
			r.fail("element segments have more than %d functions", 4*maxTable)
		}
	}
	slices.Sort(m.indirect)
	m.indirect = slices.Compact(m.indirect)
}

func (m *module) readCode(r *reader) {
	for n := r.count("function bodies", maxFuncs); n > 0 && r.err == nil; n-- {
		size := r.count("bytes of a function", maxBody)
		raw := r.take(uint32(size))
		m.code = append(m.code, body{raw: raw, offset: r.base + r.pos - len(raw)})
	}
}

func (m *module) readData(r *reader) {
	for n := r.count("data segments", maxSegments); n > 0 && r.err == nil; n-- {
		if kind := r.u32(); kind != 0 {
			r.fail("data segment of kind %d, only active ones of memory 0 (0) are allowed", kind)
			return
		}
		r.constant()
		r.take(r.u32())
	}
}

// checkIndexes holds what the rewritten module could hide: indexes that point nowhere in
// the module as it came might point at what is added.
func (m *module) checkIndexes() error {
	for i, t := range m.funcs {
		if int(t) >= len(m.types) {
			return refuse(-1, "function %d has type %d of %d", i, t, len(m.types))
		}
	}
	for _, f := range m.indirect {
		if int(f) >= len(m.funcs) {
			return refuse(-1, "an element segment names function %d of %d", f, len(m.funcs))
		}
	}
	counts := [...]int{len(m.funcs), 0, 1, len(m.globals)}
	if m.table != nil {
		counts[1] = 1
	}
	for _, e := range m.exports {
		if int(e.kind) >= len(counts) || int(e.index) >= counts[e.kind] {
			return refuse(-1, "export %q is of kind %d, index %d, which is not in the module", clip([]byte(e.name)), e.kind, e.index)
		}
	}
	return nil
}

// typeOf returns the type of a function.
func (m *module) typeOf(f uint32) funcType { return m.types[m.funcs[f]] }

// exported returns the function of that name, and whether there is one.
func (m *module) exported(name string) (uint32, bool) {
	for _, e := range m.exports {
		if e.name == name && e.kind == 0 {
			return e.index, true
		}
	}
	return 0, false
}
