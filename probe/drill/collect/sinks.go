package collect

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

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// Files are sinks whose files are on this machine: list returns them by name.
type Files func(ctx context.Context) (map[string]string, error)

// List implements Sinks.
func (f Files) List(ctx context.Context) (map[string]Open, error) {
	paths, err := f(ctx)
	out := make(map[string]Open, len(paths))
	for name, path := range paths {
		out[name] = func(context.Context) (io.ReadCloser, error) { return os.Open(path) }
	}
	return out, err
}

// readSink reads one file of a file sink (package grid-node/sink/file). A last line without its end
// is being written and is ignored.
func readSink(ctx context.Context, where string, open Open, streams map[fixorder.ID]int, h *history.History) (history.Log, error) {
	l := history.Log{Where: where, Partition: partitionOf(where)}
	f, err := open(ctx)
	if err != nil {
		return l, err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, 1<<20)
	base, k := uint64(0), newChecker(h)
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
			base = h.Base(l.Partition).Seq
			continue
		}
		e, err := sinkLine(line[:len(line)-1], streams, k)
		if err != nil {
			return l, fmt.Errorf("line %d: %w", n, err)
		}
		if e.Seq > base { // entries from before the run are ignored
			l.Entries = append(l.Entries, e)
		}
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

func sinkLine(line []byte, streams map[fixorder.ID]int, k *checker) (e history.Entry, err error) {
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
		fix := bytes.ReplaceAll(f[9], []byte{'|'}, []byte{1}) // our messages need no escaping
		e.Corrupt = e.Stream >= 0 && k.check(e.Stream, e.Index, fix) != nil
	}
	return e, nil
}
