package function

import "fmt"

// Names of exports that the rewritten module has for this package. Exports of the module
// that came are dropped but for its entry points, so that none can be mistaken for these.
const (
	exportFuel   = "fuel"
	exportStack  = "stack"
	exportMemory = "memory"
)

func exportGlobal(i int) string { return fmt.Sprintf("g%d", i) }

// rewritten is a module with its meter.
type rewritten struct {
	bin       []byte
	mutable   []int // globals that are part of its state
	recursive bool  // counts its depth
	entries   []string
}

// rewrite checks all functions of a module for a kind and returns it with its meter.
func rewrite(m *module, kind Kind, opts *Options) (*rewritten, error) {
	s := &scanner{m: m, floats: kind != Post}
	if err := s.types(); err != nil {
		return nil, err
	}
	if m.memory.low > opts.Pages {
		return nil, refuse(-1, "%d pages of memory at the start, %d are granted", m.memory.low, opts.Pages)
	}
	m.memory.high = min(m.memory.high, opts.Pages)
	plans, flow := make([]*plan, len(m.code)), 0
	for f := range m.code {
		p, err := s.scan(f)
		if err != nil {
			return nil, err
		}
		plans[f] = p
		if flow += p.values * p.labels; flow > maxFlowAll {
			return nil, refuse(-1, "functions have more than %d locals times blocks and branches together; compiling them takes too long", maxFlowAll)
		}
	}
	g, err := analyse(m, plans)
	if err != nil {
		return nil, err
	}
	w := &meter{m: m, g: g, fuel: uint32(len(m.globals)), stack: uint32(len(m.globals) + 1)}
	out := &rewritten{}
	for _, loops := range g.loops {
		out.recursive = out.recursive || loops
	}
	return out, out.emit(m, w, kind)
}

// types refuses floating point in types and globals.
func (s *scanner) types() error {
	if s.floats {
		return nil
	}
	isFloat := func(t byte) bool { return t == typeF32 || t == typeF64 }
	for i, t := range s.m.types {
		for _, v := range append(append([]byte{}, t.params...), t.results...) {
			if isFloat(v) {
				return refuse(-1, "type %d has a floating-point value; what copies compute has to be the same, use integers", i)
			}
		}
	}
	for i, g := range s.m.globals {
		if isFloat(g.valueType) {
			return refuse(-1, "global %d is of floating point; what copies compute has to be the same, use integers", i)
		}
	}
	return nil
}

func section(dst []byte, id byte, content []byte) []byte {
	if len(content) == 0 {
		return dst
	}
	dst = appendU32(append(dst, id), uint32(len(content)))
	return append(dst, content...)
}

// emit writes the module: what is not code as it was, but for maxima, globals and exports.
func (o *rewritten) emit(m *module, w *meter, kind Kind) error {
	o.bin = append(make([]byte, 0, 3*MaxModule/16), "\x00asm\x01\x00\x00\x00"...)
	o.bin = section(o.bin, 1, m.typesRaw)
	o.bin = section(o.bin, 3, m.funcsRaw)
	if m.table != nil {
		o.bin = section(o.bin, 4, m.table.append([]byte{1, 0x70}))
	}
	o.bin = section(o.bin, 5, m.memory.append([]byte{1}))
	globals := appendU32(nil, uint32(len(m.globals)+2))
	for i, g := range m.globals {
		globals = append(globals, g.raw...)
		if g.mutable {
			o.mutable = append(o.mutable, i)
		}
	}
	globals = append(globals, typeI64, 1, opI64Const, 0, opEnd, typeI32, 1, opI32Const, 0, opEnd)
	o.bin = section(o.bin, 6, globals)
	exports, err := o.exports(m, w, kind)
	if err != nil {
		return err
	}
	o.bin = section(o.bin, 7, exports)
	o.bin = section(o.bin, 9, m.elemsRaw)
	code := appendU32(nil, uint32(len(m.code)))
	for f := range m.code {
		b := w.function(uint32(f))
		code = append(appendU32(code, uint32(len(b))), b...)
	}
	o.bin = section(o.bin, 10, code)
	o.bin = section(o.bin, 11, m.dataRaw)
	return nil
}

func (l *limits) append(dst []byte) []byte {
	return appendU32(appendU32(append(dst, 1), l.low), l.high)
}

// exports checks the entry points and writes the exports.
func (o *rewritten) exports(m *module, w *meter, kind Kind) ([]byte, error) {
	var list []byte
	count := uint32(0)
	add := func(name string, kind byte, index uint32) {
		list = append(appendU32(list, uint32(len(name))), name...)
		list = appendU32(append(list, kind), index)
		count++
	}
	for _, want := range []struct {
		name, params string
		needed       bool
	}{{kind.entryPoint(), "", true}, {"og1_area", "", true}, {"og1_configure", "\x7f", false}, {"_initialize", "", false}} {
		f, ok := m.exported(want.name)
		if !ok && want.needed {
			return nil, refuse(-1, "no export %q, which a %s function of version 1 has", want.name, kind)
		} else if !ok {
			continue
		}
		results := "\x7f"
		if want.name == "_initialize" {
			results = ""
		}
		if t := m.typeOf(f); string(t.params) != want.params || string(t.results) != results {
			return nil, refuse(-1, "export %q has parameters %#x and results %#x, expected are %#x and %#x (0x7f is i32)",
				want.name, t.params, t.results, want.params, results)
		}
		add(want.name, 0, f)
		o.entries = append(o.entries, want.name)
	}
	add(exportMemory, 2, 0)
	add(exportFuel, 3, w.fuel)
	add(exportStack, 3, w.stack)
	for _, i := range o.mutable {
		add(exportGlobal(i), 3, uint32(i))
	}
	return append(appendU32(nil, count), list...), nil
}
