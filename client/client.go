package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Client routes orders and reads to the partitions of one grid. It is safe for
// concurrent use.
//
// Locks: Client.mu is never taken while pump.mu is held; a pump that needs Client.mu releases its
// own first.
type Client struct {
	cfg    Config
	table  atomic.Pointer[table]
	gates  gates
	aged   chan sighting   // epochs that the table is known to lack
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	turn     atomic.Uint64 // of nodes for keyed questions
	viewless atomic.Int64  // until when primaries are not asked first, see noteViews

	// shared holds the session that Submit uses for each partition, and those of
	// asynchronous reads; it is replaced, never changed, so that the hot path reads
	// it without a lock.
	shared atomic.Pointer[map[sharedKey]*Session]

	mu        sync.Mutex
	closed    bool
	flights   map[wire.PartitionID]*flight
	questions map[string]*question // by the node's address
	callers   map[string]*caller
	sessions  map[*Session]struct{}
	past      Stats // of sessions that were closed
	outages   outageLog
}

// sharedKey names a session that many callers use.
type sharedKey struct {
	partition wire.PartitionID
	reads     readerKind
	regions   bool
}

// Dial learns from the first endpoint that answers how many partitions the grid has, which
// never changes, and where they are. It fails if no endpoint knows of any within
// Config.DialTimeout; one that the endpoints do not know of, or that has no primary, is
// looked for when it is used. The client keeps the table current by itself.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, flights: map[wire.PartitionID]*flight{}, questions: map[string]*question{}, callers: map[string]*caller{}, sessions: map[*Session]struct{}{}, aged: make(chan sighting, 64)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.table.Store(&table{})
	c.shared.Store(&map[sharedKey]*Session{})
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	var back backoff
	for back.wait(ctx.Done(), cfg.RetryMax) {
		now := c.ask(ctx, "the grid's partitions", cfg.Endpoints, len(cfg.Endpoints), 0, c.judgeWhole)
		if now == nil {
			go c.keepTable()
			return c, nil
		}
		if err == nil || !errors.Is(now, context.DeadlineExceeded) {
			err = now // the error of the attempt before says more than the deadline
		}
		if permanent(err) || errors.Is(err, ErrTLS) {
			break // it will not have changed within DialTimeout
		}
	}
	c.Close() //nolint:errcheck // it never fails
	return nil, fmt.Errorf("client: dial %v: %w: %w", cfg.Endpoints, ErrUnavailable, join(err, ctx.Err()))
}

// Close ends all sessions; see Session.Close for orders without an answer.
func (c *Client) Close() error {
	c.cancel()
	c.mu.Lock()
	c.closed = true
	sessions, callers := make([]*Session, 0, len(c.sessions)), make([]*caller, 0, len(c.callers))
	for s := range c.sessions {
		sessions = append(sessions, s)
	}
	for _, k := range c.callers {
		callers = append(callers, k)
	}
	c.mu.Unlock()
	for _, s := range sessions {
		s.Close() //nolint:errcheck // it never fails
	}
	for _, k := range callers {
		k.close()
	}
	return nil
}

// Table is the routing table as the client knows it now: all partitions of the grid by number,
// including those that no node has reported yet.
func (c *Client) Table() []PartitionInfo {
	return slices.Clone(c.table.Load().parts)
}

// Session opens a session of its own on a partition, connected and ready, within
// Config.DialTimeout.
func (c *Client) Session(partition wire.PartitionID) (*Session, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.DialTimeout)
	defer cancel()
	return c.OpenSession(ctx, partition)
}

// OpenSession is Session with a context.
func (c *Client) OpenSession(ctx context.Context, partition wire.PartitionID) (*Session, error) {
	s, err := c.newSession(partition, 0)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		s.Close() //nolint:errcheck // it never fails
		return nil, err
	}
	return s, nil
}

func (c *Client) newSession(partition wire.PartitionID, reads readerKind) (*Session, error) {
	if err := c.checkPartition(partition); err != nil {
		return nil, err
	}
	s := newSession(c, partition, IOBlocking, reads)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	c.sessions[s] = struct{}{}
	return s, nil
}

func (c *Client) checkPartition(p wire.PartitionID) error {
	if n := len(c.table.Load().parts); int(p) >= n {
		return fmt.Errorf("client: partition is %s, allowed: p0..p%d, the grid's %d partitions", p, n-1, n)
	}
	return nil
}

// forget removes a closed session from the client's lists.
func (c *Client) forget(s *Session) {
	past := s.Stats()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.sessions[s]; !ok {
		return
	}
	delete(c.sessions, s)
	c.past.add(&past)
	if key := (sharedKey{s.partition, s.reads, s.regions}); (*c.shared.Load())[key] == s {
		c.replaceShared(key, nil)
	}
}

// replaceShared runs with mu held.
func (c *Client) replaceShared(p sharedKey, s *Session) {
	old := *c.shared.Load()
	next := make(map[sharedKey]*Session, len(old)+1)
	for k, v := range old {
		next[k] = v
	}
	if next[p] = s; s == nil {
		delete(next, p)
	}
	c.shared.Store(&next)
}

// sharedSession is the session that Submit and SubmitTo, or asynchronous reads,
// use for a partition. It connects at its first use.
func (c *Client) sharedSession(p wire.PartitionID, reads readerKind) (*Session, error) {
	return c.sharedAt(sharedKey{p, reads, false})
}

func (c *Client) sharedAt(key sharedKey) (*Session, error) {
	p := key.partition
	if s := (*c.shared.Load())[key]; s != nil {
		return s, nil
	}
	if err := c.checkPartition(p); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if s := (*c.shared.Load())[key]; s != nil {
		return s, nil
	}
	s := newSession(c, p, IONet, key.reads)
	s.regions = key.regions
	c.sessions[s] = struct{}{}
	c.replaceShared(key, s)
	return s, nil
}

// Submit sends one FIX message (35=D, F or G) to the partition that it belongs
// to (Route) and waits until it is committed. See FateOf for errors and
// Session.Submit for timeouts.
func (c *Client) Submit(ctx context.Context, fix []byte) (Receipt, error) {
	p, err := c.Route(fix)
	if err != nil {
		return Receipt{}, err
	}
	return c.SubmitTo(ctx, p, fix)
}

// SubmitTo is Submit to a given partition. The caller then also handles duplicate ClOrdIDs: each
// partition knows only its own.
func (c *Client) SubmitTo(ctx context.Context, partition wire.PartitionID, fix []byte) (Receipt, error) {
	s, err := c.sharedSession(partition, 0)
	if err != nil {
		return Receipt{}, &NotSentError{Partition: partition, Cause: err}
	}
	return s.Submit(ctx, fix)
}

// SubmitAsync is Session.SubmitAsync on the shared session of the partition that
// the order belongs to.
func (c *Client) SubmitAsync(fix []byte, done func(Receipt, error)) error {
	p, err := c.Route(fix)
	if err != nil {
		return err
	}
	s, err := c.sharedSession(p, 0)
	if err != nil {
		return &NotSentError{Partition: p, Cause: err}
	}
	return s.SubmitAsync(fix, done)
}

// Stats of all sessions of the client, closed ones included.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	sum := c.past
	sessions := make([]*Session, 0, len(c.sessions))
	for s := range c.sessions {
		sessions = append(sessions, s)
	}
	c.mu.Unlock()
	for _, s := range sessions {
		one := s.Stats()
		sum.add(&one)
	}
	return sum
}
