package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Orphan is an order that a site acknowledged, and that is not in the history of the site which replaced it.
type Orphan struct {
	ID        string    `json:"id"` // at the replaced site: p1/17
	Hash      string    `json:"hash"`
	Epoch     uint32    `json:"epoch"`
	Received  time.Time `json:"received"` // by its primary
	Session   uint32    `json:"session"`
	ClientSeq uint64    `json:"clientSeq"`
	ClOrdID   string    `json:"clOrdID"`
	Account   string    `json:"account,omitempty"`
	Symbol    string    `json:"symbol,omitempty"`
	Side      string    `json:"side,omitempty"` // FIX tag 54
	Quantity  string    `json:"quantity,omitempty"`
	Price     string    `json:"price,omitempty"`
	// Now is where the new history has an order of that ClOrdID, sent again by its client; empty: it has none.
	Now string `json:"now,omitempty"`
}

// Fork is where two histories of a partition part.
type Fork struct {
	Partition string `json:"partition"`
	Seq       uint64 `json:"seq"`  // last entry of both
	Hash      string `json:"hash"` // of it
	OldEnd    uint64 `json:"oldEnd"`
	NewEnd    uint64 `json:"newEnd"`
	Entries   uint64 `json:"entries"` // that only the replaced site has, of every kind
	Orders    int    `json:"orders"`  // of those
	SentAgain int    `json:"sentAgain"`
}

// errEnough ends a read.
var errEnough = errors.New("enough")

// Orphans reports, order by order, what only the old site holds of a partition. Both clients have the permission Admin.
// Nothing is changed at either site.
func Orphans(ctx context.Context, old, now *client.Client, p wire.PartitionID, fn func(Orphan) error) (Fork, error) {
	f := Fork{Partition: p.String()}
	seq, hash, err := forkOf(ctx, old, now, p, &f)
	if err != nil {
		return f, err
	}
	f.Seq, f.Hash, f.Entries = seq, fmt.Sprintf("%016x", hash), f.OldEnd-seq
	if f.Entries == 0 {
		return f, nil
	}
	_, err = old.ReadLog(ctx, p, "", seq+1, func(e client.LogEntry) error {
		if e.Seq > f.OldEnd || e.Kind != order.KindOrder {
			return nil
		}
		o := orphanOf(p, &e)
		at, err := now.GetByClOrdID(ctx, o.ClOrdID)
		switch {
		case err == nil:
			o.Now = at.Name()
			f.SentAgain++
		case !errors.Is(err, client.ErrNotFound):
			return fmt.Errorf("order %s at the site that goes on: %w", o.ClOrdID, err)
		}
		f.Orders++
		return fn(o)
	})
	return f, err
}

// orphanOf copies what a report has of an order.
func orphanOf(p wire.PartitionID, e *client.LogEntry) Orphan {
	v, _ := e.Order(p)
	o := Orphan{ID: v.ID.String(), Hash: fmt.Sprintf("%016x", order.Hash(e.Bytes)), Epoch: e.Epoch, Received: v.Received.UTC(), Session: e.Session, ClientSeq: e.ClientSeq,
		ClOrdID: v.ClOrdID, Account: v.Account, Symbol: v.Symbol, Quantity: fieldAt(v.FIX, e.Fields.QtyOff), Price: fieldAt(v.FIX, e.Fields.PriceOff)}
	if v.Side != 0 {
		o.Side = string(rune(v.Side))
	}
	return o
}

// fieldAt is the value of a FIX field that begins at off; 0: there is none.
func fieldAt(fix []byte, off uint16) string {
	if off == 0 || int(off) >= len(fix) {
		return ""
	}
	value := fix[off:]
	if i := bytes.IndexByte(value, 1); i >= 0 {
		value = value[:i]
	}
	return string(value)
}

// forkOf finds the last entry that both logs have. A log is a chain of hashes, so entries of one number and hash have
// the same entries before them.
func forkOf(ctx context.Context, old, now *client.Client, p wire.PartitionID, f *Fork) (seq, hash uint64, err error) {
	first := uint64(1)
	for _, s := range []struct {
		c    *client.Client
		what string
		end  *uint64
	}{{old, "the replaced site", &f.OldEnd}, {now, "the site that goes on", &f.NewEnd}} {
		end, err := s.c.ReadLog(ctx, p, "", 1<<62, nil)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", s.what, err)
		}
		*s.end = end.CommitSeq
		held, err := firstHeld(ctx, s.c, p)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", s.what, err)
		}
		first = max(first, held)
	}
	last := min(f.OldEnd, f.NewEnd)
	if last < first {
		if first == 1 {
			return 0, 0, nil // one of the logs is empty
		}
		return 0, 0, fmt.Errorf("%s: the logs have no entry in common: one begins with entry %d, the other ends with %d; compare what the sinks of both hold", p, first, last)
	}
	same := func(seq uint64) (bool, uint64, error) {
		a, err := hashAt(ctx, old, p, seq)
		if err != nil {
			return false, 0, fmt.Errorf("the replaced site: %w", err)
		}
		b, err := hashAt(ctx, now, p, seq)
		if err != nil {
			return false, 0, fmt.Errorf("the site that goes on: %w", err)
		}
		return a == b, a, nil
	}
	lo, hi := first-1, last // lo is the same, hi+1 is not
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		ok, h, err := same(mid)
		switch {
		case err != nil:
			return 0, 0, err
		case ok:
			lo, hash = mid, h
		default:
			hi = mid - 1
		}
	}
	if lo == first-1 && first > 1 {
		return 0, 0, fmt.Errorf("%s: entry %d differs, and what is before is freed: the histories part in what only the sinks hold", p, first)
	}
	return lo, hash, nil
}

// firstHeld is the first entry that a log has not freed.
func firstHeld(ctx context.Context, c *client.Client, p wire.PartitionID) (uint64, error) {
	_, err := hashAt(ctx, c, p, 1)
	var reject *client.RejectError
	switch {
	case errors.Is(err, client.ErrSnapshotRequired) && errors.As(err, &reject):
		return reject.Detail + 1, nil
	case err != nil && !errors.Is(err, errNoEntry):
		return 0, err
	}
	return 1, nil
}

var errNoEntry = errors.New("no such entry")

// hashAt is the hash of one entry.
func hashAt(ctx context.Context, c *client.Client, p wire.PartitionID, seq uint64) (hash uint64, err error) {
	found := false
	_, err = c.ReadLog(ctx, p, "", seq, func(e client.LogEntry) error {
		hash, found = order.Hash(e.Bytes), true
		return errEnough
	})
	switch {
	case found:
		return hash, nil
	case err == nil:
		return 0, fmt.Errorf("entry %d of %s: %w", seq, p, errNoEntry)
	}
	return 0, err
}
