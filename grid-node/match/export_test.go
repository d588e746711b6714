package match

// Names for the tests that compare with grid-node/match/naive, which imports this package.

// Flow draws operations.
type Flow = flow

// FlowConfig is the engine's, FlowInstruments are its books.
var (
	FlowConfig      = flowConfig
	FlowInstruments = flowInstruments
	NewFlowEngine   = newFlowEngine
	Same            = same
)

// NewFlow draws by a function that returns one of 0..n-1.
func NewFlow(draw func(n int) int) *Flow { return &flow{draw: draw} }

// Op draws the next operation.
func (f *flow) Op() Op { return f.op() }

// Check compares what the engine maintains with what it holds.
func (e *Engine) Check() error { return e.check() }
