package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Functions of users that the node calls.
type Functions struct {
	Pre []PreFunction // decide on orders before they are entries, in this order
	// Post are called by every copy for each order that is stored, in this order. The log
	// has which are called: a change is made once all nodes of the grid have been given it.
	Post []PostFunction
	// Compute are called by clients with keys of regions, on the primary.
	Compute []ComputeFunction
	// Stamp is a tag that is set in each order that they accept, to the beginning of the
	// digest of all of them; 0: none.
	Stamp uint32
}

// PreFunction is a WebAssembly module of kind Pre and what it is granted.
type PreFunction struct {
	Name    string // as of a reader: lowercase letters, digits and hyphens
	Module  []byte
	SHA256  [sha256.Size]byte // of Module; another one is refused
	Fuel    int64             // of a call; default 100,000
	Pages   uint32            // memory in pages of 64 KiB; default 16
	Tags    []uint32          // that it may set
	Config  []byte
	OnError function.OnError
}

// PostFunction is a WebAssembly module of kind Post and what it is granted.
type PostFunction struct {
	Name   string // as of a reader
	Module []byte
	SHA256 [sha256.Size]byte // of Module; another one is refused
	Fuel   int64             // of a call; default 100,000
	Pages  uint32            // memory in pages of 64 KiB; default 16
	Config []byte
}

// ComputeFunction is a WebAssembly module of kind Compute and what it is granted.
type ComputeFunction = PostFunction

// Bounds of a function that orders wait for: at most about a millisecond a call, and as
// little to put its memory back after a failed one.
const (
	maxPreFuel  = 1_000_000
	maxPrePages = 64
	maxPreTags  = 16
	pageBytes   = 64 << 10
	// codeBytes is what a compiled module takes, roughly, for each byte of it.
	codeBytes = 16
)

// functionMemory is what functions have of the memory for orders: their memory twice, as it
// is and as it is put back, and their code.
func (c *Config) functionMemory() (n int64) {
	if c.Functions == nil {
		return 0
	}
	for i := range c.Functions.Pre {
		f := &c.Functions.Pre[i]
		n += 2*pageBytes*int64(f.options().Pages) + codeBytes*int64(len(f.Module))
	}
	for i := range c.Functions.Post { // two states of each partition
		f := &c.Functions.Post[i]
		n += 2*pageBytes*int64(f.defined().Pages)*int64(max(c.Partitions, 1)) + codeBytes*int64(len(f.Module))
	}
	for i := range c.Functions.Compute {
		f := &c.Functions.Compute[i]
		n += 2*pageBytes*int64(computeOptions(f).Pages) + codeBytes*int64(len(f.Module))
	}
	n += mapMemory(c.Functions.Compute)
	if len(c.Functions.Post) > 0 {
		n += c.recordBytes() * int64(max(c.Partitions, 1))
	}
	return n
}

func (f *PreFunction) options() function.Options {
	o := function.Options{Fuel: f.Fuel, Pages: f.Pages, Tags: f.Tags, Config: f.Config}
	setDefault(&o.Fuel, 100_000)
	setDefault(&o.Pages, 16)
	return o
}

func (c *Config) checkFunctions() error {
	if c.Functions == nil {
		return nil
	}
	if !order.FunctionsBuilt {
		return errors.New("--function-pre, --function-post, --function-compute: functions, allowed: none in a program built with the tag nofunctions")
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("--function-pre: "+format, args...)) }
	if n := len(c.Functions.Pre); n == 0 && len(c.Functions.Post)+len(c.Functions.Compute) == 0 || n > function.MaxChain {
		bad("%d functions, allowed: 1..%d", n, function.MaxChain)
	}
	seen := map[string]bool{}
	for i := range c.Functions.Pre {
		f := &c.Functions.Pre[i]
		o := f.options()
		digest := sha256.Sum256(f.Module)
		switch {
		case !order.IsReaderName(f.Name) || seen[f.Name]:
			bad("name %q, allowed: 1..%d lowercase letters, digits and hyphens, each name once", f.Name, order.MaxReaderName)
		case digest != f.SHA256:
			bad("%s: the module has sha256 %x, allowed: %x; deploy the module that was named, or name the one that is deployed", f.Name, digest, f.SHA256)
		case o.Fuel < 1 || o.Fuel > maxPreFuel:
			bad("%s: fuel %d, allowed: 1..%d", f.Name, o.Fuel, maxPreFuel)
		case o.Pages > maxPrePages:
			bad("%s: memory of %d pages of 64 KiB, allowed: 1..%d", f.Name, o.Pages, maxPrePages)
		case len(f.Tags) > maxPreTags:
			bad("%s: %d tags, allowed: at most %d", f.Name, len(f.Tags), maxPreTags)
		}
		seen[f.Name] = true
	}
	errs = append(errs, c.Functions.checkPost()...)
	errs = append(errs, c.checkCompute()...)
	if most := planMemory(c.MemoryLimit, 1).orders / 2; c.functionMemory() > most {
		bad("functions take %d bytes, allowed: %d, half of what --memory-limit leaves to orders", c.functionMemory(), most)
	}
	return errors.Join(errs...)
}

// load compiles the modules: up to seconds, before the node serves.
func (fs *Functions) load(ctx context.Context) (*function.Chain, error) {
	var list []function.Callback
	for i := range fs.Pre {
		f := &fs.Pre[i]
		m, err := function.Load(ctx, f.Module, function.Pre, f.options())
		if err != nil {
			return nil, fmt.Errorf("--function-pre: %s: %w", f.Name, err)
		}
		list = append(list, function.Callback{Name: f.Name, Module: m, OnError: f.OnError})
	}
	c, err := function.NewChain(ctx, list, fs.Stamp)
	if err != nil {
		return nil, fmt.Errorf("--function-pre: %w", err)
	}
	return c, nil
}
