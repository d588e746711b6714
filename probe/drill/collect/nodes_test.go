package collect

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// listed is a sink whose files change between two lists.
type listed []map[string]Open

func (l *listed) List(context.Context) (map[string]Open, error) {
	now := (*l)[0]
	if len(*l) > 1 {
		*l = (*l)[1:]
	}
	return now, nil
}

func text(s string) Open {
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }
}

// A file that cannot be opened is an unread one of its partition, and only entries after the end of
// the log before the run count.
func TestReadSinks(t *testing.T) {
	message, streams := fix(t), map[fixorder.ID]int{id: 0}
	first := header + line(t, "7", id.ClOrdID(3), message)
	refused := func(context.Context) (io.ReadCloser, error) { return nil, errors.New("connection refused") }
	sinks := &listed{
		{"of p1 at 10.0.0.7:7400": refused},
		{"a.log": text(first)},
		{"a.log": text(first + line(t, "8", id.ClOrdID(4), message)), "of p1 at 10.0.0.7:7400": refused},
	}
	p := wire.PartitionID(1)
	h := &history.History{Partitions: []wire.PartitionID{p}, Bases: []history.Base{{Partition: p, Seq: 7}}}
	if err := readSinks(t.Context(), sinks, h, streams, map[wire.PartitionID]uint64{p: 8}, 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if len(h.Sinks) != 2 || h.Sinks[0].Where != "a.log" || len(h.Sinks[0].Entries) != 1 || h.Sinks[0].Entries[0].Seq != 8 {
		t.Fatalf("%+v", h.Sinks)
	}
	if l := h.Sinks[1]; l.Partition != p || l.Error != "connection refused" {
		t.Errorf("%+v", l)
	}
}
