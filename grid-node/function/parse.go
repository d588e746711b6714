package function

// module is what parse found. Slices point into the module.
type module struct {
	types    []funcType
	typesRaw []byte // the sections' contents, copied as they are
	funcs    []uint32
	funcsRaw []byte
	table    *limits
	memory   *limits
	globals  []global
	exports  []export
	indirect []uint32 // functions that element segments name
	elemsRaw []byte
	code     []body
	dataRaw  []byte
}

type funcType struct{ params, results []byte }

type limits struct {
	low, high uint32
	bounded   bool
}

type global struct {
	valueType byte
	mutable   bool
	raw       []byte // with its initial value
}

type export struct {
	name  string
	kind  byte
	index uint32
}

type body struct {
	raw    []byte // declarations of locals and instructions
	offset int    // in the module
}

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export", "start",
	"element", "code", "data", "data count", "tag"}

// sectionOrder is the place of a section in the module: data count is before code.
var sectionOrder = [...]int{0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 11, 5}

// parse reads a module and applies every bound but those of instructions.
func parse(bin []byte) (*module, error) {
	if len(bin) > MaxModule {
		return nil, refuse(-1, "%d bytes, at most %d are allowed", len(bin), MaxModule)
	}
	if len(bin) < 8 || string(bin[:8]) != "\x00asm\x01\x00\x00\x00" {
		return nil, refuse(0, "not a WebAssembly module of version 1")
	}
	m, r, last := &module{}, &reader{buf: bin, pos: 8}, 0
	for !r.done() {
		at := r.pos
		id := r.byte()
		size := r.u32()
		content := r.take(size)
		if r.err != nil {
			return nil, r.err
		}
		if id == 0 {
			continue // names and the like are not kept
		}
		if int(id) >= len(sectionNames) {
			return nil, refuse(at, "section %d is unknown", id)
		}
		if sectionOrder[id] <= last {
			return nil, refuse(at, "section %q is repeated or out of order", sectionNames[id])
		}
		last = sectionOrder[id]
		s := &reader{buf: content, base: r.pos - len(content)}
		m.section(id, s)
		if s.err == nil && !s.done() {
			s.fail("%d bytes too many in section %q", len(s.buf)-s.pos, sectionNames[id])
		}
		if s.err != nil {
			return nil, s.err
		}
	}
	if len(m.code) != len(m.funcs) {
		return nil, refuse(-1, "%d functions have %d bodies", len(m.funcs), len(m.code))
	}
	if m.memory == nil {
		return nil, refuse(-1, "no memory; a module has one, exported as \"memory\"")
	}
	return m, m.checkIndexes()
}

func (m *module) section(id byte, r *reader) {
	switch id {
	case 1:
		m.typesRaw = r.buf
		m.readTypes(r)
	case 2:
		m.readImports(r)
	case 3:
		m.funcsRaw = r.buf
		for n := r.count("functions", maxFuncs); n > 0; n-- {
			m.funcs = append(m.funcs, r.u32())
		}
	case 4:
		m.readTable(r)
	case 5:
		if r.count("memories", 1) == 1 {
			m.memory = r.limits("memory", MaxPages)
		}
	case 6:
		m.readGlobals(r)
	case 7:
		m.readExports(r)
	case 8:
		r.fail("a start function is not allowed; initialise in og1_area, whose fuel is counted")
	case 9:
		m.elemsRaw = r.buf
		m.readElements(r)
	case 10:
		m.readCode(r)
	case 11:
		m.dataRaw = r.buf
		m.readData(r)
	case 12:
		r.u32() // the number of data segments; only memory.init needs it
	default:
		r.fail("section %q is not allowed", sectionNames[id])
	}
}

func (m *module) readTypes(r *reader) {
	for n := r.count("types", maxTypes); n > 0 && r.err == nil; n-- {
		if form := r.byte(); form != 0x60 {
			r.fail("type form %#02x, only functions (0x60) are allowed", form)
		}
		t := funcType{params: r.valueTypes("parameters", maxParams)}
		t.results = r.valueTypes("results", 1)
		m.types = append(m.types, t)
	}
}

func (r *reader) valueTypes(what string, limit int) []byte {
	list := r.take(uint32(r.count(what, limit)))
	for _, t := range list {
		r.checkValueType(t)
	}
	return list
}

func (r *reader) checkValueType(t byte) {
	if t < typeF64 || t > typeI32 {
		r.fail("value type %#02x, allowed are i32, i64, f32 and f64", t)
	}
}

// readImports refuses: what a function reads and writes is in its area.
func (m *module) readImports(r *reader) {
	n := r.u32()
	if n == 0 || r.err != nil {
		return
	}
	from := r.take(r.u32())
	name := r.take(r.u32())
	r.fail("%d imports, the first is %q of %q; a module imports nothing", n, clip(name), clip(from))
}

func clip(b []byte) string { return string(b[:min(len(b), 64)]) }

func (m *module) readTable(r *reader) {
	if r.count("tables", 1) == 0 {
		return
	}
	if t := r.byte(); t != 0x70 {
		r.fail("table of %#02x, only functions (0x70) are allowed", t)
	}
	m.table = r.limits("table", maxTable)
}

func (r *reader) limits(what string, most uint32) *limits {
	l := &limits{high: most}
	switch flags := r.byte(); flags {
	case 0:
		l.low = r.u32()
	case 1:
		l.low, l.high, l.bounded = r.u32(), r.u32(), true
		if l.high < l.low {
			r.fail("%s: maximum %d is below the minimum %d", what, l.high, l.low)
		}
	default:
		r.fail("%s: limits of kind %#02x (shared or 64 bits) are not allowed", what, flags)
	}
	if l.low > most {
		r.fail("%s: %d at the start, at most %d are allowed", what, l.low, most)
	}
	l.high = min(l.high, most)
	return l
}
