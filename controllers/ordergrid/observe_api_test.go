package ordergrid

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// reads counts the reads by a client.
type reads struct {
	mu    sync.Mutex
	count map[string]int
}

func (r *reads) add(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[what]++
}

func (r *reads) String() string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(r.count)) {
		list = append(list, fmt.Sprintf("%s %d", what, r.count[what]))
	}
	return strings.Join(list, ", ")
}

func (b *bench) counted(r *reads) client.Client {
	r.count = map[string]int{}
	return b.intercepted(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			r.add(fmt.Sprintf("get %T", o))
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			r.add(fmt.Sprintf("list %T", list))
			return c.List(ctx, list, opts...)
		},
	})
}

// TestWorldIsReadOnce: a pass over a grid at rest sends no request to the API server, and lists the grid's objects in
// the cache when it begins and for status.
func TestWorldIsReadOnce(t *testing.T) {
	r := newRollingWith(t, 1)
	r.reconcile.KubeNodes = r.reconcile.Client
	r.run(r.grid) // drains are noticed now, and disruption budgets allow them
	var cached, live, nodes reads
	r.reconcile.Client, r.reconcile.Live, r.reconcile.KubeNodes = r.counted(&cached), r.counted(&live), r.counted(&nodes)
	r.wantNoWrites(r.grid, "the grid is at rest")
	if len(live.count) != 0 {
		t.Errorf("asked of the API server: %s", &live)
	}
	if got := nodes.String(); got != "list *v1.NodeList 1" {
		t.Errorf("Kubernetes nodes: %s", got)
	}
	maps.DeleteFunc(cached.count, func(what string, _ int) bool { return strings.HasPrefix(what, "get ") }) // each object is compared with its desired state
	if got, want := cached.String(), "list *v1.DeploymentList 1, list *v1.PodList 2, list *v1.ServiceList 1, list *v1.StatefulSetList 2, list *v1alpha1.GridPartitionList 2, list *v1alpha1.OrderGatewayList 1"; got != want {
		t.Errorf("listed in the cache: %s, want %s", got, want)
	}

	// A decision that may remove a pod reads from the API server.
	r.grid.Spec.UpdateStrategy.Type = api.UpdatePaused
	r.change("1")
	r.revision("rev2")
	live.count = map[string]int{}
	r.run(r.grid)
	if n := live.count["list *v1.PodList"]; n != 1 {
		t.Errorf("asked of the API server when pods are outdated: %s", &live)
	}
}
