package ordergrid

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// memory is what the operator saw since it started and no object holds. Losing it costs questions to grid nodes, nothing
// else: what must survive a restart stands in the GridPartitions.
type memory struct {
	mu    sync.Mutex
	grids map[types.NamespacedName]map[types.UID]*recollection
	// updates are of the grids that have an objective, while pods are to be replaced.
	updates map[types.NamespacedName]*updateMemory
	tls     map[types.NamespacedName]*tlsState
	// plainQuiet is since when a grid that takes plain connections beside TLS had no client with one.
	plainQuiet map[types.NamespacedName]time.Time
	trail      map[types.NamespacedName][]api.HistoryEntry // decided, and not in status yet
	waits      map[types.NamespacedName]string             // what was logged last
	again      map[types.NamespacedName]time.Duration      // when the last pass wanted to look again; 0: when something wakes it
	// peerKeys is when the Secret with the peer key of a grid was last made again, or tried to.
	peerKeys map[types.NamespacedName]time.Time
}

// set puts a grid's value into one of the maps.
func set[V any](of *map[types.NamespacedName]V, grid types.NamespacedName, value V) {
	if *of == nil {
		*of = map[types.NamespacedName]V{}
	}
	(*of)[grid] = value
}

// mayMakePeerKey bounds how often the Secret is tried that pods may be waiting for.
func (m *memory) mayMakePeerKey(grid types.NamespacedName, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.peerKeys[grid]) < tlsLookTrouble {
		return false
	}
	set(&m.peerKeys, grid, now)
	return true
}

func (m *memory) lookAgain(grid types.NamespacedName, within time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set(&m.again, grid, within)
}

// hurried pauses after a pass that failed no longer than that pass wanted to wait: a step that fails for days must not delay
// a pod on a lost Kubernetes node, or a shard that drains.
type hurried struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	memory *memory
}

func (h hurried) When(request reconcile.Request) time.Duration {
	pause := h.TypedRateLimiter.When(request)
	h.memory.mu.Lock()
	defer h.memory.mu.Unlock()
	if again := h.memory.again[request.NamespacedName]; again > 0 {
		return min(pause, again)
	}
	return pause
}

// tlsOf is what was found of the grid's certificates; nil if they have not been looked at.
func (m *memory) tlsOf(grid types.NamespacedName) *tlsState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tls[grid]
}

func (m *memory) setTLS(grid types.NamespacedName, state *tlsState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set(&m.tls, grid, state)
}

// recollection is what is remembered of one partition. Only the worker that reconciles its grid touches it, and the work
// queue gives a grid to one worker at a time.
type recollection struct {
	highest   configuration // the latest configuration seen
	awaySince time.Time     // since when the primary has not been ready; zero while it is
	met       bool          // the nodes have been asked once, or the partition was there from its beginning
	refused   map[string]refusal
}

// configuration names one configuration of a partition.
type configuration struct {
	epoch    int64
	changeID string
}

func configurationOf(p *api.GridPartition) configuration {
	return configuration{p.Status.Epoch, p.Status.ChangeID}
}

// ahead reports whether c cannot be older than the other: after it there can be only higher epochs, and an epoch is
// given out once.
func (c configuration) ahead(other configuration) bool {
	return c.epoch > other.epoch || c.epoch == other.epoch && c.epoch > 0 && c.changeID != other.changeID
}

// refusal is why the operator did not do what an annotation asked for, for as long as the partition stays as it was.
type refusal struct {
	at   configuration
	text string
}

// of returns the recollections of a grid's partitions, new ones for new partitions, and forgets those that are gone.
func (m *memory) of(grid types.NamespacedName, partitions []api.GridPartition) map[types.UID]*recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := make(map[types.UID]*recollection, len(partitions))
	for i := range partitions {
		p := &partitions[i]
		now[p.UID] = m.grids[grid][p.UID]
		if now[p.UID] == nil {
			now[p.UID] = &recollection{met: p.Status.Epoch == 0, refused: map[string]refusal{}}
		}
	}
	set(&m.grids, grid, now)
	return now
}

func (m *memory) forget(grid types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.grids, grid)
	delete(m.updates, grid)
	delete(m.tls, grid)
	delete(m.trail, grid)
	delete(m.waits, grid)
	delete(m.plainQuiet, grid)
	delete(m.peerKeys, grid)
	delete(m.again, grid)
}
