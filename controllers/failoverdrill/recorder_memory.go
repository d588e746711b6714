package failoverdrill

import (
	"time"

	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

const (
	// leastMemory of a recorder: a drill of one step may wait long for its grid.
	leastMemory = 512 << 20
	// around is the time before the first step and after the last, in which orders flow too.
	around = time.Minute
)

// recorderMemory is the default memory of a recorder, as request and as limit: its ledger cannot be recovered, so it
// must neither be evicted under memory pressure nor use memory of others. It has room for every order of the drill when
// each step takes its own times and a quarter of the time the grid has to be redundant again.
func recorderMemory(d *api.FailoverDrill, grid *api.OrderGrid, steps []plan.Step) (bytes int64) {
	orders := expectedOrders(d, steps)
	if grid.Spec.Matches() {
		orders *= recorder.OrdersOfMatching
	}
	if f := len(grid.Spec.Callbacks.Names(api.FunctionPost)); f > 0 {
		orders = recorder.ForRecords(orders, int(grid.Spec.Replicas), f)
	}
	return max(leastMemory, recorder.MemoryFor(orders, int(grid.Spec.Replicas)))
}

// expectedOrders is how many orders a drill creates if nothing takes much longer than usual.
func expectedOrders(d *api.FailoverDrill, steps []plan.Step) int64 {
	waits := time.Duration(len(steps)) * d.Spec.SteadyState.RedundantWithin.Duration / 4
	return seconds(leastTime(d, steps)+waits+around) * ordersPerSecond(d)
}

func ordersPerSecond(d *api.FailoverDrill) int64 {
	return int64(d.Spec.Traffic.Probes) * int64(ptr.Deref(d.Spec.Traffic.RatePerProbe, 0))
}
