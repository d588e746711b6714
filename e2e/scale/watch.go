package scale

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// sight is the measurement's view of the grids, by its own watches.
type sight struct {
	mu     sync.Mutex
	steady map[string]time.Time // when a grid was seen steady first
}

// watch follows grids and notifies nodes of pods, until ctx ends.
func (c *cluster) watch(ctx context.Context, nodes *gridNodes) (*sight, error) {
	s := &sight{steady: map[string]time.Time{}}
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{"app.kubernetes.io/managed-by": "ordergrid-operator"})}
	objects, err := cache.New(c.admin, cache.Options{
		Scheme: envtest.Scheme(), DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: ours},
	})
	if err != nil {
		return nil, err
	}
	grids, err := objects.GetInformer(ctx, &api.OrderGrid{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	pods, err := objects.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	if _, err := grids.AddEventHandler(onChange(s.look)); err != nil {
		return nil, err
	}
	if _, err := pods.AddEventHandler(onChange(func(pod *corev1.Pod) { nodes.look(ctx, pod) })); err != nil {
		return nil, err
	}
	nodes.wait.Go(func() {
		if err := objects.Start(ctx); err != nil {
			nodes.fail(err)
		}
	})
	if !objects.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watch grids and pods: %w", context.Cause(ctx))
	}
	return s, nil
}

func onChange[T any](f func(T)) toolscache.ResourceEventHandlerFuncs {
	call := func(object any) {
		if o, ok := object.(T); ok {
			f(o)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: call, UpdateFunc: func(_, o any) { call(o) }}
}

// look notes when a grid has all it should have.
func (s *sight) look(grid *api.OrderGrid) {
	is := func(kind string) bool { return meta.IsStatusConditionTrue(grid.Status.Conditions, kind) }
	well := is(api.ConditionAvailable) && is(api.ConditionRedundant) && meta.IsStatusConditionFalse(grid.Status.Conditions, api.ConditionProgressing)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.steady[grid.Name]; well && !known {
		s.steady[grid.Name] = time.Now()
	}
}

// all returns when the last of so many grids became steady, if all have.
func (s *sight) all(grids int) (last time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.steady {
		if t.After(last) {
			last = t
		}
	}
	return last, len(s.steady) == grids
}

func (s *sight) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.steady)
}
