package machine

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Code runs the modules of functions of kind Post. Its methods are called by one goroutine.
type Code interface {
	// Start begins to load a function, which may take long; Load waits for it and returns
	// why it cannot be loaded. A function that was loaded is loaded at once.
	Start(f *order.Function, module []byte)
	Load(f *order.Function, module []byte) error
	// Loaded reports whether Load would return nil at once.
	Loaded(f *order.Function) bool
	// New returns a function that was loaded, with the state that it begins with.
	New(f *order.Function) (Function, error)
}

// Function is a function with its state. What it does depends on that and on what it is
// called with.
type Function interface {
	// Call returns the record of an order, nil for none, valid until the next call, and 0,
	// or the number of the fault by which it has none.
	Call(seq uint64, timeNs int64, message []byte) (record []byte, fault uint8)
	Used() int64 // fuel of the last call
	AppendState(dst []byte) []byte
	Restore(state []byte) error
	Digest() uint64
}

// Functions is the part of a partition whose log has functions: each order that is stored
// is given to those in force, and again when it is freed. It is nil before the first entry
// of kind functions.
type Functions struct {
	code     Code
	inForce  []inForce
	offered  []order.Function // those that are to follow
	offering bool
	modules  []functionModule // of both
	calls    uint64           // of functions, with and without a record
	chain    uint64           // hash of all records
	out      []Record         // of the last entry
	bytes    []byte           // of out
	version  uint64           // changes of functions
	cut      []byte           // text of a snapshot, see functions_snapshot.go
	expected uint64           // size of the text that a restore gets
}

type inForce struct {
	order.Function
	run    Function
	digest uint64 // of its state, if called is false
	called bool   // since digest
	counts FunctionCounts
}

// FunctionCounts are of the calls of a function since this process has the state. They are
// no part of it.
type FunctionCounts struct {
	Records, None uint64
	Failed        [5]uint64 // by fault
	Fuel          uint64
}

// Counts calls do for each function in force. f may be nil.
func (f *Functions) Counts(do func(*order.Function, *FunctionCounts)) {
	if f != nil {
		for i := range f.inForce {
			do(&f.inForce[i].Function, &f.inForce[i].counts)
		}
	}
}

// Add adds the counts of another state.
func (c *FunctionCounts) Add(o *FunctionCounts) {
	c.Records += o.Records
	c.None += o.None
	c.Fuel += o.Fuel
	for i, n := range o.Failed {
		c.Failed[i] += n
	}
}

func (c *FunctionCounts) add(record []byte, fault uint8, fuel int64) {
	c.Fuel += uint64(fuel)
	switch {
	case fault != 0:
		c.Failed[fault]++
	case record == nil:
		c.None++
	default:
		c.Records++
	}
}

type functionModule struct {
	sha256 [sha256.Size]byte
	size   int
	bytes  []byte // those that are here
}

func (m *functionModule) complete() bool { return len(m.bytes) == m.size && m.size > 0 }

// Record is what a function made of an order.
type Record struct {
	Function string
	Fault    uint8  // 0, or why there is no record
	Bytes    []byte // valid until the next entry
}

// Run gives the machine, after Begin, what runs functions of the log.
func (m *Machine) Run(c Code) { m.code = c }

// InForce returns the functions that are called.
func (f *Functions) InForce() (list []order.Function) {
	if f != nil {
		for i := range f.inForce {
			list = append(list, f.inForce[i].Function)
		}
	}
	return list
}

// Are reports whether these functions are in force. f may be nil.
func (f *Functions) Are(list []order.Function) bool {
	if f == nil {
		return len(list) == 0
	}
	return slices.EqualFunc(f.inForce, list, func(a inForce, b order.Function) bool { return a.Function == b })
}

// Offered returns the functions that are to follow those in force, and whether there is an
// offer.
func (f *Functions) Offered() ([]order.Function, bool) {
	if f == nil {
		return nil, false
	}
	return f.offered, f.offering
}

// Missing returns the first module of the offer that is not complete, and how many bytes of
// it there are; false if all are.
func (f *Functions) Missing() (sum [sha256.Size]byte, have int, missing bool) {
	for i := range f.offered {
		if m := f.module(f.offered[i].SHA256); m == nil || !m.complete() {
			if m != nil {
				have = len(m.bytes)
			}
			return f.offered[i].SHA256, have, true
		}
	}
	return sum, 0, false
}

