// Package feedtest provides a log to the tests of its readers.
package feedtest

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
)

// Log is a real store that a test appends to as the replica does.
type Log struct {
	*store.Store
	t       *testing.T
	feed    *feed.Feed
	readers int
}

// NewLog returns an empty log that is closed with the test.
func NewLog(t *testing.T) *Log {
	t.Helper()
	s, err := store.New(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &Log{Store: s, t: t, feed: feed.New(s)}
}

// Add stores an entry.
func (l *Log) Add(e order.Entry, payload []byte) {
	l.t.Helper()
	if err := l.Append(&e, payload); err != nil {
		l.t.Fatal(err)
	}
}

func u64s(v ...uint64) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

// Noop stores the first entry of an epoch.
func (l *Log) Noop(epoch uint32, lineage, boot uint64) {
	l.t.Helper()
	l.Add(order.Entry{Kind: order.KindNoop, Epoch: epoch}, u64s(lineage, boot))
}

// Session stores the opening of a session.
func (l *Log) Session(epoch, slot uint32, hi, lo uint64) {
	l.t.Helper()
	l.Add(order.Entry{Kind: order.KindSessionOpen, Epoch: epoch, Session: slot}, u64s(hi, lo))
}

// Cursor stores the position of a sink.
func (l *Log) Cursor(epoch uint32, seq uint64) {
	l.t.Helper()
	l.Add(order.Entry{Kind: order.KindCursor, Epoch: epoch}, u64s(seq))
}

// Order stores an order with a text that a line of a file has to escape.
func (l *Log) Order(epoch, slot uint32, id string) {
	l.t.Helper()
	msg := []byte("8=FIX.4.2\x0111=" + id + "\x0158=tab\there|and\\there\x0110=000\x01")
	l.Add(order.Entry{Kind: order.KindOrder, Epoch: epoch, Session: slot, ClientSeq: 7, TimeNs: 1234,
		Fields: order.Fields{ClOrdIDOff: 13, ClOrdIDLen: uint8(len(id))}}, msg)
}

// Reader returns another reader of the log.
func (l *Log) Reader() *feed.Reader {
	l.t.Helper()
	l.readers++
	r, err := l.feed.Reader(fmt.Sprint("reader", l.readers))
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// Commit commits what is stored.
func (l *Log) Commit() {
	seq, _ := l.Last()
	l.CommitTo(seq)
}

// CommitTo commits the entries up to seq.
func (l *Log) CommitTo(seq uint64) {
	l.SetCommitted(seq)
	l.feed.Wake()
}

// Fill makes a log of one epoch with n orders.
func (l *Log) Fill(boot uint64, n int) {
	l.t.Helper()
	l.Noop(1, 1, boot)
	l.Session(1, 0, 0xc, 0xd) // slot 0 is not "no session"
	l.Session(1, 3, 0xa, 0xb)
	l.Cursor(1, 1)
	for i := range n {
		l.Order(1, 3, fmt.Sprintf("id%d", i))
	}
	l.Commit()
}
