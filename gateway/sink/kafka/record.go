package kafka

import (
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Key is what orders are keyed by.
type Key uint8

// Keys.
const (
	KeyClOrdID Key = iota
	KeySymbol
)

// ParseKey reads ClOrdID or Symbol.
func ParseKey(s string) (Key, error) {
	switch s {
	case "ClOrdID":
		return KeyClOrdID, nil
	case "Symbol":
		return KeySymbol, nil
	}
	return 0, fmt.Errorf("key is %.40q, allowed: ClOrdID, Symbol", s)
}

// Headers of an order, in this order. Prev is the order before in the partition, 0 for the first one: a consumer that
// compares it with the seq of the record before knows that none is missing.
const (
	HeaderGrid      = "grid"
	HeaderPartition = "partition"
	HeaderSeq       = "seq"
	HeaderEpoch     = "epoch"
	HeaderLineage   = "lineage"
	HeaderHash      = "hash"
	HeaderPrev      = "prev"
)

const headers = 7

// headerBytes is the most that numbers in the headers of an order take.
const headerBytes = 20 + 10 + 10 + 16 + 20

// records makes records out of entries. Its memory is used again for each batch.
type records struct {
	w               *writer
	grid, partition []byte
	records         []kgo.Record
	headers         []kgo.RecordHeader
	text            []byte
}

func (rs *records) begin(w *writer, orders, executions int) {
	if rs.w == nil {
		rs.w, rs.grid, rs.partition = w, []byte(w.t.cfg.Grid), []byte(w.p.String())
	}
	if n := orders + executions; cap(rs.records) < n {
		rs.records, rs.headers = make([]kgo.Record, 0, n), make([]kgo.RecordHeader, 0, n*headers)
	}
	if n := (orders + executions) * headerBytes; cap(rs.text) < n {
		rs.text = make([]byte, 0, n)
	}
	rs.records, rs.headers, rs.text = rs.records[:0], rs.headers[:0], rs.text[:0]
}

// order is the record of an entry. It lies in the memory of the batch and of rs until the next begin.
func (rs *records) order(e *client.LogEntry, lineage uint32, prev uint64) *kgo.Record {
	v := view{entry: e, partition: rs.w.p, lineage: lineage, prev: prev, hash: order.Hash(e.Bytes)}
	first := len(rs.headers)
	rs.header(HeaderGrid, rs.grid)
	rs.header(HeaderPartition, rs.partition)
	rs.number(HeaderSeq, e.Seq)
	rs.number(HeaderEpoch, uint64(e.Epoch))
	rs.number(HeaderLineage, uint64(lineage))
	from := len(rs.text)
	rs.text = appendHash(rs.text, v.hash)
	rs.header(HeaderHash, rs.text[from:len(rs.text):len(rs.text)])
	rs.number(HeaderPrev, prev)
	rs.records = append(rs.records, kgo.Record{
		Topic: rs.w.orders.topic, Partition: rs.w.orders.partition, Timestamp: time.Unix(0, e.TimeNs),
		Headers: rs.headers[first:len(rs.headers):len(rs.headers)],
	})
	r := &rs.records[len(rs.records)-1]
	if r.Key = order.ClOrdID(e.Bytes); rs.w.t.cfg.Key == KeySymbol {
		r.Key = v.symbol()
	}
	if rs.w.t.cfg.Format == FormatFIX {
		r.Value = v.fix()
		return r
	}
	from = len(rs.text)
	rs.text = rs.w.t.cfg.Format.append(rs.text, &v, rs.w.t.cfg.Grid)
	r.Value = rs.text[from:len(rs.text):len(rs.text)]
	return r
}

func (rs *records) header(name string, value []byte) {
	rs.headers = append(rs.headers, kgo.RecordHeader{Key: name, Value: value})
}

func (rs *records) number(name string, n uint64) {
	from := len(rs.text)
	rs.text = strconv.AppendUint(rs.text, n, 10)
	rs.header(name, rs.text[from:len(rs.text):len(rs.text)])
}

const hexDigits = "0123456789abcdef"

func appendHash(dst []byte, h uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[h>>shift&15])
	}
	return dst
}
