package kafka

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
)

// HeaderN is the header of an execution that an order has not: its number in the entry, from 1. HeaderPrev is
// executionID of the execution before in the partition, empty for the first one.
const HeaderN = "n"

// executionID names an execution within its partition: 17.2.
func executionID(e *client.Executed) string {
	return strconv.FormatUint(e.Entry, 10) + "." + strconv.FormatUint(uint64(e.N), 10)
}

// execution is the record of an execution. It lies in the memory of rs until the next begin.
func (rs *records) execution(e *client.Executed, lineage, epoch uint32, prev string) *kgo.Record {
	first := len(rs.headers)
	rs.header(HeaderGrid, rs.grid)
	rs.header(HeaderPartition, rs.partition)
	rs.number(HeaderSeq, e.Entry)
	rs.number(HeaderN, uint64(e.N))
	rs.number(HeaderEpoch, uint64(epoch))
	rs.number(HeaderLineage, uint64(lineage))
	rs.header(HeaderPrev, []byte(prev))
	rs.records = append(rs.records, kgo.Record{
		Topic: rs.w.executions.topic, Partition: rs.w.executions.partition, Timestamp: e.Received,
		Headers: rs.headers[first:len(rs.headers):len(rs.headers)],
	})
	r := &rs.records[len(rs.records)-1]
	key := e.ClOrdID
	if rs.w.t.cfg.Key == KeySymbol {
		key = e.Symbol
	}
	if key != "" {
		r.Key = []byte(key)
	}
	from := len(rs.text)
	if rs.w.t.cfg.Format == FormatProtobuf {
		rs.text = appendExecutionProtobuf(rs.text, e, rs.w.t.cfg.Grid, lineage, epoch, prev)
	} else {
		rs.text = appendExecutionJSON(rs.text, e, rs.w.t.cfg.Grid, lineage, epoch, prev)
	}
	r.Value = rs.text[from:len(rs.text):len(rs.text)]
	return r
}

// appendExecutionJSON writes an object. Amounts are text: JSON numbers do not hold all of them.
func appendExecutionJSON(dst []byte, e *client.Executed, grid string, lineage, epoch uint32, prev string) []byte {
	t := sink.TextOf(e)
	value := struct {
		Grid       string `json:"grid"`
		Partition  uint16 `json:"partition"`
		Entry      uint64 `json:"entry"`
		N          uint32 `json:"n"`
		Epoch      uint32 `json:"epoch"`
		Lineage    uint32 `json:"lineage"`
		Prev       string `json:"prev"`
		Received   string `json:"received"`
		Kind       string `json:"kind"`
		Symbol     string `json:"symbol,omitempty"`
		Account    string `json:"account,omitempty"`
		Side       string `json:"side,omitempty"`
		ClOrdID    string `json:"clOrdID,omitempty"`
		Order      uint64 `json:"order,omitempty"`
		Other      uint64 `json:"other,omitempty"`
		Price      string `json:"price,omitempty"`
		Quantity   string `json:"quantity,omitempty"`
		Leaves     string `json:"leaves,omitempty"`
		Cumulative string `json:"cumulative,omitempty"`
		Reason     string `json:"reason,omitempty"`
		Passive    bool   `json:"passive,omitempty"`
		Auction    bool   `json:"auction,omitempty"`
	}{
		grid, uint16(e.Partition), e.Entry, e.N, epoch, lineage, prev, e.Received.UTC().Format(time.RFC3339Nano), e.Kind.String(), e.Symbol, e.Account, t.Side, e.ClOrdID,
		e.Order, t.Other, t.Price, t.Quantity, t.Leaves, t.Cumulative, t.Reason, e.Passive, e.Auction,
	}
	text, _ := json.Marshal(&value) // it has text, numbers and flags only
	return append(dst, text...)
}

// appendExecutionProtobuf writes message Execution of order.proto.
func appendExecutionProtobuf(dst []byte, e *client.Executed, grid string, lineage, epoch uint32, prev string) []byte {
	number := func(n protowire.Number, x uint64) {
		if x != 0 {
			dst = protowire.AppendVarint(protowire.AppendTag(dst, n, protowire.VarintType), x)
		}
	}
	text := func(n protowire.Number, x string) {
		if x != "" {
			dst = protowire.AppendString(protowire.AppendTag(dst, n, protowire.BytesType), x)
		}
	}
	t := sink.TextOf(e)
	text(1, grid)
	number(2, uint64(e.Partition))
	number(3, e.Entry)
	number(4, uint64(e.N))
	number(5, uint64(epoch))
	number(6, uint64(lineage))
	text(7, prev)
	number(8, uint64(e.Received.UnixNano()))
	text(9, e.Kind.String())
	text(10, e.Symbol)
	text(11, e.Account)
	text(12, t.Side)
	text(13, e.ClOrdID)
	number(14, e.Order)
	number(15, t.Other)
	text(16, t.Price)
	text(17, t.Quantity)
	text(18, t.Leaves)
	text(19, t.Cumulative)
	text(20, t.Reason)
	number(21, flag(e.Passive))
	number(22, flag(e.Auction))
	return dst
}

func flag(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}
