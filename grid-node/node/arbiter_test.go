package node

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// A change whose answer did not come may have been made, or may be yet. The replica
// forgets one that was refused and repeats one that met a conflict on another version,
// so whatever is not the arbiter's own word about this very change is unknown.
func TestOutcomeOfAChange(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want replica.Outcome
	}{
		"done":             {nil, replica.OutcomeOK},
		"conflict":         {fmt.Errorf("%w: version 4", arbiter.ErrConflict), replica.OutcomeConflict},
		"refused":          {arbiter.Refused("epoch 4 does not follow 2"), replica.OutcomeRefused},
		"no such record":   {fmt.Errorf("%w: s0p0", arbiter.ErrNotFound), replica.OutcomeRefused},
		"timed out":        {fmt.Errorf("%w: %w", arbiter.ErrUnknown, context.DeadlineExceeded), replica.OutcomeUnknown},
		"timed out, bare":  {context.DeadlineExceeded, replica.OutcomeUnknown},
		"given up":         {fmt.Errorf("put: %w", context.Canceled), replica.OutcomeUnknown},
		"connection lost":  {fmt.Errorf("%w: %w", arbiter.ErrUnknown, io.ErrUnexpectedEOF), replica.OutcomeUnknown},
		"something unseen": {fmt.Errorf("the API server is on fire"), replica.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(c.err); got != c.want {
				t.Errorf("%v is outcome %d, want %d", c.err, got, c.want)
			}
		})
	}
}
