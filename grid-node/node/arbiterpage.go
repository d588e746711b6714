package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// askInterval bounds how often the page asks the API server, for any number of clients.
const askInterval = 500 * time.Millisecond

// arbiterContact is the state of the connection to the arbiter. From any goroutine.
type arbiterContact struct {
	at atomic.Int64 // time of its last message, as since; 0: never

	mu   sync.Mutex // one read at a time
	last nodestatus.Arbiter
	end  int64 // of that read; 0: none yet
}

// heard notes a message of the arbiter.
func (a *arbiterContact) heard(yes bool) {
	if yes {
		a.at.Store(since())
	}
}

// answered reports whether a read was answered by the arbiter.
func answered(err error) bool { return err == nil || errors.Is(err, arbiter.ErrNotFound) }

// since is the time on the monotonic clock, from 1 on, for goroutines that have no
// loop's clock.
func since() int64 { return int64(time.Since(processBegan)) + 1 }

var processBegan = time.Now()

// ask reads a record and returns the outcome; on any goroutine.
func (a *arbiterContact) ask(ctx context.Context, id *identity) nodestatus.Arbiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.end == 0 || since()-a.end > int64(askInterval) {
		begun := since()
		ctx, cancel := context.WithTimeout(ctx, arbiterTimeout)
		defer cancel()
		_, err := id.cfg.Arbiter.Get(ctx, PartitionName(id.cfg.Grid, 0))
		a.heard(answered(err))
		a.last = nodestatus.Arbiter{Pod: id.cfg.Pod, BootID: wire.FormatBootID(id.boot), Reachable: answered(err)}
		if err != nil {
			a.last.Error = err.Error()
		}
		a.end = since()
		a.last.TookNs = a.end - begun
	}
	out := a.last
	now := since()
	out.AskedAgoNs = now - a.end
	if at := a.at.Load(); at != 0 {
		out.ContactAgoNs = max(1, now-at)
	}
	return out
}
