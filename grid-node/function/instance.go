package function

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Fault is why a call has no result.
type Fault uint8

// Faults. All but Trapped are found by this package.
const (
	None      Fault = iota
	OutOfFuel       // the fuel of the call is used up
	TooDeep         // calls are nested deeper than the budget of stack
	Trapped         // division by zero, access outside of memory, unreachable and the like
	BadResult       // a return value or an output that the interface does not have
	Faults          // how many there are
)

func (f Fault) String() string {
	return [...]string{"none", "out of fuel", "calls too deep", "trap", "bad result"}[f]
}

// Instance is a module with its memory. It is for one goroutine at a time.
type Instance struct {
	// What every call needs.
	area   []byte // nil until the first call, see view
	module *Module
	call   api.Function
	fuel   api.MutableGlobal
	stack  api.MutableGlobal
	result [1]uint64
	used   int64
	trap   error
	image  []byte // memory after loading, of kinds that are set back after a fault

	inst    api.Module
	memory  api.Memory
	at      uint32 // of the area
	locator *order.Locator
	decided Decision
	sets    []Set
	globals []api.MutableGlobal
	kept    []uint64 // their values before a call, without an image
	first   []uint64 // their values after loading, with an image
}

// Instance makes an instance: memory as the module has it at its start, area found,
// configured.
func (m *Module) Instance(ctx context.Context) (*Instance, error) {
	i, err := m.start(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := i.bounds(); err != nil {
		return nil, err
	}
	if err := i.configure(ctx); err != nil {
		return nil, err
	}
	if m.kind == Pre || m.kind == Compute {
		i.keepImage()
	}
	return i, nil
}

// start makes an instance and finds its area.
func (m *Module) start(ctx context.Context) (*Instance, error) {
	inst, err := m.runtime.InstantiateModule(ctx, m.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, refuse(-1, "it cannot be set up: %v", err)
	}
	i := &Instance{module: m, inst: inst, memory: inst.Memory(), call: inst.ExportedFunction(m.kind.entryPoint())}
	i.fuel = inst.ExportedGlobal(exportFuel).(api.MutableGlobal)
	i.stack = inst.ExportedGlobal(exportStack).(api.MutableGlobal)
	for _, g := range m.code.mutable {
		i.globals = append(i.globals, inst.ExportedGlobal(exportGlobal(g)).(api.MutableGlobal))
	}
	i.kept = make([]uint64, len(i.globals))
	if f := inst.ExportedFunction("_initialize"); f != nil {
		if fault := i.run(ctx, f, nil); fault != None {
			return nil, refuse(-1, "_initialize failed: %s", i.explain(fault))
		}
	}
	if fault := i.run(ctx, inst.ExportedFunction("og1_area"), i.result[:]); fault != None {
		return nil, refuse(-1, "og1_area failed: %s", i.explain(fault))
	}
	i.at = uint32(i.result[0])
	i.locator = order.NewLocator(append(append([]uint32{}, ownTags...), m.tags...)...)
	return i, nil
}

// bounds returns the area.
func (i *Instance) bounds() ([]byte, error) {
	size, ok := i.memory.ReadUint32Le(i.at + areaSize)
	if !ok || i.at+areaSize < i.at {
		return nil, refuse(-1, "its area is at %#x, outside of its memory of %d bytes", i.at, i.memory.Size())
	}
	if size < areaData || size > maxArea {
		return nil, refuse(-1, "its area has %d bytes, allowed are %d to %d", size, areaData, maxArea)
	}
	area, ok := i.memory.Read(i.at, size)
	if !ok {
		return nil, refuse(-1, "its area of %d bytes at %#x is outside of its memory of %d bytes", size, i.at, i.memory.Size())
	}
	return area[:size:size], nil
}

// configure gives a module what its administrator wrote for it.
func (i *Instance) configure(ctx context.Context) error {
	f, text := i.inst.ExportedFunction("og1_configure"), i.module.options.Config
	if f == nil {
		if len(text) > 0 {
			return refuse(-1, "it has a configuration of %d bytes and no og1_configure", len(text))
		}
		return nil
	}
	area, err := i.bounds()
	if err != nil {
		return err
	}
	if len(text) > len(area)-areaData {
		return refuse(-1, "a configuration of %d bytes, its area has room for %d", len(text), len(area)-areaData)
	}
	copy(area[areaData:], text)
	i.result[0] = uint64(len(text))
	if fault := i.run(ctx, f, i.result[:]); fault != None {
		return refuse(-1, "og1_configure failed: %s", i.explain(fault))
	}
	if code := int32(i.result[0]); code != 0 {
		return refuse(-1, "og1_configure refused the configuration with code %d", code)
	}
	return nil
}

// run calls a function with fuel and the budget of stack. A call that fails leaves globals,
// the pointer of the stack in memory among them, as they were; with an image reset sets them
// back, and all else.
func (i *Instance) run(ctx context.Context, f api.Function, stack []uint64) Fault {
	i.fuel.Set(uint64(i.module.options.Fuel))
	if i.module.code.recursive {
		i.stack.Set(stackSlots)
	}
	if i.image == nil {
		for k, g := range i.globals {
			i.kept[k] = g.Get()
		}
	}
	err := f.CallWithStack(ctx, stack)
	left := int64(i.fuel.Get())
	i.used = i.module.options.Fuel - max(left, 0)
	i.trap = err
	if err == nil && left >= 0 {
		return None
	}
	if i.image == nil {
		for k, g := range i.globals {
			g.Set(i.kept[k])
		}
	}
	switch {
	case left < 0:
		return OutOfFuel
	case i.module.code.recursive && int32(i.stack.Get()) < 0:
		return TooDeep
	}
	return Trapped
}

// explain describes a fault of the last call.
func (i *Instance) explain(f Fault) string {
	switch f {
	case OutOfFuel:
		return fmt.Sprintf("out of fuel, it has %d", i.module.options.Fuel)
	case Trapped:
		if i.trap != nil {
			return i.trap.Error()
		}
	}
	return f.String()
}

// Err describes the fault of the last call; nil after None. It is for logs: it allocates.
func (i *Instance) Err(f Fault) error {
	if f == None {
		return nil
	}
	return errors.New(i.explain(f))
}

// Used is the fuel of the last call.
func (i *Instance) Used() int64 { return i.used }

// Close frees the memory of the instance.
func (i *Instance) Close(ctx context.Context) error { return i.inst.Close(ctx) }
