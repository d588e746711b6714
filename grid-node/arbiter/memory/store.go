// Package memory is an arbiter in the memory of one process: the state, an HTTP server for
// it, and the client that other processes use. `grid-node dev` and tests run on it. It
// gives the guarantees of the API server: versions never repeat, a change obeys
// arbiter.CheckTransition, a watcher sees the last state.
package memory

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

// Store holds the records. Safe for use by many goroutines; it is an
// arbiter.Arbiter itself, for tests within one process.
type Store struct {
	mu      sync.Mutex
	version uint64
	records map[string]arbiter.Record
	gone    map[string]uint64 // version at which a record was deleted, by name
	changed chan struct{}     // closed and replaced at every change
	faults  faults            // of the HTTP form
}

var _ arbiter.Arbiter = (*Store)(nil)

// NewStore returns a store with one unclaimed record per name in specs.
func NewStore(specs map[string]arbiter.Spec) *Store {
	s := &Store{records: map[string]arbiter.Record{}, gone: map[string]uint64{}, changed: make(chan struct{})}
	for name, spec := range specs {
		s.records[name] = s.stamp(arbiter.Record{Name: name, Spec: spec})
	}
	return s
}

// stamp gives a record the next version; versions are unique in the whole store.
func (s *Store) stamp(r arbiter.Record) arbiter.Record {
	s.version++
	r.Version = strconv.FormatUint(s.version, 10)
	return r
}

// Get implements arbiter.Arbiter.
func (s *Store) Get(_ context.Context, name string) (arbiter.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(name)
}

func (s *Store) get(name string) (arbiter.Record, error) {
	r, ok := s.records[name]
	if !ok {
		return arbiter.Record{}, arbiter.ErrNotFound
	}
	r.InSync = slices.Clone(r.InSync)
	return r, nil
}

// List returns every record in the order of names.
func (s *Store) List() []arbiter.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.records))
	for name := range s.records {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make([]arbiter.Record, 0, len(names))
	for _, name := range names {
		r, _ := s.get(name)
		out = append(out, r)
	}
	return out
}

// CompareAndSwap implements arbiter.Arbiter. On a conflict the current record is returned
// with the error.
func (s *Store) CompareAndSwap(_ context.Context, r arbiter.Record) (arbiter.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, err := s.get(r.Name)
	if err != nil {
		return arbiter.Record{}, err
	}
	if old.Version != r.Version {
		return old, arbiter.ErrConflict
	}
	if err := arbiter.CheckTransition(old, r); err != nil {
		return old, err
	}
	if arbiter.SameConfiguration(old, r) {
		return old, nil // like the API server: a write that changes nothing keeps the version
	}
	r.Spec, r.InSync = old.Spec, slices.Clone(r.InSync)
	if r.Observed.IsZero() {
		r.Observed = time.Now()
	}
	s.put(r)
	return s.get(r.Name)
}

// put stores a record under a new version and wakes the watchers.
func (s *Store) put(r arbiter.Record) {
	s.records[r.Name] = s.stamp(r)
	delete(s.gone, r.Name)
	s.wake()
}

func (s *Store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Create makes an unclaimed record. It fails if the name exists.
func (s *Store) Create(name string, spec arbiter.Spec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.get(name); err == nil {
		return arbiter.Refused("record %q is there already", name)
	}
	s.put(arbiter.Record{Name: name, Spec: spec})
	return nil
}

// Delete removes a record.
func (s *Store) Delete(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.get(name); err != nil {
		return err
	}
	delete(s.records, name)
	s.version++
	s.gone[name] = s.version
	s.wake()
	return nil
}
