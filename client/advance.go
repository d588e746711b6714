package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// advances tells the primary what a follower holds: the latest position, one request at a time.
type advances struct {
	f       *Follower
	mu      sync.Mutex
	want    Position
	said    Position // that the primary has answered
	err     error    // for good
	running bool
	changed chan struct{} // closed and made anew with every change
	ctx     context.Context
	cancel  context.CancelFunc
}

// advanceEvery is the shortest time between two positions: each is an entry of the log.
const advanceEvery = 200 * time.Millisecond

func (a *advances) init(f *Follower) {
	a.f, a.changed = f, make(chan struct{})
	a.ctx, a.cancel = context.WithCancel(f.c.ctx)
}

func (a *advances) close() { a.cancel() }

// failure is why advancing has failed for good, nil if it has not.
func (a *advances) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *advances) tell() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// Advance says that what is outside holds every entry up to seq durably; hash is that of
// entry seq. It returns at once: the primary is told of the latest position soon, whichever replica that is then.
// The error is of an Advance before that was refused for good, and Next returns it too.
func (f *Follower) Advance(seq, hash uint64) error {
	a := &f.advances
	if f.o.Name == "" {
		return errors.New("client: Advance of a follower without a name: set FollowOptions.Name to that of a sink of type External")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil || seq <= a.want.Seq {
		return a.err
	}
	a.want = Position{Seq: seq, Hash: hash}
	if !a.running {
		a.running = true
		go a.run()
	}
	return nil
}

// Flush returns when the grid's log says what was advanced.
func (f *Follower) Flush(ctx context.Context) error {
	a := &f.advances
	for {
		a.mu.Lock()
		done, err, changed := a.said.Seq >= a.want.Seq, a.err, a.changed
		a.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("client: advance %s to entry %d: %w", f.o.Partition, a.want.Seq, ctx.Err())
		case <-a.ctx.Done():
			return ErrClosed
		}
	}
}

// run asks until everything is said.
func (a *advances) run() {
	for {
		a.mu.Lock()
		want := a.want
		if a.running = a.err == nil && want.Seq > a.said.Seq && a.ctx.Err() == nil; !a.running {
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		err := a.say(want)
		a.mu.Lock()
		switch {
		case err == nil:
			a.said = want
			a.tell()
		case a.f.final(err):
			a.err = fmt.Errorf("client: advance %s to entry %d: %w", a.f.o.Partition, want.Seq, err)
			a.tell()
		}
		a.mu.Unlock()
		sleep(advanceEvery, a.ctx.Done(), nil, nil)
	}
}

func (a *advances) say(want Position) error {
	c, p := a.f.c, a.f.o.Partition
	var m wire.Advanced
	_, err := c.retry(a.ctx, p, false, func(ctx context.Context, addr string) error {
		return c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
			return wire.AppendAdvance(dst, p, &wire.Advance{ReqID: reqID, Seq: want.Seq, Hash: want.Hash, Name: []byte(a.f.o.Name)})
		}, func(frame []byte) error { return wire.DecodeAdvanced(frame, &m) })
	})
	return err
}
