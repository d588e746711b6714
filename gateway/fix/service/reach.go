package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

const (
	reachEvery   = 2 * time.Second
	reachLimit   = 5 * time.Second
	reachAtATime = 16 // partitions that are asked at the same time
)

// reach is whether the primary of each partition answers. It is looked at all the time:
// between orders nothing else would show it.
type reach struct {
	c     *client.Client
	parts []partition
}

// partition is one of them.
type partition struct {
	id   wire.PartitionID
	ping *client.Pinger // of watch

	mu    sync.Mutex
	asked bool
	err   error
	since time.Time
}

func newReach(c *client.Client) *reach {
	r := &reach{c: c, parts: make([]partition, len(c.Table()))}
	for i, p := range c.Table() {
		r.parts[i].id = p.ID
	}
	return r
}

// watch asks all partitions until ctx ends.
func (r *reach) watch(ctx context.Context) {
	tick := time.NewTicker(reachEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		r.look(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	for i := range r.parts {
		r.parts[i].leave()
	}
}

func (r *reach) look(ctx context.Context) {
	slots := make(chan struct{}, reachAtATime)
	var all sync.WaitGroup
	for i := range r.parts {
		p := &r.parts[i]
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, reachLimit)
			defer cancel()
			p.saw(p.ask(ctx, r.c), time.Now())
		})
	}
	all.Wait()
	if ctx.Err() == nil && len(r.Missing()) > 0 {
		_ = r.c.Refresh(ctx) // primaries may have moved; the next look shows it
	}
}

// ask sends a Ping to the primary, over the connection of the last one if it is the same.
func (p *partition) ask(ctx context.Context, c *client.Client) error {
	primary := c.Table()[p.id].Primary.Address
	if p.ping != nil && p.ping.Address() != primary {
		p.leave()
	}
	if p.ping == nil {
		ping, err := c.OpenPinger(ctx, p.id)
		if err != nil {
			return err
		}
		p.ping = ping
	}
	err := p.ping.Ping(ctx)
	if err != nil {
		p.leave()
	}
	return err
}

func (p *partition) leave() {
	if p.ping != nil {
		_ = p.ping.Close() // it never fails
		p.ping = nil
	}
}

func (p *partition) saw(err error, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil && err != nil {
		p.since = now
	}
	p.asked, p.err = true, err
}

// Missing names the partitions that do not answer, or were not asked yet.
func (r *reach) Missing() (lines []string) {
	for i := range r.parts {
		p := &r.parts[i]
		p.mu.Lock()
		switch {
		case !p.asked:
			lines = append(lines, fmt.Sprintf("%s: not asked yet", p.id))
		case p.err != nil:
			lines = append(lines, fmt.Sprintf("%s: since %s: %v", p.id, p.since.UTC().Format(time.RFC3339), p.err))
		}
		p.mu.Unlock()
	}
	return lines
}
