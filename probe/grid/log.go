package grid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/ledger"
)

// LogEnd is the end of a copy's committed log. Hash is that of the last entry, if Known: a log that
// is being written to may have grown meanwhile.
type LogEnd struct {
	Seq, Hash uint64
	Known     bool
}

// errStop ends a read without being an error.
var errStop = errors.New("stop")

// End finds where a copy's committed log ends, without reading it: the last
// entry only.
func (g *Grid) End(ctx context.Context, p wire.PartitionID, address string) (LogEnd, error) {
	// The first chunk has the end of the log; its entries are ignored.
	at, err := g.c.ReadLog(ctx, p, address, 1, func(client.LogEntry) error { return errStop })
	if err != nil && !errors.Is(err, errStop) {
		return LogEnd{}, err
	}
	out := LogEnd{Seq: at.CommitSeq}
	if out.Seq == 0 {
		return out, nil
	}
	_, err = g.c.ReadLog(ctx, p, address, out.Seq, func(e client.LogEntry) error {
		out.Hash, out.Known = order.Hash(e.Bytes), true
		return errStop
	})
	if err != nil && !errors.Is(err, errStop) {
		return LogEnd{}, err
	}
	return out, nil
}

// ErrShort means that a copy's committed log never reached the acknowledged orders.
var ErrShort = errors.New("the log ends before the acknowledged orders")

// catchUp is how long a copy may take to commit what its primary acknowledged; the primary sends it
// with the next batch, or with a heartbeat every few ms.
const catchUp = 5 * time.Second

// ReadLog passes every committed entry of a copy from sequence number from on to fn, and waits for
// a copy that is behind until its committed log reaches atLeast; if it does not within a few
// seconds, the error is ErrShort.
func (g *Grid) ReadLog(ctx context.Context, p wire.PartitionID, address string, from, atLeast uint64, fn func(ledger.Entry)) error {
	for deadline := time.Now().Add(catchUp); ; {
		end, err := g.c.ReadLog(ctx, p, address, from, func(e client.LogEntry) error {
			fn(entry(e))
			return nil
		})
		if err != nil {
			return err
		}
		if from = end.NextSeq; from > atLeast {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s at %s: %w: at %d, acknowledged up to %d", p, address, ErrShort, from-1, atLeast)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func entry(e client.LogEntry) ledger.Entry {
	out := ledger.Entry{Seq: e.Seq, PrevHash: e.PrevHash, Hash: order.Hash(e.Bytes), IsOrder: e.Kind.IsOrder()}
	if out.IsOrder {
		out.FIX, out.ClOrdID = order.Message(e.Bytes), order.ClOrdID(e.Bytes) // within the entry: the client has checked it
	}
	return out
}
