package traffic

import (
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// ticker is a thread that only wakes up periodically. When it is late, the machine delayed this
// process, and an apparent outage of the grid may be caused by that.
type ticker struct {
	stopping atomic.Bool
	done     chan struct{}
	stalls   []history.Stall
	ticks    int64
}

const (
	tick = int64(2 * time.Millisecond)
	// late is the least delay to record.
	late = int64(2 * time.Millisecond)
	// maxStalls bounds the record on an overloaded machine.
	maxStalls = 1 << 20
)

func startTicker() *ticker {
	t := &ticker{done: make(chan struct{})}
	go func() {
		defer close(t.done)
		if clock.Thread() != nil {
			return
		}
		for next := clock.Now() + tick; !t.stopping.Load(); next += tick {
			clock.SleepUntil(next)
			t.ticks++
			if now := clock.Now(); now-next > late {
				if len(t.stalls) < maxStalls {
					t.stalls = append(t.stalls, history.Stall{At: next, Len: now - next})
				}
				next = now
			}
		}
	}()
	return t
}

func (t *ticker) stop() ([]history.Stall, int64) {
	t.stopping.Store(true)
	<-t.done
	return t.stalls, t.ticks
}
