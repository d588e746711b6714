package machine

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// The functions in a snapshot: one text, cut into slots between those of FIX sessions and
// those of sessions. Its size is in the head.

// hasFunctions in the counts of the head is set where the log has functions. Releases that
// do not know it refuse the head.
const hasFunctions = 1 << 59

// functionsSlot is how many bytes of the text a slot has.
const functionsSlot = 48 << 10

// maxFunctionsText bounds what another replica can make this one hold: modules, states and
// definitions of functions in force and offered.
const maxFunctionsText = 2*order.MaxFunctions*(order.MaxFunctionModule+order.MaxFunctionConfig+1<<10) + order.MaxFunctions*(order.MaxFunctionPages<<16+order.MaxFunctionPages<<6)

func functionsSlots(size uint64) uint32 { return uint32((size + functionsSlot - 1) / functionsSlot) }

// text returns the text of a state that does not change while parts of it are asked for, as
// a base does not. The next entry drops it.
func (f *Functions) text() []byte {
	if f == nil {
		return nil
	}
	if f.cut == nil {
		f.cut = f.appendTo(nil)
	}
	return f.cut
}

func (f *Functions) appendTo(dst []byte) []byte {
	dst = le.AppendUint64(le.AppendUint64(le.AppendUint64(dst, f.version), f.calls), f.chain)
	dst = append(dst, byte(b2u(f.offering)), byte(len(f.inForce)), byte(len(f.offered)), byte(len(f.modules)), 0, 0, 0, 0)
	for i := range f.inForce {
		dst = order.AppendFunctions(dst, []order.Function{f.inForce[i].Function})
	}
	dst = order.AppendFunctions(dst, f.offered)
	for i := range f.modules {
		m := &f.modules[i]
		dst = append(dst, m.sha256[:]...)
		dst = append(le.AppendUint32(le.AppendUint32(dst, uint32(m.size)), uint32(len(m.bytes))), m.bytes...)
	}
	for i := range f.inForce {
		at := len(dst)
		dst = f.inForce[i].run.AppendState(le.AppendUint32(dst, 0))
		le.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst
}

// restore sets a new part to what appendTo wrote. After an error it is not to be used.
func (f *Functions) restore(b []byte) error {
	if f.code == nil {
		return fmt.Errorf("functions cannot run here")
	}
	if len(b) < 32 {
		return fmt.Errorf("%d bytes, 32 or more are expected", len(b))
	}
	f.version, f.calls, f.chain = le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])
	counts := b[24:32]
	if counts[0] > 1 || counts[1] > order.MaxFunctions || counts[2] > order.MaxFunctions || counts[3] > 2*order.MaxFunctions || counts[0] == 0 && counts[2] > 0 || !bytes.Equal(counts[4:], make([]byte, 4)) {
		return fmt.Errorf("counts are %x, allowed: 0 or 1, then at most %d, %d and twice that, and zeros", counts, order.MaxFunctions, order.MaxFunctions)
	}
	f.offering = counts[0] == 1
	list, b, err := order.ParseFunctions(b[32:], int(counts[1]))
	if err != nil {
		return err
	}
	if f.offered, b, err = order.ParseFunctions(b, int(counts[2])); err != nil {
		return err
	}
	for range counts[3] {
		if b, err = f.restoreModule(b); err != nil {
			return err
		}
	}
	for i := range list {
		if b, err = f.restoreFunction(&list[i], b); err != nil {
			return fmt.Errorf("function %s: %w", list[i].Name, err)
		}
	}
	if len(b) != 0 {
		return fmt.Errorf("%d bytes behind the last state, allowed: none", len(b))
	}
	f.startLoading(nil)
	return nil
}

func (f *Functions) restoreModule(b []byte) ([]byte, error) {
	const fixed = sha256.Size + 8
	if len(b) < fixed {
		return nil, fmt.Errorf("module: %d bytes, %d or more are expected", len(b), fixed)
	}
	m := functionModule{sha256: [sha256.Size]byte(b), size: int(le.Uint32(b[sha256.Size:]))}
	have := int(le.Uint32(b[sha256.Size+4:]))
	b = b[fixed:]
	if m.size > order.MaxFunctionModule || have < 1 || have > m.size || have > len(b) || f.module(m.sha256) != nil {
		return nil, fmt.Errorf("module %x has %d of %d bytes, %d follow; allowed: once, at most %d", m.sha256, have, m.size, len(b), order.MaxFunctionModule)
	}
	m.bytes = bytes.Clone(b[:have])
	if m.complete() && sha256.Sum256(m.bytes) != m.sha256 {
		return nil, fmt.Errorf("module %x has another SHA-256", m.sha256)
	}
	f.modules = append(f.modules, m)
	return b[have:], nil
}

func (f *Functions) restoreFunction(def *order.Function, b []byte) ([]byte, error) {
	if len(b) < 4 || uint64(le.Uint32(b)) > uint64(len(b)-4) {
		return nil, fmt.Errorf("its state has more bytes than the %d that follow", len(b))
	}
	state, rest := b[4:4+le.Uint32(b)], b[4+le.Uint32(b):]
	m := f.module(def.SHA256)
	if m == nil || !m.complete() {
		return nil, fmt.Errorf("its module is not there")
	}
	if err := f.code.Load(def, m.bytes); err != nil {
		return nil, err
	}
	run, err := f.code.New(def)
	if err == nil && !mutant(mutFunctionsStateless) {
		err = run.Restore(state)
	}
	if err != nil {
		return nil, err
	}
	f.inForce = append(f.inForce, inForce{Function: *def, run: run, called: true})
	return rest, nil
}

// functionsHead reads what the head says of functions.
func (d *decoder) functionsHead(m *Machine, has bool) {
	if !has {
		return
	}
	size := d.u64("functions")
	if m.code == nil || size < 32 || size > maxFunctionsText {
		d.fail("functions", size, fmt.Sprintf("32..%d, where functions can run", maxFunctionsText))
		return
	}
	m.Functions = &Functions{code: m.code, expected: size}
}

// functionsSlots returns how many slots of functions there are while a restore goes on.
func (m *Machine) functionsSlots() uint32 {
	if m.Functions == nil {
		return 0
	}
	return functionsSlots(m.Functions.expected)
}

// functions reads a slot.
func (d *decoder) functions(f *Functions, n uint32) {
	size := min(f.expected-uint64(n)*functionsSlot, functionsSlot)
	if uint64(len(f.cut)) != uint64(n)*functionsSlot || size > uint64(len(d.b)) {
		d.fail("functions", uint64(n), "the slots of functions in order, each complete")
		return
	}
	f.cut = append(f.cut, d.b[:size]...)
	d.b = d.b[size:]
}

// restored ends a restore.
func (f *Functions) restored() *SnapshotError {
	if f == nil || f.expected == 0 {
		return nil
	}
	text := f.cut
	f.cut = nil
	if uint64(len(text)) != f.expected {
		return &SnapshotError{Field: "functions", Value: uint64(len(text)), Allowed: fmt.Sprint(f.expected, " bytes, as the head has")}
	}
	f.expected = 0
	if err := f.restore(text); err != nil {
		return &SnapshotError{Field: "functions", Value: uint64(len(text)), Allowed: err.Error()}
	}
	if mutant(mutFunctionsChainless) {
		f.chain = 0
	}
	return nil
}
