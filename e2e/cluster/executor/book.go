package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// How much is remembered of faults that are over: so that a late request does
// not inject one again, and for people to read.
const (
	rememberFor  = 24 * time.Hour
	rememberMost = 1000
	// mostActive bounds the faults at one time.
	mostActive = 64
)

// entry is a fault in the book.
type entry struct {
	Fault  executor.Fault    `json:"fault"`
	Status executor.Status   `json:"status"`
	Notes  map[string]string `json:"notes,omitempty"`

	unwanted chan struct{} // closed when its end is asked for
	settled  chan struct{} // closed when it is no longer Injecting
	over     chan struct{} // closed when nothing of it is left
}

// book is all faults, kept in a file: what was injected must be known after a
// crash of this process.
type book struct {
	mu      sync.Mutex
	file    string
	entries map[string]*entry
}

func stateFile(dir string) string { return filepath.Join(dir, "faults.json") }

// openBook reads the faults of an earlier process.
func openBook(dir string) (*book, error) {
	b := &book{file: stateFile(dir), entries: map[string]*entry{}}
	content, err := os.ReadFile(b.file)
	if errors.Is(err, os.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content, &b.entries); err != nil {
		return nil, fmt.Errorf("%s: %w; which faults are injected is not known: take the cluster down and up", b.file, err)
	}
	for _, e := range b.entries {
		e.prepare()
	}
	return b, nil
}

func (e *entry) prepare() {
	e.unwanted, e.settled, e.over = make(chan struct{}), make(chan struct{}), make(chan struct{})
	if e.Status.State != executor.Injecting {
		close(e.settled)
	}
	if e.Status.State.Over() {
		close(e.over)
	}
}

// add enters a new fault, or returns the conflicting one.
func (b *book) add(id string, e *entry) (existing *entry, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if existing := b.entries[id]; existing != nil {
		return existing, nil
	}
	b.forget()
	e.prepare()
	b.entries[id] = e
	if err := b.save(); err != nil {
		delete(b.entries, id)
		return nil, err
	}
	return nil, nil
}

// get returns a fault, or nil.
func (b *book) get(id string) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entries[id]
}

// status returns a copy of a fault's state.
func (b *book) status(e *entry) executor.Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return e.Status
}

// change edits a fault. The result is kept unless only counters moved.
func (b *book) change(e *entry, edit func(*entry)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := e.Status
	edit(e)
	after := &e.Status
	if before.State == executor.Injecting && after.State != executor.Injecting {
		close(e.settled)
	}
	if before.State == after.State && before.Message == after.Message && before.Witness.Seen == after.Witness.Seen {
		return nil
	}
	return b.save()
}

// unwant asks for a fault's end.
func (b *book) unwant(e *entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-e.unwanted:
	default:
		close(e.unwanted)
	}
}

// all lists the faults by id; active only those that are not over.
func (b *book) all(activeOnly bool) []*entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*entry
	for _, e := range b.entries {
		if !activeOnly || !e.Status.State.Over() {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(x, y *entry) int { return strings.Compare(x.Status.ID, y.Status.ID) })
	return list
}

// forget drops the oldest faults that are over.
func (b *book) forget() {
	var over []*entry
	for _, e := range b.entries {
		if e.Status.State.Over() && e.Status.Recovered != nil {
			over = append(over, e)
		}
	}
	slices.SortFunc(over, func(x, y *entry) int { return x.Status.Recovered.Compare(*y.Status.Recovered) })
	for i, e := range over {
		if len(over)-i > rememberMost-1 || time.Since(*e.Status.Recovered) > rememberFor {
			delete(b.entries, e.Status.ID)
		}
	}
}

// save writes the book. The caller has the lock.
func (b *book) save() error {
	content, err := json.MarshalIndent(b.entries, "", "  ")
	if err != nil {
		return err
	}
	if err := pki.WriteFile(b.file, content, 0o600); err != nil {
		return fmt.Errorf("the faults cannot be written down: %w", err)
	}
	return nil
}
