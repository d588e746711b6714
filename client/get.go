package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// ReadMode selects how fresh a read has to be.
type ReadMode uint8

// Read modes.
const (
	// Confirmed is linearizable without relying on clocks: the primary answers
	// after its copies have confirmed that it still is the primary.
	Confirmed ReadMode = ReadMode(wire.ModeConfirmed)
	// Leased is answered at once while the primary's lease is alive.
	Leased ReadMode = ReadMode(wire.ModeLeased)
	// Backup is answered by a backup from what it knows committed, and may be
	// stale; Order.CommitSeq says how far that backup was.
	Backup ReadMode = ReadMode(wire.ModeBackup)
)

// ReadOption changes a read.
type ReadOption struct {
	mode ReadMode // 0: the option selects which order is meant
	of   entryOf
}

// entryOf is what the entry of the order meant has; 0: anything.
type entryOf struct{ epoch, hash uint64 }

// WithMode sets the mode; the default is Confirmed.
func WithMode(m ReadMode) ReadOption { return ReadOption{mode: m} }

// Of makes Get return the order of this receipt only, or a *OtherOrderError when another one has
// its id. After an accepted loss of data, orders that only lost processes held are gone and their
// numbers are assigned anew; a grid recreated under its name counts from 1. Of compares the
// receipt's hash, or its epoch if it has none, as OfEpoch does.
func Of(r Receipt) ReadOption { return ReadOption{of: entryOf{r.Epoch, r.Hash}} }

// OfEpoch is Of for callers that kept only the epoch of the receipt. Epochs repeat where the grid
// was recreated under its name, or where its record was set back, for example by an etcd restore:
// there the id and the epoch may name another order.
func OfEpoch(epoch uint64) ReadOption { return ReadOption{of: entryOf{epoch: epoch}} }

// meant is the order that Of or OfEpoch asks for.
func meant(opts []ReadOption) (of entryOf) {
	for _, o := range opts {
		if o.mode == 0 {
			of = o.of
		}
	}
	return of
}

// is reports whether the order is the one that is meant.
func (of entryOf) is(o *Order) bool {
	if of.hash != 0 {
		return o.Hash() == of.hash
	}
	return of.epoch == 0 || o.Epoch == of.epoch
}

// modeOf is the mode that the options ask for.
func modeOf(opts []ReadOption) (ReadMode, error) {
	mode := Confirmed
	for _, o := range opts {
		if o.of == (entryOf{}) {
			mode = o.mode
		}
	}
	if mode < Confirmed || mode > Backup {
		return 0, fmt.Errorf("client: read mode is %d, allowed: Confirmed, Leased, Backup", mode)
	}
	return mode, nil
}

// Order is a committed order as it stands in the log.
type Order struct {
	ID        wire.OrderID
	Epoch     uint64    // in which it was sequenced
	Received  time.Time // by the primary
	ClOrdID   string
	Symbol    string // "" if the message has none
	Account   string // "" if the message has none
	Side      byte   // FIX tag 54, 0 if none
	FIX       []byte // the message verbatim
	Entry     []byte // the log entry, header included
	CommitSeq uint64 // committed prefix of the replica that answered
	From      string // address of that replica
}

// Hash of the order's log entry, that of its receipt.
func (o *Order) Hash() uint64 { return order.Hash(o.Entry) }

// Name is the id of the order with epoch and hash, as Receipt.Name.
func (o *Order) Name() string { return named(o.ID, o.Epoch, o.Hash()) }

// Get reads the order at a place in a partition's log. ErrNotFound: no order is committed there;
// ErrFreed: it was, and is now downstream. Failed attempts are repeated until ctx or RequestTimeout
// ends.
func (c *Client) Get(ctx context.Context, id wire.OrderID, opts ...ReadOption) (Order, error) {
	if err := c.checkPartition(id.Partition); err != nil {
		return Order{}, err
	}
	if id.Seq == 0 {
		return Order{}, badOrderID(id)
	}
	o, err := c.get(ctx, id.Partition, &wire.Get{By: wire.ByID, Seq: id.Seq}, opts)
	if errors.Is(err, ErrNotFound) {
		return o, fmt.Errorf("client: order %s: %w", id, err)
	}
	if of := meant(opts); err == nil && !of.is(&o) {
		info, _ := c.partition(id.Partition)
		return Order{}, &OtherOrderError{ID: id, Epoch: of.epoch, Hash: of.hash, Found: o.Name(), Lineage: info.Lineage}
	}
	return o, err
}

// GetByClOrdID reads the order with this ClOrdID: from the partition it belongs
// to, and if that has none from all others (an order may have been sent with
// SubmitTo). ErrFreed: none is held, and it may have been: a partition has freed entries.
func (c *Client) GetByClOrdID(ctx context.Context, clOrdID string, opts ...ReadOption) (Order, error) {
	if clOrdID == "" || len(clOrdID) > wire.MaxKey {
		return Order{}, badClOrdID(len(clOrdID))
	}
	request := wire.Get{By: wire.ByClOrdID, Key: []byte(clOrdID)}
	n := len(c.table.Load().parts)
	first, freed := int(c.RouteClOrdID(request.Key)), error(nil)
	for i := range n {
		o, err := c.get(ctx, wire.PartitionID((first+i)%n), &request, opts)
		if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrFreed) {
			return o, err
		}
		if freed == nil && errors.Is(err, ErrFreed) {
			freed = err
		}
	}
	if freed != nil {
		return Order{}, freed
	}
	return Order{}, fmt.Errorf("client: ClOrdID %.80q in %d partitions: %w", clOrdID, n, ErrNotFound)
}

