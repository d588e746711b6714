package function

// Bounds of a module. They keep the time and memory of Load in proportion to a few hundred
// kilobytes, whatever a module announces.
const (
	MaxModule     = 1 << 20 // bytes, all sections
	MaxPages      = 1 << 10 // of 64 KiB, whatever Options ask for
	maxTypes      = 1 << 10
	maxParams     = 32
	maxFuncs      = 1 << 13
	maxGlobals    = 1 << 8
	maxExports    = 1 << 10
	maxName       = 1 << 8 // bytes of the name of an export
	maxTable      = 1 << 12
	maxSegments   = 1 << 12
	maxBody       = 1 << 17 // bytes of a function
	maxLocals     = 1 << 10
	maxNesting    = 1 << 8
	maxBranches   = 1 << 12 // of a br_table
	maxFlow       = 1 << 18 // parameters and locals of a function times its blocks and branches
	maxFlowAll    = 1 << 21 // of all functions together
	stackSlots    = 1 << 18 // budget of stack, in values of 8 bytes
	frameSlots    = 1 << 9  // what a frame takes apart from its values: so at most 512 frames
	defaultPages  = 16
	defaultFuel   = 100_000
	pageBytes     = 1 << 16
	minForward    = 12   // a stretch of fewer instructions is charged with the one before it
	callCost      = 8    // instructions that a call counts as
	pageCost      = 4096 // fuel of a page that memory grows by
	bytesPerShift = 3    // a bulk instruction costs 1 for 1<<3 bytes
)

// Kind is what a module is for.
type Kind uint8

// Kinds of functions.
const (
	Pre     Kind = iota + 1 // decides on an order, on the primary
	Post                    // derives a record of an entry, on every copy
	Compute                 // computes on bytes
)

func (k Kind) String() string {
	return [...]string{"Pre", "Post", "Compute"}[k-1]
}

// entryPoint is the export that is called.
func (k Kind) entryPoint() string {
	return [...]string{"og1_pre", "og1_post", "og1_compute"}[k-1]
}

// Options are what an administrator grants a module.
type Options struct {
	Pages  uint32   // most memory, in pages of 64 KiB; 0 is 16
	Fuel   int64    // of one call; 0 is 100,000
	Tags   []uint32 // tags that a Pre function may set
	Config []byte   // given to og1_configure once
	// Interpret runs the module without compiling it, as on machines without a compiler.
	Interpret bool
}
