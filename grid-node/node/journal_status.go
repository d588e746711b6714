package node

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/internal/histogram"
)

// journalStats are of all partitions of a node; for every goroutine.
type journalStats struct {
	bytes    atomic.Int64
	failures atomic.Uint64
	aside    atomic.Uint64

	mu   sync.Mutex
	sync histogram.Histogram // time of an fsync
	full map[string]bool     // partitions whose journal has only its reserve left
	errs map[string]string   // why the journal of a partition could not be written last
}

// observe counts an fsync that succeeded.
func (s *journalStats) observe(partition string, d time.Duration) {
	s.mu.Lock()
	s.sync.Observe(int64(d))
	delete(s.errs, partition)
	s.mu.Unlock()
}

// failed counts a batch that could not be written.
func (s *journalStats) failed(partition string, err error) {
	s.failures.Add(1)
	s.mu.Lock()
	if s.errs == nil {
		s.errs = map[string]string{}
	}
	s.errs[partition] = err.Error()
	s.mu.Unlock()
}

// room notes whether a partition's journal has only its reserve left.
func (s *journalStats) room(partition string, full bool) {
	s.mu.Lock()
	if s.full == nil {
		s.full = map[string]bool{}
	}
	if full {
		s.full[partition] = true
	} else {
		delete(s.full, partition)
	}
	s.mu.Unlock()
}

// begun forgets what is known of a partition, whose journal was synced by a new process or
// is not kept here any more.
func (s *journalStats) begun(partition string) {
	s.mu.Lock()
	delete(s.errs, partition)
	delete(s.full, partition)
	s.mu.Unlock()
}

// journalStatus is for the page of memory; nil: there are no journals.
func (ps *partitions) journalStatus() *nodestatus.Journal {
	if ps.cfg.Journal == nil {
		return nil
	}
	s := &ps.journals
	j := &nodestatus.Journal{Bytes: s.bytes.Load(), LimitBytes: ps.cfg.Journal.MaxBytes}
	s.mu.Lock()
	defer s.mu.Unlock()
	j.Full = len(s.full) > 0
	for _, p := range slices.Sorted(maps.Keys(s.errs)) {
		j.Error = p + ": " + s.errs[p]
		break
	}
	return j
}

// journalSnapshot is for metrics; nil: there are no journals.
func (ps *partitions) journalSnapshot() *metrics.Journal {
	if ps.cfg.Journal == nil {
		return nil
	}
	s := &ps.journals
	m := &metrics.Journal{Bytes: s.bytes.Load(), Limit: ps.cfg.Journal.MaxBytes, Failures: s.failures.Load(), Aside: s.aside.Load()}
	for _, p := range ps.list {
		last, _ := p.store.Last()
		m.Lag += last - min(last, p.inc.journal.durable.Load())
	}
	s.mu.Lock()
	m.Sync, m.Full = s.sync, len(s.full) > 0
	s.mu.Unlock()
	return m
}
