package load

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// gate passes created orders to publishing threads in order of creation. A thread draws the next
// number that is not taken, then waits until that order has been created.
//
// It is a futex and not a channel because a channel wakes a goroutine, and a
// goroutine on a locked thread needs its scheduler processor back before it
// runs: tens of microseconds that would be counted as the grid's latency. A
// thread waiting in the raw system call keeps its processor.
type gate struct {
	drawn     atomic.Int64 // next order that is not taken
	created   atomic.Int64 // orders 0..created-1 may be published
	closed    atomic.Bool  // created will not grow
	abandoned atomic.Bool  // threads stop even if created orders are left
	// waiting[i%threads] is 1 while a thread waits for order i. The numbers
	// that threads wait for are consecutive, so no two share a word.
	waiting []paddedWord
}

// paddedWord has a cache line to itself: waking one thread must not disturb
// the others' words.
type paddedWord struct {
	word atomic.Uint32
	_    [60]byte
}

// Futex operations; both private to this process.
const (
	futexWaitPrivate = 0 | 128
	futexWakePrivate = 1 | 128
)

// recheck bounds a single wait. With a time limit a futex wait returns EINTR
// after a signal instead of being restarted, which is what lets the runtime
// stop the world; the length itself does not matter.
const recheck = 10 * time.Second

func newGate(threads int) *gate { return &gate{waiting: make([]paddedWord, threads)} }

// put makes order i available; orders must come in sequence from one thread.
func (g *gate) put(i int64) {
	g.created.Store(i + 1)
	g.wake(int(i % int64(len(g.waiting))))
}

func (g *gate) wake(slot int) {
	w := &g.waiting[slot].word
	if w.CompareAndSwap(1, 0) {
		_, _, errno := syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWakePrivate, 1, 0, 0, 0)
		if errno != 0 {
			panic(fmt.Sprintf("futex wake: %v", errno)) // the arguments are valid
		}
	}
}

// close signals that no more orders will be created.
func (g *gate) close() {
	g.closed.Store(true)
	for i := range g.waiting {
		g.wake(i)
	}
}

// abandon makes threads stop before their next order.
func (g *gate) abandon() {
	g.abandoned.Store(true)
	g.close()
}

// take returns the next order to publish, or false when there are no more.
func (g *gate) take() (int64, bool) {
	i := g.drawn.Add(1) - 1
	w := &g.waiting[i%int64(len(g.waiting))].word
	for {
		if g.abandoned.Load() {
			return 0, false
		}
		if i < g.created.Load() {
			return i, true
		}
		if g.closed.Load() {
			// created may have grown between the two loads above.
			return i, i < g.created.Load()
		}
		w.Store(1)
		// Check again: put, close or abandon may have read w before.
		if i < g.created.Load() || g.closed.Load() {
			w.Store(0)
			continue
		}
		g.wait(w)
	}
}

func (g *gate) wait(w *atomic.Uint32) {
	ts := unix.NsecToTimespec(int64(recheck))
	_, _, errno := syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWaitPrivate, 1, uintptr(unsafe.Pointer(&ts)), 0, 0)
	switch errno {
	case 0, unix.EAGAIN, unix.EINTR, unix.ETIMEDOUT:
	default:
		panic(fmt.Sprintf("futex wait: %v", errno))
	}
}
