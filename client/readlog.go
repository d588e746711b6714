package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// LogEntry is one entry of a partition's committed log.
type LogEntry struct {
	order.Entry        // the decoded header
	Bytes       []byte // header and payload as every replica stores them; valid during the call
}

// Order is a copy of the entry that may be kept, if it is an order's. It does not name the replica
// that answered.
func (e *LogEntry) Order(partition wire.PartitionID) (Order, bool) {
	if !e.Kind.IsOrder() {
		return Order{}, false
	}
	v := OrderView{partition: partition, entry: e.Bytes}
	return v.Order(), true
}

// LogEnd is where a replica's log stood when a read of it ended.
type LogEnd struct {
	Address   string
	Epoch     uint64
	CommitSeq uint64 // its committed prefix
	LastSeq   uint64 // last entry it stores, committed or not
	LastHash  uint64 // hash of that entry
	NextSeq   uint64 // first entry that was not read
	FreedSeq  uint64 // of a LogReader: entries up to here were freed when it began; it has read those behind
}

// LogError reports where a replica's log is invalid.
type LogError struct {
	Partition wire.PartitionID
	Address   string
	Seq       uint64 // of the entry at fault
	What      string
}

func (e *LogError) Error() string {
	return fmt.Sprintf("log of %s at %s: entry %d: %s", e.Partition, e.Address, e.Seq, e.What)
}

// ReadLog calls fn for every committed entry of a replica from seq from on, up
// to its committed prefix at the end of the read. ErrSnapshotRequired: entry from is
// freed; the *RejectError's Detail is the last one that is. replica is the address of a
// member of the partition; "" means the primary. Entries are checked: numbers
// are dense and each entry's prevHash is the hash of the one before.
func (c *Client) ReadLog(ctx context.Context, partition wire.PartitionID, replica string, from uint64, fn func(LogEntry) error) (LogEnd, error) {
	r := LogReader{client: c, partition: partition, replica: replica, end: LogEnd{NextSeq: from}}
	if err := c.checkPartition(partition); err != nil {
		return r.end, err
	}
	if from == 0 {
		return r.end, fmt.Errorf("client: ReadLog: from is 0, allowed: a seq of 1 or more")
	}
	var hash uint64 // of the entry before
	known := from == 1
	for {
		n, err := r.chunk(ctx, func(e LogEntry) error {
			if known && e.PrevHash != hash {
				return r.fault(e.Seq, fmt.Sprintf("prevHash is %016x, allowed: the hash of the entry before, %016x", e.PrevHash, hash))
			}
			hash, known = order.Hash(e.Bytes), true
			return fn(e)
		})
		if err != nil || n == 0 {
			return r.end, err
		}
	}
}

// LogReader reads the log of one replica chunk by chunk, checking that numbers
// are dense, and leaving the hash chain to its user.
type LogReader struct {
	client    *Client
	partition wire.PartitionID
	replica   string
	end       LogEnd
}

// NewLogReader starts at the first entry that the replica at address holds, "" for the
// primary: seq 1, or the one behind those that are freed.
func (c *Client) NewLogReader(partition wire.PartitionID, address string) *LogReader {
	return &LogReader{client: c, partition: partition, replica: address, end: LogEnd{NextSeq: 1}}
}

// End is where the replica's log stood at the last chunk.
func (r *LogReader) End() LogEnd { return r.end }

// Next calls fn for the entries of the next chunk and returns how many there
// were; 0 means that the committed prefix was read.
func (r *LogReader) Next(ctx context.Context, fn func(LogEntry) error) (int, error) {
	for {
		n, err := r.chunk(ctx, fn)
		var reject *RejectError
		if r.end.NextSeq != r.end.FreedSeq+1 || !errors.As(err, &reject) || reject.Code != wire.CodeSnapshotRequired || reject.Detail < r.end.NextSeq {
			return n, err
		}
		r.end.FreedSeq, r.end.NextSeq = reject.Detail, reject.Detail+1 // nothing was read yet
	}
}

func (r *LogReader) chunk(ctx context.Context, fn func(LogEntry) error) (int, error) {
	var m wire.LogChunk
	ask := func(ctx context.Context, addr string) error {
		r.end.Address = addr
		return r.client.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
			return wire.AppendReadLog(dst, r.partition, &wire.ReadLog{ReqID: reqID, FromSeq: r.end.NextSeq})
		}, func(frame []byte) error { return wire.DecodeLogChunk(frame, &m) })
	}
	var err error
	if r.replica != "" {
		err = ask(ctx, r.replica)
	} else {
		_, err = r.client.retry(ctx, r.partition, false, ask)
	}
	if err != nil {
		return 0, fmt.Errorf("read the log of %s from seq %d: %w", r.partition, r.end.NextSeq, err)
	}
	r.end.Epoch, r.end.CommitSeq, r.end.LastSeq, r.end.LastHash = m.Epoch, m.CommitSeq, m.LastSeq, m.LastHash
	n := 0
	for rest := m.Entries; len(rest) > 0; n++ {
		var e LogEntry
		if e.Bytes, rest, err = order.NextEntry(rest, &e.Entry); err != nil {
			return n, r.fault(r.end.NextSeq, err.Error())
		}
		if e.Seq != r.end.NextSeq {
			return n, r.fault(r.end.NextSeq, fmt.Sprintf("seq is %d, allowed: %d, numbers are dense", e.Seq, r.end.NextSeq))
		}
		if e.Seq > m.CommitSeq {
			return n, r.fault(e.Seq, fmt.Sprintf("it is beyond the committed prefix %d", m.CommitSeq))
		}
		if err := fn(e); err != nil {
			return n, err
		}
		r.end.NextSeq++
	}
	if n == 0 && r.end.NextSeq <= m.CommitSeq {
		return 0, r.fault(r.end.NextSeq, fmt.Sprintf("it was not sent although the committed prefix is %d", m.CommitSeq))
	}
	return n, nil
}

func (r *LogReader) fault(seq uint64, what string) error {
	return &LogError{Partition: r.partition, Address: r.end.Address, Seq: seq, What: what}
}
