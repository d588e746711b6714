package inject

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// remembered is how many nodes' reports are kept, over all drills.
const remembered = 4096

// featureMemory keeps the reports of a drill, so that its preflight checks every node once. It is a cache: a restarted
// operator checks again.
type featureMemory struct {
	mu    sync.Mutex
	known map[featureKey]featureReport
}

type featureKey struct {
	drill types.UID
	node  string
}

func (m *featureMemory) get(d Drill, node string) (featureReport, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.known[featureKey{d.UID, node}]
	return r, known
}

func (m *featureMemory) put(d Drill, node string, r featureReport) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= remembered {
		m.known = map[featureKey]featureReport{}
	}
	m.known[featureKey{d.UID, node}] = r
}
