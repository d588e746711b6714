package client

import (
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Executed is an execution with what it is about, as a Follower gets it.
type Executed struct {
	Execution
	Received               time.Time // its entry, by the primary
	PriceDigits, QtyDigits uint8     // behind the point of its prices and quantities
	Symbol                 string
	// Account and ClOrdID are those of the order's last accepted message, whose entry is
	// freed if Unknown is true: then they are empty.
	Account, ClOrdID string
	Unknown          bool
}

// whole reports whether every entry of the log is sent.
func (o *FollowOptions) whole() bool {
	return o.Account == "" && len(o.Symbols) == 0 && !o.OnlyExecutions && o.Selection == nil
}

// streams reports whether the follower asks by the frame Stream.
func (f *Follower) streams() bool {
	return f.o.Executions || f.o.OnlyExecutions || f.o.Selection != nil
}

func (f *Follower) streamRequest(from *wire.Follow) []byte {
	m := wire.Stream{ReqID: from.ReqID, FromSeq: from.FromSeq, FromHash: from.FromHash, Lineage: from.Lineage, Window: from.Window, What: wire.StreamExecutions}
	if !f.o.OnlyExecutions {
		m.What |= wire.StreamOrders
	}
	if f.o.Selection != nil {
		m.What = wire.StreamBySelect
	}
	if f.o.Account != "" {
		m.Accounts = [][]byte{[]byte(f.o.Account)}
	}
	for _, symbol := range f.o.Symbols {
		m.Symbols = append(m.Symbols, []byte(symbol))
	}
	return wire.AppendStream(nil, f.o.Partition, &m)
}

// takePart makes a batch of a part of a Stream; nil: an entry goes on with the next one.
func (f *Follower) takePart(frame []byte) (*FollowBatch, error) {
	var m wire.StreamPart
	if err := wire.DecodeStreamPart(frame, &m); err != nil {
		return nil, &ProtocolError{Address: f.conn.addr, What: "stream-part", Cause: err}
	}
	f.taken += len(frame)
	if m.More {
		if len(f.unended)+len(m.Executions) > maxUnended {
			return nil, &ProtocolError{Address: f.conn.addr, What: fmt.Sprintf("stream-part: executions of entry %d take more than %d bytes", m.Through+1, maxUnended)}
		}
		f.unended = append(f.unended, m.Executions...)
		return nil, nil
	}
	last := f.after.Seq
	b, err := f.take(&wire.FollowEntries{ReqID: m.ReqID, From: m.From, Through: m.Through, CommitSeq: m.CommitSeq, ThroughHash: m.ThroughHash, Lineage: m.Lineage, Window: m.Window, Entries: m.Entries})
	if err != nil {
		return nil, err
	}
	b.Executions = b.Executions[:0]
	for _, part := range [2][]byte{f.unended, m.Executions} {
		if err := f.takeExecutions(part, last, m.Through); err != nil {
			return nil, err
		}
	}
	f.unended = f.unended[:0]
	return b, nil
}

// maxUnended bounds the executions of one entry, in bytes.
const maxUnended = 16 << 20

func (f *Follower) takeExecutions(part []byte, after, through uint64) error {
	b := &f.batch
	for len(part) > 0 {
		var x wire.Executed
		var err error
		if part, err = wire.NextExecuted(part, &x); err != nil {
			return &ProtocolError{Address: f.conn.addr, What: "stream-part", Cause: err}
		}
		var n uint32
		if k := len(b.Executions); k > 0 {
			if last := &b.Executions[k-1]; last.Entry > x.Entry {
				x.Entry = 0
			} else if last.Entry == x.Entry {
				n = last.N
			}
		}
		if x.Entry <= after || x.Entry > through || x.N <= n {
			return &LogError{Partition: f.o.Partition, Address: f.conn.addr, Seq: after + 1, What: fmt.Sprintf("execution %d of entry %d is not behind the one before, in a part that ends with entry %d", x.N, x.Entry, through)}
		}
		b.Executions = append(b.Executions, Executed{Execution: DecodeExecution(f.o.Partition, x.Entry, x.N, x.Record), Received: time.Unix(0, x.TimeNs),
			PriceDigits: x.PriceDigits, QtyDigits: x.QtyDigits, Symbol: string(x.Symbol), Account: string(x.Account), ClOrdID: string(x.ClOrdID), Unknown: x.Flags&wire.ExecutedUnknown != 0})
	}
	return nil
}
