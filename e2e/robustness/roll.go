package robustness

import (
	"context"

	"github.com/ordergrid/ordergrid/probe/clock"
)

// rollingUpdate replaces every pod of the grid; the outage is judged until the last
// is back in sync.
func rollingUpdate(ctx context.Context, e *Env, n int) error {
	ready, err := e.calmDown(ctx)
	if err != nil {
		return err
	}
	rows, err := e.table(ctx)
	if err != nil {
		return err
	}
	before := map[string]bool{}
	for _, r := range rows {
		for _, m := range r.Members {
			before[m.ID] = true
		}
	}
	rep := e.begin(n, ready, "rolling update of all pods", "", e.all())
	if err := e.inject(rep, func() error { return e.target.Roll(ctx) }); err != nil {
		return err
	}
	if err := until(ctx, 5*e.Patience, "the rolling update", func() (bool, string) { return e.target.Rolled(ctx) }); err != nil {
		return err
	}
	rep.To = clock.Now()
	if err := e.serviceBack(ctx, rep); err != nil {
		return err
	}
	return e.redundancyBack(ctx, rep, before)
}
