package node

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// computeFunctions are what clients call with keys of regions, in all partitions that the
// node is primary of. Of the data loop.
type computeFunctions struct {
	*process
	list []computeFunction
	fuel int64 // of calls since spent was asked
	text []byte
	maps mapsOpen
}

type computeFunction struct {
	name   string
	module *function.Module
	inst   *function.Instance
	log    faultLog
	counts metrics.ComputeFunction
}

// computeOptions are what a module is granted.
func computeOptions(f *ComputeFunction) function.Options {
	o := function.Options{Fuel: f.Fuel, Pages: f.Pages, Config: f.Config}
	setDefault(&o.Fuel, 100_000)
	setDefault(&o.Pages, 16)
	return o
}

// checkCompute rejects what orders would wait for too long, as of functions of kind Pre.
func (c *Config) checkCompute() (errs []error) {
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("--function-compute: "+format, args...))
	}
	list := c.Functions.Compute
	if n := len(list); n > wire.MaxComputes {
		bad("%d functions, allowed: at most %d", n, wire.MaxComputes)
	}
	if len(list) > 0 && c.Regions == nil {
		bad("%d functions, allowed: none without --regions", len(list))
	}
	seen := map[string]bool{}
	for i := range list {
		f := &list[i]
		o, digest := computeOptions(f), sha256.Sum256(f.Module)
		switch {
		case !order.IsReaderName(f.Name) || seen[f.Name]:
			bad("name %q, allowed: 1..%d lowercase letters, digits and hyphens, each name once", f.Name, order.MaxReaderName)
		case digest != f.SHA256:
			bad("%s: the module has sha256 %x, allowed: %x; deploy the module that was named, or name the one that is deployed", f.Name, digest, f.SHA256)
		case o.Fuel < 1 || o.Fuel > maxPreFuel:
			bad("%s: fuel %d, allowed: 1..%d", f.Name, o.Fuel, maxPreFuel)
		case o.Pages > maxPrePages:
			bad("%s: memory of %d pages of 64 KiB, allowed: 1..%d", f.Name, o.Pages, maxPrePages)
		}
		seen[f.Name] = true
	}
	return errs
}

// newComputeFunctions compiles the modules; it returns nil where none are configured.
func newComputeFunctions(p *process) (*computeFunctions, error) {
	if p.cfg.Functions == nil || len(p.cfg.Functions.Compute) == 0 {
		return nil, nil
	}
	fs, ctx := &computeFunctions{process: p, maps: mapsOpen{ofClient: map[uint64]int{}, slots: make(chan struct{}, slotsBeside())}}, context.Background()
	for i := range p.cfg.Functions.Compute {
		f := &p.cfg.Functions.Compute[i]
		m, err := function.Load(ctx, f.Module, function.Compute, computeOptions(f))
		if err != nil {
			return nil, fmt.Errorf("--function-compute: %s: %w", f.Name, err)
		}
		inst, err := m.Instance(ctx)
		if err != nil {
			return nil, fmt.Errorf("--function-compute: %s: %w", f.Name, err)
		}
		sha := fmt.Sprintf("%x", m.Digest())
		fs.list = append(fs.list, computeFunction{name: f.Name, module: m, inst: inst, counts: metrics.ComputeFunction{Name: f.Name, SHA256: sha}})
		p.log.Info("function loaded", "function", f.Name, "sha256", sha, "kind", function.Compute.String())
	}
	return fs, nil
}

// close frees the modules' memory, once the loop has ended.
func (fs *computeFunctions) close() {
	if fs == nil {
		return
	}
	for i := range fs.list {
		_ = fs.list[i].inst.Close(context.Background()) // of memory only
		_ = fs.list[i].module.Close(context.Background())
	}
}

// Names implements replica.Computer.
func (fs *computeFunctions) Names() (names []string) {
	for i := range fs.list {
		names = append(names, fs.list[i].name)
	}
	return names
}

// Compute implements replica.Computer.
func (fs *computeFunctions) Compute(c *replica.Call) replica.Computed {
	if f := fs.find(c.Function); f != nil {
		return fs.call(f, c)
	}
	return replica.Computed{Kind: replica.CallUnknown}
}

