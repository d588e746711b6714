package packets

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/e2e/cluster/executor/nfqueue"
)

// holder releases each packet after a delay, in the order of arrival.
type holder struct {
	queue           *nfqueue.Queue
	tally           *tally
	latency, jitter time.Duration
	last            time.Duration // when the packet before goes
	waiting         chan held
	hurry           atomic.Bool // nothing is held any more
	done            sync.WaitGroup
}

type held struct {
	id  uint32
	due time.Duration // of the monotonic clock
}

// maxHeld is more than the kernel queues, so take never waits.
const maxHeld = 1 << 17

// nap bounds one sleep, so that stop is noticed.
const nap = 20 * time.Millisecond

func newHolder(queue *nfqueue.Queue, t *tally, p executor.Parameters) *holder {
	h := &holder{queue: queue, tally: t, waiting: make(chan held, maxHeld)}
	if p.Latency != nil {
		h.latency = p.Latency.Duration
	}
	if p.Jitter != nil {
		h.jitter = p.Jitter.Duration
	}
	h.done.Go(h.release)
	return h
}

func (h *holder) take(p nfqueue.Packet) {
	due := monotonic() + h.latency
	if h.jitter > 0 {
		due += rand.N(2*h.jitter+1) - h.jitter
	}
	h.last = max(h.last, due)
	h.waiting <- held{p.ID, h.last}
}

// release sleeps until the first packet is due. Those behind it never are
// sooner. The runtime's timers are a millisecond coarse when a program is
// idle, so this has a thread that sleeps in the kernel.
func (h *holder) release() {
	runtime.LockOSThread()
	// The thread ends with this goroutine, its timer slack of 1 ns with it.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	for p := range h.waiting {
		h.sleepUntil(p.due)
		h.tally.held.Add(1) // before the answer to it can arrive
		if err := h.queue.Accept(p.id); err != nil {
			h.tally.held.Add(-1)
			h.tally.failed.Add(1)
		}
	}
}

func (h *holder) sleepUntil(due time.Duration) {
	for !h.hurry.Load() {
		now := monotonic()
		if now >= due {
			return
		}
		until := unix.NsecToTimespec(int64(min(due, now+nap)))
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil) // interrupted: the loop looks at the clock
	}
}

// stop releases held packets, and later ones, at once.
func (h *holder) stop() { h.hurry.Store(true) }

// close ends the releasing goroutine; the reader has ended.
func (h *holder) close() error {
	close(h.waiting)
	h.done.Wait()
	return nil
}

func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail for this clock
	return time.Duration(now.Nano())
}
