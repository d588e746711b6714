// Package sink carries the committed log of a grid's partitions to systems outside it. A Target is one of these
// systems, a Runner follows the log and writes what comes to it, batch after batch.
//
// Exactly once rests on the target alone: a batch and the position behind it become durable in one step, the position
// is read back when a writer opens, and opening fences every writer before. The grid only keeps entries until the
// sink has advanced over them.
package sink

import (
	"context"
	"errors"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Target is a system that holds the log of a grid's partitions.
type Target interface {
	// Open returns the writer of a partition. Once it has returned, no batch of an earlier writer of the partition, in
	// this process or another, takes effect any more. Open returns a *PermanentError for what a retry cannot mend.
	Open(ctx context.Context, p wire.PartitionID) (Writer, error)
	Close() error
}

// Writer writes one partition's log. It is for one goroutine.
type Writer interface {
	// Position is the last entry that the target holds, with everything before it; the zero Position for none.
	Position() client.Position
	// Write makes the batch and its Through durable, all or nothing. After an error it is unknown which: the Runner
	// closes the writer and opens another one. ErrFenced: another writer of the partition was opened since.
	Write(ctx context.Context, b *Batch) error
	Close() error
}

// Passer is a Writer that may pass over batches which have nothing for its target. Passed
// reports whether the last Write did: Position is where it was, and the grid keeps the entries.
type Passer interface {
	Passed() bool
}

// Batch is a run of a partition's committed log. Write must not keep any part of it.
type Batch struct {
	Partition wire.PartitionID
	From      uint64            // first entry; the one behind the batch before
	Through   client.Position   // last entry: seq, hash and lineage
	Entries   []client.LogEntry // all of From..Through.Seq, of every kind, by seq
	Orders    int               // entries that are orders
	Bytes     int               // size of the entries, header and payload
	// Executions of From..Through, by entry and number, where Config.Executions asks for them.
	Executions []client.Executed
}

// ErrFenced is returned by Write when another writer of the partition has been opened.
var ErrFenced = errors.New("fenced: another writer of this sink and partition was opened")

// PermanentError is an error of a target that no retry mends: bad credentials, a table with other columns, a topic
// with another number of partitions. Nothing is lost by it: the grid holds the entries until it is mended.
type PermanentError struct {
	What   string // field or object, and its value
	Remedy string // what is allowed, or what to do
	Err    error  // of the target's client, or nil
}

func (e *PermanentError) Error() string {
	text := e.What
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Remedy
}

func (e *PermanentError) Unwrap() error { return e.Err }