// find returns a function by name, nil if there is none.
func (fs *computeFunctions) find(name []byte) *computeFunction {
	for i := range fs.list {
		if f := &fs.list[i]; f.name == string(name) {
			return f
		}
	}
	return nil
}

func (fs *computeFunctions) call(f *computeFunction, c *replica.Call) replica.Computed {
	r := f.inst.Invoke(context.Background(), &function.KeyCall{Region: c.Region, Key: c.Key, Args: c.Args, Value: c.Value, Version: c.Version, Time: c.NowNs})
	fs.fuel += f.inst.Used()
	f.counts.Fuel += uint64(f.inst.Used())
	switch {
	case r.Room != 0:
		f.counts.TooLarge++
		return replica.Computed{Kind: replica.CallTooLarge, Limit: uint64(r.Room)}
	case r.Fault != function.None:
		fs.fuel += faultWork + int64(f.inst.Bytes()/8)
		f.counts.Failed[r.Fault]++
		fs.failed(f, r.Fault, c.Key, f.inst.Err(r.Fault))
		fs.text = append(append(fs.text[:0], "function: "...), r.Fault.String()...)
		return replica.Computed{Kind: replica.CallFailed, Text: fs.text}
	case r.Code != 0:
		f.counts.Error++
		return replica.Computed{Kind: replica.CallFailed, Code: uint32(r.Code), Text: fs.printable(r.Out)}
	}
	f.counts.Decided++
	kind := [...]replica.CallKind{function.Keep: replica.CallKept, function.SetTo: replica.CallSet, function.Remove: replica.CallRemoved}[r.Action]
	return replica.Computed{Kind: kind, Value: r.Value, Reply: r.Out}
}

// faultWork is what a fault is counted as beside the fuel of the call, with one for 8 bytes of memory that is set back, as
// memory.copy takes: a call that traps at once has no fuel, and is the dearest for what it has.
const faultWork = 16_384

const maxFailText = 128 // bytes of what a function says of its error

// printable makes a text of a function fit for logs and terminals.
func (fs *computeFunctions) printable(out []byte) []byte {
	fs.text = appendPrintable(fs.text[:0], out)
	return fs.text
}

func appendPrintable(dst, out []byte) []byte {
	for _, c := range out[:min(len(out), maxFailText)] {
		if c < ' ' || c > '~' {
			c = '?'
		}
		dst = append(dst, c)
	}
	return dst
}

// failed logs a failed call, a line a second for each function.
func (fs *computeFunctions) failed(f *computeFunction, fault function.Fault, key []byte, detail error) {
	l, now := &f.log, fs.loop.Clock().Mono()
	if l.at != 0 && now-l.at < alarmInterval {
		l.skipped++
		return
	}
	fs.log.Warn("a function failed", "function", f.name, "key", fmt.Sprintf("%.64q", key), "fault", fault.String(),
		"detail", detail, "notLogged", l.skipped)
	l.at, l.skipped = now, 0
}

// spent returns the fuel of the calls since it was last asked: about an instruction each, and
// no less than a byte of an answer, in which the loop counts its work.
func (fs *computeFunctions) spent() int {
	if fs == nil {
		return 0
	}
	n := fs.fuel
	fs.fuel = 0
	return int(n)
}

// status is nil without functions.
func (fs *computeFunctions) status() (list []nodestatus.ComputeFunction) {
	if fs == nil {
		return nil
	}
	for i := range fs.list {
		n, o := &fs.list[i].counts, computeOptions(&fs.cfg.Functions.Compute[i])
		row := nodestatus.ComputeFunction{Name: n.Name, SHA256: n.SHA256, Fuel: o.Fuel, Pages: o.Pages, Decided: n.Decided, Errors: n.Error + n.TooLarge}
		for _, v := range n.Failed {
			row.Failed += v
		}
		list = append(list, row)
	}
	return list
}

// snapshot is for metrics.
func (fs *computeFunctions) snapshot() (list []metrics.ComputeFunction) {
	if fs == nil {
		return nil
	}
	for i := range fs.list {
		list = append(list, fs.list[i].counts)
	}
	return list
}
