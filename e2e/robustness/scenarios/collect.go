package scenarios

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/robustness/faults"
	"github.com/ordergrid/ordergrid/e2e/robustness/history"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// patience is how long copies and sinks may take to hold what was acknowledged,
// once the traffic has ended.
const patience = 30 * time.Second

// collect reads every copy of every log, and every file of the sinks, into h.
func collect(ctx context.Context, target faults.Target, c *client.Client, h *history.History) error {
	streams := map[fixorder.ID]int{}
	for i := range h.Streams {
		streams[h.Streams[i].ID] = i
	}
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	acked := map[wire.PartitionID]uint64{}
	for _, p := range h.Partitions {
		acked[p] = lastAcked(h, p)
	}
	// Sinks first: a log may still grow by an entry of its own (a cursor), which
	// would then be downstream and in no copy.
	if err := readSinks(ctx, target, h, streams, acked); err != nil {
		return err
	}
	for _, row := range c.Table() {
		for _, m := range row.Members {
			h.Logs = append(h.Logs, readLog(ctx, c, row, m, streams, acked[row.ID]))
		}
	}
	return nil
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

// readLog reads one copy, up to what was acknowledged at least.
func readLog(ctx context.Context, c *client.Client, row row, m client.Member, streams map[fixorder.ID]int, acked uint64) history.Log {
	l := history.Log{Partition: row.ID, Where: m.ID + " at " + m.Address, InSync: m.InSync, Primary: m.ID == row.Primary.ID}
	from := uint64(1)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		end, err := c.ReadLog(ctx, row.ID, m.Address, from, func(e client.LogEntry) error {
			out := history.Entry{Seq: e.Seq, Epoch: uint64(e.Epoch), Prev: e.PrevHash, Hash: order.Hash(e.Bytes), Stream: history.NoOrder}
			if e.Kind == order.KindOrder {
				fix := order.Payload(e.Bytes)
				identify(&out, order.ClOrdID(e.Bytes), streams)
				out.Corrupt = out.Stream >= 0 && fixorder.Check(fix) != nil
			}
			l.Entries = append(l.Entries, out)
			return nil
		})
		l.Committed, from = end.CommitSeq, end.NextSeq
		if err == nil && l.Committed >= acked {
			return l
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			if err == nil {
				err = fmt.Errorf("its committed prefix is %d, acknowledged was %d", l.Committed, acked)
			}
			l.Error = err.Error()
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

// readSinks waits until the files hold everything acknowledged.
func readSinks(ctx context.Context, target faults.Target, h *history.History, streams map[fixorder.ID]int, acked map[wire.PartitionID]uint64) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		files, err := target.SinkFiles(ctx)
		if err != nil {
			return fmt.Errorf("sinks: %w", err)
		}
		h.Sinks = nil
		reached := map[wire.PartitionID]uint64{}
		for where, path := range files {
			l, err := readSink(where, path, streams)
			if err != nil {
				l.Error = err.Error()
			}
			if n := len(l.Entries); n > 0 {
				reached[l.Partition] = max(reached[l.Partition], l.Entries[n-1].Seq)
			}
			h.Sinks = append(h.Sinks, l)
		}
		short := false
		for p, end := range acked {
			short = short || reached[p] < end
		}
		if !short || time.Now().After(deadline) || ctx.Err() != nil {
			return ctx.Err() // what is missing is a finding, not an error
		}
	}
}

// readSink reads one file of a file sink (package grid-node/writebehind). A last
// line without its end is being written and not there yet.
func readSink(where, path string, streams map[fixorder.ID]int) (history.Log, error) {
	l := history.Log{Where: where}
	f, err := os.Open(path)
	if err != nil {
		return l, err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return l, nil
		case err != nil:
			return l, fmt.Errorf("line %d: %w", n, err)
		case n == 1:
			if l.Partition, err = sinkPartition(line); err != nil {
				return l, err
			}
			continue
		}
		e, err := sinkLine(line[:len(line)-1], streams)
		if err != nil {
			return l, fmt.Errorf("line %d: %w", n, err)
		}
		l.Entries = append(l.Entries, e)
	}
}

func sinkPartition(header []byte) (wire.PartitionID, error) {
	for f := range strings.FieldsSeq(string(header)) {
		if name, ok := strings.CutPrefix(f, "partition="); ok && bytes.HasPrefix(header, []byte("# ordergrid sink v1 ")) {
			return wire.ParsePartitionID(name)
		}
	}
	return 0, fmt.Errorf("line 1 is %.60q, allowed: the header of a file sink", header)
}

const sinkColumns = 10

func sinkLine(line []byte, streams map[fixorder.ID]int) (e history.Entry, err error) {
	f := bytes.SplitN(line, []byte{'\t'}, sinkColumns+1)
	if len(f) != sinkColumns {
		return e, fmt.Errorf("%d columns, allowed: %d", len(f), sinkColumns)
	}
	for _, c := range []struct {
		column, base int
		to           *uint64
	}{{0, 10, &e.Seq}, {1, 10, &e.Epoch}, {2, 10, &e.Lineage}, {7, 16, &e.Hash}} {
		if *c.to, err = strconv.ParseUint(string(f[c.column]), c.base, 64); err != nil {
			return e, fmt.Errorf("column %d is %.40q, allowed: a number", c.column+1, f[c.column])
		}
	}
	e.Stream = history.NoOrder
	if string(f[3]) == order.KindOrder.String() {
		identify(&e, f[8], streams)
		fix := bytes.ReplaceAll(f[9], []byte{'|'}, []byte{1}) // nothing of ours is escaped
		e.Corrupt = e.Stream >= 0 && fixorder.Check(fix) != nil
	}
	return e, nil
}
