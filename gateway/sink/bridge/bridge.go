// Package bridge puts what functions of kind Post make of a grid's orders onto the log of
// another grid: docs/bridge.md, docs/adr/0081.
//
// A key of a region of the other grid has the position. Each value is put on the condition
// that the one before is there, so what it brings and the position behind it are one entry of
// the other log: once, in order, whatever fails at either end.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Options of a bridge.
type Options struct {
	Source     *client.Client // of the grid whose functions make the records
	To         *client.Client // of the other one; Close closes it
	Grid, Sink string         // of the source: they name the keys
	Region     string         // of the other grid
	Function   string         // whose records; "" for all
}

type target struct{ Options }

// New returns the target of a sink.
func New(o Options) (sink.Target, error) {
	if n := len(o.Region); n == 0 || n > 48 {
		return nil, fmt.Errorf("region %.60q has %d bytes, allowed: 1..48", o.Region, n)
	}
	if n := len(o.Grid); n == 0 || n > 64 {
		return nil, fmt.Errorf("grid %.80q has %d bytes, allowed: 1..64", o.Grid, n)
	}
	return &target{o}, nil
}

// Close implements sink.Target.
func (t *target) Close() error { return t.To.Close() }

// Open implements sink.Target. It puts a value without records, after which none of an earlier
// writer is put any more: its condition is another one.
func (t *target) Open(ctx context.Context, p wire.PartitionID) (sink.Writer, error) {
	w := &writer{target: t, part: p, region: t.To.Region(t.Region), key: Key(t.Grid, t.Sink, p), me: rand.Uint64()}
	e, err := w.region.Get(ctx, w.key)
	switch {
	case errors.Is(err, client.ErrNotFound):
	case err != nil:
		return nil, w.explain(err)
	default:
		v, err := Parse(e.Value)
		if err != nil {
			return nil, &sink.PermanentError{What: fmt.Sprintf("key %s of region %s", w.key, t.Region), Remedy: "it is another program's: give the bridge a region that nothing else writes to", Err: err}
		}
		w.at, w.version = v.Through, e.Version
	}
	if err := w.put(ctx, w.at, nil, 0); err != nil {
		return nil, err
	}
	return w, nil
}

// mostPassed entries are passed over before the position is put all the same.
const mostPassed = 1024

type writer struct {
	*target
	part    wire.PartitionID
	region  *client.Region
	key     []byte
	me      uint64
	at      client.Position
	version uint64 // of the value that is there; 0: none
	passed  int    // entries behind at, of which nothing has to be put
	over    bool   // the last batch was passed over
	value   []byte
}

// Position implements sink.Writer.
func (w *writer) Position() client.Position { return w.at }

// Passed implements sink.Passer.
func (w *writer) Passed() bool { return w.over }

// Close implements sink.Writer.
func (w *writer) Close() error { return nil }

// Write implements sink.Writer. A batch with more records than a value holds becomes several,
// each of whole entries with the position behind them.
func (w *writer) Write(ctx context.Context, b *sink.Batch) error {
	w.over = false
	if !hasNews(b) {
		if w.passed += len(b.Entries); w.passed < mostPassed {
			w.over = true
			return nil
		}
		return w.put(ctx, b.Through, nil, 0)
	}
	records, err := w.read(ctx, b)
	if err != nil {
		return err
	}
	for {
		n, through := 0, b.Through
		text := w.value[:0]
		for n < len(records) {
			k := n // the records of one entry
			next := text
			for ; k < len(records) && records[k].Entry == records[n].Entry; k++ {
				next = wire.AppendRecord(next, &records[k])
			}
			if len(next) > room {
				break
			}
			text, n = next, k
		}
		w.value = text
		if n < len(records) { // the position behind the entry before
			i := int(records[n].Entry - b.From)
			through = client.Position{Seq: records[n].Entry - 1, Hash: b.Entries[i].PrevHash, Lineage: b.Through.Lineage}
		}
		if err := w.put(ctx, through, text, n); err != nil {
			return err
		}
		if records = records[n:]; len(records) == 0 {
			return nil
		}
	}
}

// hasNews reports whether a batch has more than what readers, and bridges into this grid, make:
// a position for those would be such an entry in the other grid, and so on in a circle.
func hasNews(b *sink.Batch) bool {
	for i := range b.Entries {
		e := &b.Entries[i]
		switch e.Kind {
		case order.KindCursor, order.KindTruncate, order.KindReader:
			continue
		}
		if _, _, ok := FromEntry(e); !ok {
			return true
		}
	}
	return false
}

var errBehind = errors.New("behind the batch")

// read returns the records of a batch's entries. The primary may have committed less than the
// replica that the batch is of, for a moment.
func (w *writer) read(ctx context.Context, b *sink.Batch) (records []wire.Record, err error) {
	for from := b.From; from <= b.Through.Seq; {
		next, err := w.Source.ReadRecords(ctx, w.part, "", from, func(r client.Record) error {
			if r.Entry > b.Through.Seq {
				return errBehind
			}
			if w.Function == "" || w.Function == r.Function {
				records = append(records, wire.Record{Entry: r.Entry, Function: r.Function, Fault: client.FaultOf(r.Fault), Bytes: slices.Clone(r.Bytes)})
			}
			return nil
		})
		switch {
		case errors.Is(err, errBehind):
			return records, nil
		case errors.Is(err, client.ErrSnapshotRequired):
			return nil, &sink.PermanentError{What: fmt.Sprintf("records of %s from entry %d on", w.part, from), Err: err,
				Remedy: "they were freed for memory before they were here: give the grid more, and begin anew with a sink of another name, which begins with what is held"}
		case err != nil:
			return nil, err
		}
		if from = next; from <= b.Through.Seq {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	return records, nil
}

// put makes the next value, if the one before is there.
func (w *writer) put(ctx context.Context, at client.Position, records []byte, n int) error {
	value := append(appendHead(nil, at, w.me, n), records...)
	receipt, err := w.region.PutIf(ctx, w.key, value, w.version, client.Forever())
	if err != nil {
		return w.explain(err)
	}
	w.at, w.version, w.passed = at, receipt.Seq, 0
	return nil
}

func (w *writer) explain(err error) error {
	switch {
	case errors.Is(err, client.ErrConditionFailed):
		return fmt.Errorf("%w: %w", sink.ErrFenced, err)
	case errors.Is(err, client.ErrRegionUnknown), errors.Is(err, client.ErrNotPermitted):
		return &sink.PermanentError{What: fmt.Sprintf("region %s of the other grid", w.Region), Err: err,
			Remedy: "allowed: a region of spec.regions there, and the permissions Read, Write and Submit for this client"}
	}
	return err
}
