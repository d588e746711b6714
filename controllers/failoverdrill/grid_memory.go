package failoverdrill

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/witness"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// Memories returns what grid nodes have for orders; nodes that do not answer are left out.
type Memories interface {
	Memory(ctx context.Context, pods []corev1.Pod) map[string]witness.Memory
}

// orderBytes is the memory of an order of a drill in each grid node of its shard, at most.
const orderBytes = fixorder.Size + store.PerOrder

// memoryCheck compares the orders of a drill with the memory left in its grid. It reports nothing where that is
// unknown: the share of several shards depends on where the recorder finds their partitions, and a grid that frees
// downstream orders gains memory while the drill runs.
func (c *preflight) memoryCheck(ctx context.Context, o *observation, pods []corev1.Pod, asked Memories) {
	if asked == nil || o.grid.Spec.Shards > 1 || o.grid.Spec.Retention.Policy == api.RetentionFreeDownstream {
		return
	}
	memory := asked.Memory(ctx, pods)
	pod, left := "", int64(0)
	for _, name := range slices.Sorted(maps.Keys(memory)) {
		if m := memory[name]; m.Limit > 0 && (pod == "" || m.Limit-m.Used < left) {
			pod, left = name, max(m.Limit-m.Used, 0)
		}
	}
	if pod == "" {
		return
	}
	rate, fit := ordersPerSecond(o.drill), left/orderBytes
	least, expected := rate*seconds(leastTime(o.drill, o.plan)), expectedOrders(o.drill, o.plan)
	if expected <= fit {
		return
	}
	figures := func(orders int64) string {
		return fmt.Sprintf("%d orders at %d/s take about %s in each grid node, and %s has %s left of %s for orders, which is enough for %d",
			orders, rate, mebibytes(orders*orderBytes), pod, mebibytes(left), mebibytes(memory[pod].Limit), fit)
	}
	remedy := "raise spec.memory of the grid, let it free what is downstream (spec.retention.policy: FreeDownstream), or lower spec.traffic.ratePerProbe, spec.repetitions or the durations of the faults"
	switch {
	case least <= fit:
		c.notes = append(c.notes, fmt.Sprintf("memory may run short: if steps take as long as they often do, %s; then orders are refused. To avoid that, %s", figures(expected), remedy))
	case o.drill.Spec.Safety.WhenMemoryShort == api.MemoryShortAllow:
		c.notes = append(c.notes, fmt.Sprintf("memory will run short, which spec.safety.whenMemoryShort allows: at least %s; then orders are refused", figures(least)))
	default:
		c.add(reasonGridTooSmall, "OrderGrid %s would be full before the drill ends: at least %s; %s; or set spec.safety.whenMemoryShort: Allow to test how it refuses orders", o.grid.Name, figures(least), remedy)
	}
}

// leastTime is how long orders flow at the least.
func leastTime(d *api.FailoverDrill, steps []plan.Step) (t time.Duration) {
	for i := range steps {
		t += steps[i].After + steps[i].Duration + d.Spec.SteadyState.Calm.Duration + d.Spec.SteadyState.Settle.Duration
	}
	return t
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// mebibytes formats an amount of memory as Kubernetes does, in whole Mi.
func mebibytes(bytes int64) string {
	return resource.NewQuantity(bytes>>20<<20, resource.BinarySI).String()
}
