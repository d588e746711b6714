package node

import (
	"context"
	"slices"
	"sync"
)

// passes let some streams at a time pass over many entries that they do not send: those that are far behind leave the other
// cores to orders, however many they are. Clients have their turn one after the other, whatever number of streams they have,
// and of a client's streams the one that is nearest to the end.
type passes struct {
	mu    sync.Mutex
	free  int
	queue []*passClient // by turn
}

// passClient are the streams of a client that wait.
type passClient struct {
	client uint64
	list   []*passWait // by time
}

type passWait struct {
	left  uint64 // entries to the end
	given chan struct{}
}

// tryTake takes a pass if one is free.
func (p *passes) tryTake() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 {
		return false
	}
	p.free--
	return true
}

// take waits for a pass of a client; false: ctx has ended.
func (p *passes) take(ctx context.Context, client, left uint64) bool {
	w := p.wait(client, left)
	select {
	case <-w.given:
		return true
	case <-ctx.Done():
	}
	if !p.leave(client, w) { // it was given just now
		p.give()
	}
	return false
}

// wait joins the queue.
func (p *passes) wait(client, left uint64) *passWait {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &passWait{left, make(chan struct{})}
	if p.free > 0 {
		p.free--
		close(w.given)
		return w
	}
	i := slices.IndexFunc(p.queue, func(c *passClient) bool { return c.client == client })
	if i < 0 {
		i = len(p.queue)
		p.queue = append(p.queue, &passClient{client: client})
	}
	p.queue[i].list = append(p.queue[i].list, w)
	return w
}

// leave leaves the queue; false: the pass is given.
func (p *passes) leave(client uint64, w *passWait) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.queue {
		if at := slices.Index(c.list, w); c.client == client && at >= 0 {
			if c.list = slices.Delete(c.list, at, at+1); len(c.list) == 0 {
				p.queue = slices.Delete(p.queue, i, i+1)
			}
			return true
		}
	}
	return false
}

// give gives a pass back.
func (p *passes) give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		p.free++
		return
	}
	c := p.queue[0]
	p.queue = slices.Delete(p.queue, 0, 1)
	next := 0
	for i, w := range c.list {
		if w.left < c.list[next].left {
			next = i
		}
	}
	close(c.list[next].given)
	if c.list = slices.Delete(c.list, next, next+1); len(c.list) > 0 {
		p.queue = append(p.queue, c)
	}
}
