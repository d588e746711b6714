package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Record is what a function of kind Post made of a committed order.
type Record struct {
	Partition wire.PartitionID
	Entry     uint64 // of the order
	Function  string
	// Fault is "" or why the call failed: "out of fuel", "calls too deep", "trap", "bad
	// result". Then there are no Bytes.
	Fault string
	Bytes []byte
}

var recordFaults = [...]string{"", "out of fuel", "calls too deep", "trap", "bad result"}

// FaultOf is the number of a Record's Fault, as it is in frames.
func FaultOf(text string) uint8 { return uint8(max(slices.Index(recordFaults[:], text), 0)) }

// ReadRecords calls fn for every record of the committed entries of a replica from entry from
// on, and returns the entry to go on with: the one behind those that were committed at the
// end of the read. replica is the address of a member of the partition; "" means the primary.
// ErrSnapshotRequired: records of entry from are no longer held; the *RejectError's Detail is
// the last entry of which that is so.
func (c *Client) ReadRecords(ctx context.Context, partition wire.PartitionID, replica string, from uint64, fn func(Record) error) (next uint64, err error) {
	if err := c.checkPartition(partition); err != nil {
		return from, err
	}
	if from == 0 {
		return from, errors.New("client: ReadRecords: from is 0, allowed: an entry of 1 or more")
	}
	for {
		var m wire.RecordsRead
		ask := func(ctx context.Context, addr string) error {
			return c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
				return wire.AppendReadRecords(dst, partition, &wire.ReadRecords{ReqID: reqID, From: from})
			}, func(frame []byte) error { return wire.DecodeRecordsRead(frame, &m) })
		}
		if replica != "" {
			err = ask(ctx, replica)
		} else {
			_, err = c.retry(ctx, partition, false, ask)
		}
		if err != nil {
			return from, fmt.Errorf("read the records of %s from entry %d: %w", partition, from, err)
		}
		if m.Through+1 < from || m.Through > m.CommitSeq && m.Through+1 != from {
			return from, fmt.Errorf("read the records of %s from entry %d: the answer goes through entry %d, allowed: %d..%d", partition, from, m.Through, from-1, m.CommitSeq)
		}
		for rest := m.Records; len(rest) > 0; {
			var r wire.Record
			if rest, err = wire.NextRecord(rest, &r); err != nil {
				return from, err
			}
			if r.Entry < from || r.Entry > m.Through {
				return from, fmt.Errorf("read the records of %s from entry %d: one is of entry %d, allowed: %d..%d", partition, from, r.Entry, from, m.Through)
			}
			if err := fn(Record{Partition: partition, Entry: r.Entry, Function: r.Function, Fault: recordFaults[r.Fault], Bytes: r.Bytes}); err != nil {
				return from, err
			}
		}
		done := m.Through+1 == from || m.Through == m.CommitSeq
		if from = m.Through + 1; done {
			return from, nil
		}
	}
}
