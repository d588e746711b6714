package faults

import (
	"context"
	"sync"
	"syscall"
)

// freezer stops processes, and remembers which of them to resume.
type freezer struct {
	lock   sync.Mutex
	frozen map[int]bool // by process id
}

// Freeze implements Target.
func (f *freezer) Freeze(_ context.Context, n Node) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.frozen == nil {
		f.frozen = map[int]bool{}
	}
	f.frozen[n.PID] = true
	return signal(n, syscall.SIGSTOP)
}

// Thaw implements Target.
func (f *freezer) Thaw(_ context.Context, n Node) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.frozen, n.PID)
	return signal(n, syscall.SIGCONT)
}

// thawAll resumes every process that is still stopped.
func (f *freezer) thawAll() {
	f.lock.Lock()
	defer f.lock.Unlock()
	for pid := range f.frozen {
		_ = syscall.Kill(pid, syscall.SIGCONT) // it may be gone
	}
	clear(f.frozen)
}
