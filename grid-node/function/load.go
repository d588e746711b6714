package function

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Module is a loaded function. It is safe for concurrent use; Close it once no Instance is
// in use.
type Module struct {
	kind     Kind
	options  Options
	digest   [sha256.Size]byte
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	code     *rewritten
	payload  bool     // wants the message
	tags     []uint32 // whose values it wants
}

// Load checks a module, adds its meter and compiles it. The error is a *Refusal if the
// module is at fault. Loading takes up to seconds for large modules: not on the path of an
// order.
func Load(ctx context.Context, bin []byte, kind Kind, opts Options) (*Module, error) {
	if kind < Pre || kind > Compute {
		return nil, fmt.Errorf("kind %d of a function, allowed are Pre, Post and Compute", uint8(kind))
	}
	if opts.Pages == 0 {
		opts.Pages = defaultPages
	}
	if opts.Fuel == 0 {
		opts.Fuel = defaultFuel
	}
	if opts.Pages > MaxPages || opts.Fuel < 0 {
		return nil, fmt.Errorf("function with %d pages and fuel %d, allowed are 1 to %d pages and fuel of at least 1", opts.Pages, opts.Fuel, MaxPages)
	}
	parsed, err := parse(bin)
	if err != nil {
		return nil, err
	}
	code, err := rewrite(parsed, kind, &opts)
	if err != nil {
		return nil, err
	}
	m := &Module{kind: kind, options: opts, digest: sha256.Sum256(bin), code: code}
	m.runtime = wazero.NewRuntimeWithConfig(ctx, config(&opts))
	if m.compiled, err = m.runtime.CompileModule(ctx, code.bin); err != nil {
		err = refuse(-1, "it is not valid WebAssembly: %v", err)
	}
	if err == nil {
		err = m.describe(ctx)
	}
	if err != nil {
		_ = m.runtime.Close(ctx) // of memory only
		return nil, err
	}
	return m, nil
}

// config has no clock, no termination by context, and memory that never moves.
func config(opts *Options) wazero.RuntimeConfig {
	c := wazero.NewRuntimeConfig()
	if opts.Interpret {
		c = wazero.NewRuntimeConfigInterpreter()
	}
	features := api.CoreFeaturesV1 | api.CoreFeatureSignExtensionOps | api.CoreFeatureNonTrappingFloatToIntConversion |
		api.CoreFeatureBulkMemoryOperations
	return c.WithCoreFeatures(features).WithMemoryLimitPages(opts.Pages).WithMemoryCapacityFromMax(true).WithDebugInfoEnabled(false)
}

// describe asks a first instance what it wants.
func (m *Module) describe(ctx context.Context) error {
	i, err := m.start(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = i.Close(ctx) }() // of memory only
	area, err := i.bounds()
	if err == nil {
		err = m.wants(area)
	}
	if err != nil {
		return err
	}
	return i.configure(ctx)
}

func (m *Module) wants(area []byte) error {
	if v := le.Uint32(area[areaVersion:]); v != abiVersion {
		return refuse(-1, "its area has version %d, this node has %d", v, abiVersion)
	}
	flags, count := le.Uint32(area[areaFlags:]), le.Uint32(area[areaTagCount:])
	if flags&^wantPayload != 0 {
		return refuse(-1, "its area has flags %#x, allowed is 1 (payload)", flags)
	}
	if count > maxTags {
		return refuse(-1, "its area names %d tags, at most %d are allowed", count, maxTags)
	}
	m.payload = flags&wantPayload != 0 || m.kind == Compute
	for k := range count {
		m.tags = append(m.tags, le.Uint32(area[areaTagList+4*k:]))
	}
	if need := needed(m.payload, len(m.tags)); uint32(len(area)) < need {
		return refuse(-1, "its area has %d bytes, what it asks for takes %d", len(area), need)
	}
	return nil
}

// Digest is the SHA-256 of the module as it came.
func (m *Module) Digest() [sha256.Size]byte { return m.digest }

// Kind is what the module was loaded for.
func (m *Module) Kind() Kind { return m.kind }

// Asks is what the module asks for beside the fields that every function gets: the message,
// or tags.
func (m *Module) Asks() (message bool, tags []uint32) { return m.payload, slices.Clone(m.tags) }

// Close frees the code. No instance may be used after it.
func (m *Module) Close(ctx context.Context) error { return m.runtime.Close(ctx) }