// Loaded reports whether every function of the offer is loaded here.
func (f *Functions) Loaded() bool {
	for i := range f.offered {
		if !f.code.Loaded(&f.offered[i]) {
			return false
		}
	}
	return true
}

// Records returns what the functions made of the last entry.
func (f *Functions) Records() []Record { return f.out }

// Version changes with the functions in force and the offer.
func (f *Functions) Version() uint64 {
	if f == nil {
		return 0
	}
	return f.version
}

func (f *Functions) module(sum [sha256.Size]byte) *functionModule {
	for i := range f.modules {
		if f.modules[i].sha256 == sum {
			return &f.modules[i]
		}
	}
	return nil
}

// checkFunctions rejects a change that no primary makes, and one that cannot be followed
// here: then this copy stays behind, and is none.
func (m *Machine) checkFunctions(e *order.Entry, payload []byte) error {
	c, err := order.ParseFunctionsChange(payload)
	if err != nil {
		return fmt.Errorf("entry %d: %w", e.Seq, err)
	}
	f := m.Functions
	switch {
	case m.code == nil:
		return fmt.Errorf("entry %d: kind is %s, allowed: where functions can run", e.Seq, e.Kind)
	case c.Op == order.FunctionsOffer:
		return nil
	case f == nil || !f.offering:
		return fmt.Errorf("entry %d: functions op is %d, allowed: after an offer", e.Seq, c.Op)
	case c.Op == order.FunctionsPiece:
		return f.checkPiece(e.Seq, &c)
	}
	if sum, have, missing := f.Missing(); missing {
		return fmt.Errorf("entry %d: functions begin with %d bytes of module %x, allowed: all of each", e.Seq, have, sum)
	}
	for i := range f.offered {
		if err := f.code.Load(&f.offered[i], f.module(f.offered[i].SHA256).bytes); err != nil {
			return fmt.Errorf("entry %d: function %s cannot be loaded here: %w", e.Seq, f.offered[i].Name, err)
		}
	}
	return nil
}

func (f *Functions) checkPiece(seq uint64, c *order.FunctionsChange) error {
	sum, have, missing := f.Missing()
	if !missing || sum != c.SHA256 || uint32(have) != c.Offset {
		return fmt.Errorf("entry %d: piece at %d of module %x, allowed: at %d of %x, the next of the offer", seq, c.Offset, c.SHA256, have, sum)
	}
	m := f.module(sum)
	if m != nil && m.size != int(c.Size) {
		return fmt.Errorf("entry %d: module %x has %d bytes, allowed: %d, as its first piece has", seq, sum, c.Size, m.size)
	}
	if have+len(c.Piece) < int(c.Size) {
		return nil
	}
	h := sha256.New()
	if m != nil {
		h.Write(m.bytes)
	}
	h.Write(c.Piece)
	if got := [sha256.Size]byte(h.Sum(nil)); got != sum {
		return fmt.Errorf("entry %d: module %x has SHA-256 %x, allowed: its own", seq, sum, got)
	}
	return nil
}

// applyFunctions applies an entry of kind functions.
func (m *Machine) applyFunctions(e *order.Entry, payload []byte) {
	c, _ := order.ParseFunctionsChange(payload) // Check parsed it
	if m.Functions == nil {
		m.Functions = &Functions{code: m.code}
	}
	f := m.Functions
	f.version++
	f.cut = nil
	switch c.Op {
	case order.FunctionsOffer:
		f.offered, f.offering = c.Offer, true
		f.startLoading(nil)
	case order.FunctionsPiece:
		p := f.module(c.SHA256)
		if p == nil {
			f.modules = append(f.modules, functionModule{sha256: c.SHA256, size: int(c.Size)})
			p = &f.modules[len(f.modules)-1]
		}
		if p.bytes = append(p.bytes[:len(p.bytes):len(p.bytes)], c.Piece...); p.complete() {
			f.startLoading(&c.SHA256)
		}
	case order.FunctionsBegin:
		f.begin(e.Seq)
	}
	f.dropModules()
}

