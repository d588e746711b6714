package failoverdrill

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

// heard is when recorders answered last. A restarted operator gives each a new deadline.
type heard struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

// now notes an answer.
func (h *heard) now(id types.UID, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = map[types.UID]time.Time{}
	}
	h.at[id] = now
}

// silent is how long there was no answer.
func (h *heard) silent(id types.UID, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = map[types.UID]time.Time{}
	}
	at, known := h.at[id]
	if !known {
		h.at[id] = now
		return 0
	}
	return now.Sub(at)
}

func (h *heard) forget(id types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.at, id)
}

// plans caches the plans of drills that are not over: one of a thousand repetitions is not made at every reconcile.
type plans struct {
	mu    sync.Mutex
	known map[types.UID]known
}

type known struct {
	from  planKey
	spec  *api.FailoverDrillSpec
	steps []plan.Step
}

// planKey is the variable input of a plan: the spec is immutable, and skipped faults are decided once.
type planKey struct {
	seed    int64
	skipped int
	shape   plan.Shape
}

func (p *plans) get(id types.UID, from planKey) (known, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, there := p.known[id]
	return k, there && k.from == from
}

func (p *plans) put(id types.UID, k known) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[types.UID]known{}
	}
	p.known[id] = k
}

func (p *plans) forget(id types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, id)
}
