// Package witness shows that a fault has hit: it compares what can be seen of the pods concerned before and while the
// fault is there, by other means than those of the injector. A drill in which a fault was not seen proves nothing.
package witness

import (
	"context"
	"encoding/json"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
)

// Witness looks at a fault.
type Witness interface {
	// Baseline looks before the fault is injected. An error means that there is nothing to compare with: do not inject.
	Baseline(ctx context.Context, f *inject.Fault) (Before, error)
	// Look compares with Before. It is polled, about once a second, from the injection until Seen or until the fault
	// is taken back; what has been seen once stays seen, the caller keeps it. An error means that one look failed.
	Look(ctx context.Context, f *inject.Fault, before Before) (Result, error)
}

// Before is what stood before the fault: a JSON object of at most MaxBefore bytes, to be kept with the step.
type Before = json.RawMessage

// MaxBefore is the most bytes a Before has.
const MaxBefore = 8 << 10

// Result of one look.
type Result struct {
	Seen bool
	// Message says what was looked at, what was seen, and what would count as seen.
	Message string
}