// startLoading loads what the offer has of this module, or of those that are here.
func (f *Functions) startLoading(sum *[sha256.Size]byte) {
	for i := range f.offered {
		o := &f.offered[i]
		if m := f.module(o.SHA256); m != nil && m.complete() && (sum == nil || *sum == o.SHA256) {
			f.code.Start(o, m.bytes)
		}
	}
}

// begin puts the offer in force. A function that was in force as it is keeps its state.
func (f *Functions) begin(seq uint64) {
	var list []inForce
	for i := range f.offered {
		at := slices.IndexFunc(f.inForce, func(o inForce) bool { return o.Function == f.offered[i] })
		if at >= 0 && !mutant(mutFunctionsForget) {
			list = append(list, f.inForce[at])
			continue
		}
		run, err := f.code.New(&f.offered[i])
		if err != nil { // memory: a copy that cannot run what the others can is none
			panic(fmt.Sprintf("entry %d: function %s: %v", seq, f.offered[i].Name, err))
		}
		list = append(list, inForce{Function: f.offered[i], run: run, called: true})
	}
	f.inForce, f.offered, f.offering = list, nil, false
}

// dropModules forgets modules that no function in force or offered is of.
func (f *Functions) dropModules() {
	f.modules = slices.DeleteFunc(f.modules, func(m functionModule) bool {
		return !slices.ContainsFunc(f.inForce, func(o inForce) bool { return o.SHA256 == m.sha256 }) &&
			!slices.ContainsFunc(f.offered, func(o order.Function) bool { return o.SHA256 == m.sha256 })
	})
}

// call gives an order to the functions in force.
func (f *Functions) call(e *order.Entry, payload []byte) {
	f.out, f.bytes, f.cut = f.out[:0], f.bytes[:0], nil
	if !e.Kind.IsOrder() {
		return
	}
	if e.Kind == order.KindExecute {
		payload = payload[order.InstructionSize:]
	}
	for i := range f.inForce {
		o := &f.inForce[i]
		record, fault := o.run.Call(e.Seq, e.TimeNs, payload)
		o.called = true
		o.counts.add(record, fault, o.run.Used())
		f.calls++
		f.chain = mix(f.chain, uint64(i)<<8|uint64(fault), xxhash.Sum64(record))
		if record == nil && fault == 0 {
			continue
		}
		from := len(f.bytes)
		f.bytes = append(f.bytes, record...)
		f.out = append(f.out, Record{Function: o.Name, Fault: fault, Bytes: f.bytes[from:len(f.bytes):len(f.bytes)]})
	}
}

// Skip is for mutants: the next order is not given to the functions.
func (m *Machine) Skip(skip bool) { m.skip = skip }

// digest is added to that of the machine.
func (f *Functions) digest(fresh bool) uint64 {
	if f == nil {
		return 0
	}
	d := mix(f.calls, f.chain, f.version<<1|uint64(b2u(f.offering)))
	for i := range f.inForce {
		o := &f.inForce[i]
		if fresh || o.called {
			o.digest, o.called = o.run.Digest(), false
		}
		d += mix(o.digest, sumOf(&o.Function), 10+uint64(i))
	}
	for i := range f.offered {
		d += mix(sumOf(&f.offered[i]), 0, 32+uint64(i))
	}
	for i := range f.modules {
		m := &f.modules[i]
		d += mix(uint64(len(m.bytes)), uint64(m.size), le.Uint64(m.sha256[:]))
	}
	return d
}

// sumOf hashes a definition.
func sumOf(f *order.Function) uint64 {
	var room [512]byte
	return xxhash.Sum64(order.AppendFunctions(room[:0], []order.Function{*f}))
}

func (f *Functions) clone() *Functions {
	if f == nil {
		return nil
	}
	c := &Functions{code: f.code}
	if err := c.restore(f.appendTo(nil)); err != nil {
		panic("functions: their own snapshot: " + err.Error())
	}
	if mutant(mutFunctionsCloneFresh) {
		for i := range c.inForce {
			c.inForce[i].run, _ = c.code.New(&c.inForce[i].Function)
		}
	}
	return c
}
