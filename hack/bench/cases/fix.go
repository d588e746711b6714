package cases

// Systems that speak FIX. They are measured where a case asks for them only.
const (
	// GridFIX is the grid behind an order-gateway, by FIX sessions.
	GridFIX = "grid-fix"
	// FIXFloor is the acceptor of order-gateway without a grid behind it: it keeps sessions in memory, and reports an
	// order when it has read it.
	FIXFloor = "floor-fix"
	// QuickFIXJ and QuickFIX are acceptors of others, which keep sessions in memory, and replicate nothing.
	QuickFIXJ = "quickfixj"
	QuickFIX  = "quickfix"
)

var speaking = []string{GridFIX, FIXFloor, QuickFIXJ, QuickFIX}

// FIX are the cases that show what FIX sessions cost orders, beside the grid's own client, and acceptors that replicate
// nothing. On request only: CASES=fix.
func FIX() []Case { return besides("fix", append([]string{Grid}, speaking...)...) }
