package ordergrid

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// memory is the operator's state since its start that is in no object, by grid. Losing it costs queries to grid nodes,
// nothing else: what must survive a restart is in the GridPartitions.
type memory struct {
	mu    sync.Mutex
	grids map[types.NamespacedName]*gridMemory
}

// gridMemory is the state of one grid. Only the worker that reconciles it uses it, and the work queue gives a grid to
// one worker at a time.
type gridMemory struct {
	partitions map[types.UID]*recollection
	update     updateMemory       // while pods are to be replaced, of a grid that has an objective
	scale      scaleMemory        // while partitions move
	tls        *tlsState          // the state of its certificates; nil: not checked yet
	plainQuiet time.Time          // since when a grid that accepts plain connections beside TLS had no client with one
	trail      []api.HistoryEntry // decisions that are not in status yet
	waits      string             // what was logged last
	peerKey    time.Time          // when the Secret with the peer key was last recreated, or tried to
	again      time.Duration      // delay requested by the last pass; 0: none
}

// of is the memory of a grid, an empty one of a grid that was not seen before.
func (m *memory) of(grid types.NamespacedName) *gridMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.grids == nil {
		m.grids = map[types.NamespacedName]*gridMemory{}
	}
	if m.grids[grid] == nil {
		m.grids[grid] = &gridMemory{}
	}
	return m.grids[grid]
}

func (m *memory) forget(grid types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.grids, grid)
}

// mayMakePeerKey limits how often the creation of the Secret is tried, which pods may wait for.
func (m *gridMemory) mayMakePeerKey(now time.Time) bool {
	if now.Sub(m.peerKey) < tlsLookTrouble {
		return false
	}
	m.peerKey = now
	return true
}

// hurried caps the pause after a failed pass at the delay which that pass requested: a step that fails for days must
// not delay the replacement of a pod on a lost Kubernetes node, or of a shard that drains.
type hurried struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	memory *memory
}

func (h hurried) When(request reconcile.Request) time.Duration {
	pause := h.TypedRateLimiter.When(request)
	if again := h.memory.of(request.NamespacedName).again; again > 0 {
		return min(pause, again)
	}
	return pause
}

// recollection is the remembered state of one partition.
type recollection struct {
	highest   configuration // the latest configuration seen
	awaySince time.Time     // since when the primary has not been ready; zero while it is
	met       bool          // the nodes have been asked once, or the partition is known from its beginning
	refused   map[string]refusal
}

// configuration identifies one configuration of a partition.
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

// refusal is why the operator refused an annotation, as long as the partition does not change.
type refusal struct {
	at   configuration
	text string
}

// recollect returns the remembered state of a grid's partitions, empty for new ones, and forgets deleted ones.
func (m *gridMemory) recollect(partitions []api.GridPartition) map[types.UID]*recollection {
	now := make(map[types.UID]*recollection, len(partitions))
	for i := range partitions {
		p := &partitions[i]
		now[p.UID] = m.partitions[p.UID]
		if now[p.UID] == nil {
			now[p.UID] = &recollection{met: p.Status.Epoch == 0, refused: map[string]refusal{}}
		}
	}
	m.partitions = now
	return now
}
