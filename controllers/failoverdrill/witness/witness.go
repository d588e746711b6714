// Package witness shows that a fault has hit: it compares observations of the pods concerned before and during the
// fault, independently of the injector. A drill in which a fault was not seen proves nothing.
package witness

import (
	"context"
	"encoding/json"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
)

// Witness observes a fault.
type Witness interface {
	// Baseline observes before the fault is injected. An error means that there is nothing to compare with: do not
	// inject.
	Baseline(ctx context.Context, f *inject.Fault) (Before, error)
	// Look compares with Before. It is polled, about once a second, from the injection until Seen or until the recovery
	// of the fault; the caller keeps Seen. An error means that one observation failed.
	Look(ctx context.Context, f *inject.Fault, before Before) (Result, error)
}

// Before is the baseline: a JSON object of at most MaxBefore bytes, kept with the step.
type Before = json.RawMessage

// MaxBefore is the most bytes a Before has.
const MaxBefore = 8 << 10

// Result of one observation.
type Result struct {
	Seen bool
	// Message has what was observed, and what would count as seen.
	Message string
}
