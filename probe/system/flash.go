package system

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/match/flows"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// flash runs the flows of a public benchmark through the engine alone. Their hashes are of a million orders each, so that a
// quick run has the first two flows, and no shorter ones.
func flash(ctx context.Context, _ *published.Data, _ published.Scenario, o Options, r *Report) error {
	const orders = 1_000_000
	list := flows.Published
	if o.Mode == scenario.Quick {
		list = list[:2]
	}
	r.Columns = []string{"flow", "messages", "reports", "fills", "most orders", "messages/s", "SHA-256", "published"}
	r.Differences = append(r.Differences, "the engine alone in one thread of the probe, without a grid, FIX, logs or copies; the hashes are facts of the benchmark, the flows are made here by its parameters",
		"a rate is that of the engine, 256 messages at a time, without the reports' text and its hash; the benchmark publishes rates of other machines, which are not compared")
	for _, f := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		o.Say("%s", f.Name)
		messages := f.Messages(orders)
		h := sha256.New()
		got, err := flows.Run(messages, h)
		if err != nil {
			return err
		}
		sum := fmt.Sprintf("%x", h.Sum(nil))
		r.row(f.Name, len(messages), got.Lines, got.Fills, got.Most, fmt.Sprintf("%.0f", float64(len(messages))/got.Took.Seconds()), sum[:16], f.Sum[:16])
		if sum != f.Sum {
			r.judge(Wrong, "%s: SHA-256 %s, published %s", f.Name, sum, f.Sum)
		}
		if r.Control == "" {
			h.Reset()
			if _, err := flows.Run(messages[1:], h); err != nil {
				return err
			}
			other := fmt.Sprintf("%x", h.Sum(nil))
			r.Control = fmt.Sprintf("%s without its first order: SHA-256 %s, published %s", f.Name, other[:16], f.Sum[:16])
			if other == f.Sum {
				r.judge(Invalid, "the control has the published hash: it is not to be believed")
			}
		}
	}
	return nil
}