func badOrderID(id wire.OrderID) error {
	return fmt.Errorf("client: order id is %s, allowed: a seq of 1 or more", id)
}

func badClOrdID(n int) error {
	return fmt.Errorf("client: ClOrdID has %d bytes, allowed: 1..%d", n, wire.MaxKey)
}

// get asks one partition until it has an answer.
func (c *Client) get(ctx context.Context, p wire.PartitionID, request *wire.Get, opts []ReadOption) (Order, error) {
	mode, err := modeOf(opts)
	if err != nil {
		return Order{}, err
	}
	var reply wire.GetReply
	from, err := c.retry(ctx, p, mode == Backup, func(ctx context.Context, addr string) error {
		return c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
			m := *request
			m.ReqID, m.Mode = reqID, uint8(mode)
			return wire.AppendGet(dst, p, &m)
		}, func(frame []byte) error {
			if err := wire.DecodeGetReply(frame, &reply); err != nil {
				return err
			}
			return checkReply(request, &reply)
		})
	})
	if err != nil {
		return Order{}, err
	}
	switch reply.Status {
	case wire.GetNotFound:
		return Order{}, ErrNotFound
	case wire.GetFreed:
		return Order{}, freedError(p, request, reply.Freed)
	}
	v := OrderView{partition: p, from: from, commit: reply.CommitSeq, entry: reply.Entry}
	return v.Order(), nil
}

// retry runs an idempotent request against the right replica until it succeeds,
// is refused for good, or time is over. It returns the address that answered.
func (c *Client) retry(ctx context.Context, p wire.PartitionID, backup bool, request func(ctx context.Context, addr string) error) (string, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.RequestTimeout)
		defer cancel()
	}
	var back backoff
	var last error
	began, known, hint := nanotime(), c.epochOf(p), ""
	for back.wait(ctx.Done(), c.cfg.RetryMax) {
		addr := hint
		if addr == "" {
			addr = c.replica(p, backup, back.attempts)
		}
		hint = ""
		if addr == "" {
			last = fmt.Errorf("%s has no primary at epoch %d", p, c.epochOf(p))
		} else {
			attempt, cancel := context.WithTimeout(ctx, c.attemptTimeout(2*time.Duration(nanotime()-began)))
			last = request(attempt, addr)
			cancel()
		}
		var reject *RejectError
		var not *notPrimaryError
		switch {
		case last == nil:
			return addr, nil
		case errors.Is(last, ErrClosed) || permanent(last) || finalAnswer(last) || errors.As(last, &reject) && !passing(reject.Code):
			return "", last
		case errors.As(last, &not) && not.hint != "" && not.hint != addr:
			if hint = not.hint; not.epoch > known {
				known, back = not.epoch, backoff{} // news: at once
			}
			continue
		}
		refresh, cancel := context.WithTimeout(ctx, c.attemptTimeout(0))
		c.refresh(refresh, p, addr) //nolint:errcheck // the next attempt shows it
		cancel()
	}
	return "", fmt.Errorf("client: %s: %w: %w", p, ErrUnavailable, join(ctx.Err(), last))
}

// passing reports whether a refused read can succeed later.
func passing(code wire.Code) bool {
	return code == wire.CodeDraining || code == wire.CodeOverloaded || code == wire.CodeInsufficientInSync || code == wire.CodeReaderAhead
}

// replica selects the target: the primary, or for backup reads the in-sync
// copies in turn, the primary last.
func (c *Client) replica(p wire.PartitionID, backup bool, attempt int) string {
	info, _ := c.partition(p)
	if !backup {
		return info.Primary.Address
	}
	var copies []string
	for _, m := range info.Members {
		if m.InSync && m.ID != info.Primary.ID {
			copies = append(copies, m.Address)
		}
	}
	if info.Primary.Address != "" {
		copies = append(copies, info.Primary.Address)
	}
	if len(copies) == 0 {
		return ""
	}
	return copies[(attempt-1)%len(copies)]
}

// ParseOrder reads an order's id as people write it: p1/17, p1/17@3 with the epoch of
// its receipt, or p1/17@3-1c9f0e2a77b3d401 with the hash too (Receipt.Name). of goes to Get.
func ParseOrder(text string) (id wire.OrderID, of []ReadOption, err error) {
	name, rest, ok := strings.Cut(text, "@")
	if id, err = wire.ParseOrderID(name); err != nil || !ok {
		return id, nil, err
	}
	number, digits, hashed := strings.Cut(rest, "-")
	epoch, err := strconv.ParseUint(number, 10, 64)
	if err != nil || epoch == 0 {
		return wire.OrderID{}, nil, fmt.Errorf("order id: epoch is %.40q, allowed: 1 or more, as in the receipt", number)
	}
	hash := uint64(0)
	if hashed {
		if hash, err = strconv.ParseUint(digits, 16, 64); err != nil || len(digits) != 16 || hash == 0 {
			return wire.OrderID{}, nil, fmt.Errorf("order id: hash is %.40q, allowed: 16 hex digits, as in the receipt", digits)
		}
	}
	return id, []ReadOption{{of: entryOf{epoch, hash}}}, nil
}
