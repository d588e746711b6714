// Package collect reads, when a run is over, every copy of every partition's log and all downstream
// orders into the run's history.
package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Patience is how long copies and sinks may take to hold the acknowledged orders, once the traffic
// has ended.
const Patience = 30 * time.Second

// Sinks are the file sinks of a grid.
type Sinks interface {
	// List returns every present file of every sink, by a display name.
	List(ctx context.Context) (map[string]Open, error)
}

// Open opens one file of a sink, in the line format of package
// grid-node/sink/file.
type Open func(ctx context.Context) (io.ReadCloser, error)

// All queries the grid for its copies and then does what Read does.
func All(ctx context.Context, c *client.Client, sinks Sinks, h *history.History) error {
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	return Read(ctx, c, sinks, h, Patience)
}

// Read reads every copy of every log that c knows, and every file of the sinks, into h. sinks is
// nil where none can be read.
func Read(ctx context.Context, c *client.Client, sinks Sinks, h *history.History, patience time.Duration) error {
	streams := map[fixorder.ID]int{}
	for i := range h.Streams {
		streams[h.Streams[i].ID] = i
	}
	acked := map[wire.PartitionID]uint64{}
	for _, p := range h.Partitions {
		acked[p] = lastAcked(h, p)
	}
	// Sinks first: a log may still grow by an entry of its own (a cursor), which
	// would then be downstream and in no copy.
	if sinks != nil {
		if err := readSinks(ctx, sinks, h, streams, acked, patience); err != nil {
			return err
		}
	}
	type copied struct {
		log     history.Log
		decided history.Decided
	}
	var copies []func() copied
	for _, row := range c.Table() {
		for _, m := range row.Members {
			copies = append(copies, func() copied {
				k := newChecker(h)
				l := readLog(ctx, c, row, m, streams, k.check, h.Base(row.ID), acked[row.ID], patience)
				return copied{l, k.decided(&l)}
			})
		}
	}
	for _, x := range atOnce(copies) {
		h.Logs = append(h.Logs, x.log)
		if h.Functions != nil {
			h.Functions.Decided = append(h.Functions.Decided, x.decided)
		}
	}
	if c.BySymbol() {
		readExecutions(ctx, c, h)
	}
	if h.Functions != nil && len(h.Functions.Post) > 0 {
		readRecords(ctx, c, h)
	}
	return nil
}

// atOnce waits for all of them concurrently: each copy that does not answer takes the whole
// patience.
func atOnce[T any](reads []func() T) []T {
	out := make([]T, len(reads))
	var wg sync.WaitGroup
	for i, read := range reads {
		wg.Go(func() { out[i] = read() })
	}
	wg.Wait()
	return out
}

func lastAcked(h *history.History, p wire.PartitionID) (last uint64) {
	for i := range h.Streams {
		if h.Streams[i].Partition != p {
			continue
		}
		for j := range h.Streams[i].Orders {
			if o := &h.Streams[i].Orders[j]; o.Fate == load.Acked {
				last = max(last, o.Seq)
			}
		}
	}
	return last
}

// readLog reads one copy, from the end of the log before the run, up to at least the acknowledged
// orders.
func readLog(ctx context.Context, c *client.Client, row client.PartitionInfo, m client.Member, streams map[fixorder.ID]int, check func(int, int64, []byte) error, base history.Base, acked uint64, patience time.Duration) history.Log {
	l := history.Log{Partition: row.ID, Where: m.ID + " at " + m.Address, InSync: m.InSync, Primary: m.ID == row.Primary.ID}
	from := base.Seq + 1
	keep := func(e client.LogEntry) error {
		out := history.Entry{Seq: e.Seq, Epoch: uint64(e.Epoch), Prev: e.PrevHash, Hash: order.Hash(e.Bytes), Stream: history.NoOrder}
		if e.Kind.IsOrder() {
			identify(&out, order.ClOrdID(e.Bytes), streams)
			out.Corrupt = out.Stream >= 0 && check(out.Stream, out.Index, order.Message(e.Bytes)) != nil
		}
		l.Entries = append(l.Entries, out)
		return nil
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		end, err := c.ReadLog(ctx, row.ID, m.Address, from, keep)
		l.Committed, from = end.CommitSeq, end.NextSeq
		if err == nil && l.Committed >= acked {
			return l
		}
		if over := time.Now().After(deadline); err == nil && over {
			// It was read completely: what is not in it is missing, not unknown.
			l.Short = fmt.Sprintf("%s after the traffic its committed prefix is %d, acknowledged was %d", patience, l.Committed, acked)
			return l
		} else if over || ctx.Err() != nil || errors.Is(err, client.ErrSnapshotRequired) {
			l.Error = errors.Join(err, ctx.Err()).Error()
			return l
		}
	}
}

func identify(e *history.Entry, clOrdID []byte, streams map[fixorder.ID]int) {
	e.Stream = history.Foreign
	if id, index, ok := fixorder.ParseID(clOrdID); ok {
		if s, known := streams[id]; known {
			e.Stream, e.Index = s, index
		}
	}
}

// readSinks waits until the files hold everything acknowledged, as long as they grow and for
// patience more: a pod that became primary continues at the end of its own file, which may be the
// beginning.
func readSinks(ctx context.Context, sinks Sinks, h *history.History, streams map[fixorder.ID]int, acked map[wire.PartitionID]uint64, patience time.Duration) error {
	deadline, before := time.Now().Add(patience), uint64(0)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		files, err := sinks.List(ctx)
		if err != nil {
			return fmt.Errorf("sinks: %w", err)
		}
		h.Sinks = nil
		reached, unread := map[wire.PartitionID]uint64{}, false
		for _, where := range slices.Sorted(maps.Keys(files)) {
			l, err := readSink(ctx, where, files[where], streams, h)
			if err != nil {
				l.Error, unread = err.Error(), true
			}
			if n := len(l.Entries); n > 0 {
				reached[l.Partition] = max(reached[l.Partition], l.Entries[n-1].Seq)
			}
			h.Sinks = append(h.Sinks, l)
		}
		short, sum := unread, uint64(0)
		for p, end := range acked {
			short, sum = short || reached[p] < end, sum+reached[p]
		}
		if sum > before {
			deadline, before = time.Now().Add(patience), sum
		}
		if !short || time.Now().After(deadline) || ctx.Err() != nil {
			return ctx.Err() // missing orders are a finding, not an error
		}
		time.Sleep(pause) // a file may be gigabytes, and is read from its beginning
	}
}
