package client

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// firstPause is the longest pause before the second attempt.
const firstPause = 2 * time.Millisecond

// backoff spaces attempts that fail. The first is made at once; the longest
// pause before the next ones grows by half each time, from firstPause to the
// caller's limit, and each pause is drawn evenly from 0 to that ("full jitter"):
// clients that lost a primary at the same moment spread over the whole time.
type backoff struct {
	attempts int
	longest  time.Duration
}

// pause is how long to wait before the next attempt. random is like rand.Int64N.
func (b *backoff) pause(limit time.Duration, random func(int64) int64) time.Duration {
	b.attempts++
	if b.attempts == 1 {
		return 0
	}
	b.longest = min(max(b.longest+b.longest/2, firstPause), limit)
	return time.Duration(random(int64(b.longest)))
}

// wait pauses before an attempt. It returns false if stop was closed.
func (b *backoff) wait(stop <-chan struct{}, limit time.Duration) bool {
	return sleep(b.pause(limit, rand.Int64N), stop, nil, nil)
}

// sleep returns early when news is closed and now then returns true. It returns false when stop is
// closed.
func sleep(d time.Duration, stop, news <-chan struct{}, now func() (bool, <-chan struct{})) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return false
		case <-t.C:
			return true
		case <-news:
			var yes bool
			if yes, news = now(); yes {
				return true
			}
		}
	}
}

// openAtOnce bounds the sessions of one client that are being opened at one node at the same time,
// so that a new primary is not hit by all sessions of a client at once.
const openAtOnce = 16

// gates hold the sessions waiting to be opened, per address: a node that is cut off and does not
// answer delays no session of another node.
type gates struct {
	mu   sync.Mutex
	gate map[string]*gate
}

type gate struct {
	places chan struct{}
	users  int // inside or waiting; the last one removes the gate
}

// enter waits for a slot; leave must be called if there is no error.
func (g *gates) enter(ctx context.Context, address string) (leave func(), err error) {
	g.mu.Lock()
	if g.gate == nil {
		g.gate = map[string]*gate{}
	}
	at := g.gate[address]
	if at == nil {
		at = &gate{places: make(chan struct{}, openAtOnce)}
		g.gate[address] = at
	}
	at.users++
	g.mu.Unlock()
	left := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if at.users--; at.users == 0 {
			delete(g.gate, address)
		}
	}
	select {
	case at.places <- struct{}{}:
		return func() { <-at.places; left() }, nil
	case <-ctx.Done():
		left()
		return nil, ctx.Err()
	}
}
