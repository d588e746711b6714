package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Reader is one connection for asynchronous reads of one partition, safe for
// concurrent use: to the primary, or with WithMode(Backup) to an in-sync copy.
// It reconnects by itself and resends unanswered reads, so that a read ends
// with an answer, or with an error when Config.RequestTimeout is over.
//
// Callbacks run one at a time, in the order of the answers, on a goroutine of
// this package. They must not block, and may read again. The view they get, and
// all its bytes, are valid until they return. err is ErrNotFound, a *RejectError,
// or one that matches ErrUnavailable; then there is no view.
type Reader struct {
	s    *Session
	mode ReadMode
}

// readerKind is what a session without orders is for.
type readerKind uint8

const (
	readsOfPrimary readerKind = iota + 1
	readsOfBackup
)

// kindOf is where reads of a mode go.
func kindOf(m ReadMode) readerKind {
	if m == Backup {
		return readsOfBackup
	}
	return readsOfPrimary
}

// Reader opens a connection for reads of a partition, ready within
// Config.DialTimeout. opts set the mode of its reads.
func (c *Client) Reader(partition wire.PartitionID, opts ...ReadOption) (*Reader, error) {
	mode, err := modeOf(opts)
	if err != nil {
		return nil, err
	}
	s, err := c.newSession(partition, kindOf(mode))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.DialTimeout)
	defer cancel()
	if err := s.open(ctx); err != nil {
		s.Close() //nolint:errcheck // it never fails
		return nil, err
	}
	return &Reader{s: s, mode: mode}, nil
}

// Partition that is read.
func (r *Reader) Partition() wire.PartitionID { return r.s.partition }

// GetAsync reads the order at a place in the partition's log and returns; done
// runs once with the outcome. An error of GetAsync itself (ErrWindowFull:
// Config.MaxInFlight reads are unanswered, or ErrClosed) means that done will
// not run.
func (r *Reader) GetAsync(seq uint64, done func(*OrderView, error)) error {
	return r.get(seq, done, true)
}

// Enqueue is GetAsync that leaves the read in the buffer until GetAsync, Push or
// an answer to an earlier read sends it: many reads then cost one system call.
func (r *Reader) Enqueue(seq uint64, done func(*OrderView, error)) error {
	return r.get(seq, done, false)
}

func (r *Reader) get(seq uint64, done func(*OrderView, error), push bool) error {
	if seq == 0 {
		return badOrderID(wire.OrderID{Partition: r.s.partition})
	}
	return r.s.look(nil, seq, r.mode, done, push)
}

// GetByClOrdIDAsync is GetAsync by ClOrdID, which is copied. The partition of
// this Reader is the only one asked.
func (r *Reader) GetByClOrdIDAsync(clOrdID []byte, done func(*OrderView, error)) error {
	return r.getByClOrdID(clOrdID, done, true)
}

// EnqueueByClOrdID is Enqueue by ClOrdID.
func (r *Reader) EnqueueByClOrdID(clOrdID []byte, done func(*OrderView, error)) error {
	return r.getByClOrdID(clOrdID, done, false)
}

func (r *Reader) getByClOrdID(key []byte, done func(*OrderView, error), push bool) error {
	if len(key) == 0 || len(key) > wire.MaxKey {
		return badClOrdID(len(key))
	}
	return r.s.look(key, 0, r.mode, done, push)
}

// Push writes what Enqueue left.
func (r *Reader) Push() { r.s.Push() }

// OnBatch is Session.OnBatch.
func (r *Reader) OnBatch(f func()) { r.s.OnBatch(f) }

// Drain waits until no read is unanswered and all callbacks have returned. Not
// to be called from a callback.
func (r *Reader) Drain(ctx context.Context) error { return r.s.Drain(ctx) }

// Close ends the Reader. Reads without an answer end with an error that matches
// ErrUnavailable and ErrClosed.
func (r *Reader) Close() error { return r.s.Close() }

// Stats of the Reader so far.
func (r *Reader) Stats() Stats { return r.s.Stats() }

// Outages are the last 16 times in which reads had to wait because the
// connection or the replica was lost, oldest first.
func (r *Reader) Outages() []Outage { return r.s.Outages() }

// GetAsync is Reader.GetAsync over a connection that all callers share.
func (c *Client) GetAsync(id wire.OrderID, done func(*OrderView, error), opts ...ReadOption) error {
	if id.Seq == 0 {
		return badOrderID(id)
	}
	if err := c.checkPartition(id.Partition); err != nil {
		return err
	}
	if meant(opts) != (entryOf{}) {
		return errors.New("client: GetAsync with Of or OfEpoch, allowed: Get; or compare OrderView.Hash with Receipt.Hash")
	}
	return c.look(id.Partition, nil, id.Seq, done, opts)
}

// GetByClOrdIDAsync is Reader.GetByClOrdIDAsync over a connection that all
// callers share. It asks the partition that the ClOrdID belongs to, or all where BySymbol is
// true, which costs a read of each; done may run before the call returns then. For an order
// that was sent elsewhere with SubmitTo there is GetByClOrdID.
func (c *Client) GetByClOrdIDAsync(clOrdID []byte, done func(*OrderView, error), opts ...ReadOption) error {
	if len(clOrdID) == 0 || len(clOrdID) > wire.MaxKey {
		return badClOrdID(len(clOrdID))
	}
	if n := len(c.table.Load().parts); c.BySymbol() && n > 1 {
		return c.lookAll(n, clOrdID, done, opts)
	}
	return c.look(c.RouteClOrdID(clOrdID), clOrdID, 0, done, opts)
}

func (c *Client) look(p wire.PartitionID, key []byte, seq uint64, done func(*OrderView, error), opts []ReadOption) error {
	mode, err := modeOf(opts)
	if err != nil {
		return err
	}
	s, err := c.sharedSession(p, kindOf(mode))
	if err != nil {
		return err
	}
	return s.look(key, seq, mode, done, true)
}

// installReader makes c the connection of a Reader and resends its reads.
func (s *Session) installReader(c *conn, member string) {
	s.opened, s.epoch = true, max(s.epoch, s.client.epochOf(s.partition))
	if s.trouble.since == 0 {
		s.trouble = trouble{}
	}
	s.member = member
	s.stats.Connects++
	c.grow(readerBuffer)
	s.p.conn = c
	s.lastOK = nanotime()
	s.resendLookups(c)
	s.client.cfg.Logger.Info("reader connected", "partition", s.partition.String(), "peer", c.addr, "member", member)
	s.p.flush(c, false)
	s.p.wakeAll()
	s.wakeReader()
	s.runCallbacks(nanotime())
}

// copyToRead picks an in-sync copy for backup reads, the next one after each
// failure and the primary last. Readers begin at different ones.
func (s *Session) copyToRead(failed string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.client.attemptTimeout(0))
	defer cancel()
	var err error
	if failed != "" {
		err = s.client.refresh(ctx, s.partition, failed)
	}
	s.p.mu.Lock()
	if s.turn == 0 {
		p, _ := s.client.partition(s.partition)
		s.turn = rand.IntN(max(len(p.Members)-1, 1))
	}
	s.turn++
	turn := s.turn
	s.p.mu.Unlock()
	if addr := s.client.replica(s.partition, true, turn); addr != "" {
		return addr, nil
	}
	if err == nil {
		err = fmt.Errorf("%s has no copy in sync at epoch %d", s.partition, s.client.epochOf(s.partition))
	}
	return "", err
}
