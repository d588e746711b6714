package collect

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// readRecords reads what every copy has of functions of kind Post, and compares each record of an
// audit trail with the entry that it is of and with the record before.
func readRecords(ctx context.Context, c *client.Client, h *history.History) {
	audits, sum := map[string]bool{}, fmt.Sprintf("%x", sha256.Sum256(examples.AuditTrail))
	for i := range h.Functions.Post {
		if f := &h.Functions.Post[i]; f.SHA256 == sum {
			f.Audit, audits[f.Name] = true, true
		}
	}
	var copies []func() history.Recorded
	for _, row := range c.Table() {
		for _, m := range row.Members {
			copies = append(copies, func() history.Recorded {
				r := recordReader{audits: audits, trails: map[string]*trail{}, x: history.Recorded{Partition: row.ID, Where: m.ID + " at " + m.Address, InSync: m.InSync}}
				if err := r.read(ctx, c, row.ID, m.Address, h.Base(row.ID).Seq+1); err != nil {
					r.x.Error = errors.Join(err, ctx.Err()).Error()
				}
				return r.x
			})
		}
	}
	h.Functions.Records = atOnce(copies)
}

// recordReader reads the records of one copy.
type recordReader struct {
	x      history.Recorded
	audits map[string]bool
	trails map[string]*trail // of audits
	names  map[string]string // so that records share them
	offer  []history.PostFunction
}

func (r *recordReader) read(ctx context.Context, c *client.Client, p wire.PartitionID, at string, from uint64) error {
	r.names = map[string]string{}
	next, err := c.ReadRecords(ctx, p, at, from, r.record)
	var held *client.RejectError
	if errors.Is(err, client.ErrSnapshotRequired) && errors.As(err, &held) {
		from = held.Detail + 1
		r.x.Records, r.trails = nil, map[string]*trail{}
		next, err = c.ReadRecords(ctx, p, at, from, r.record)
	}
	r.x.From, r.x.Through = from, next-1
	if err != nil || len(r.audits) == 0 || next == from {
		return err
	}
	_, err = c.ReadLog(ctx, p, at, from, func(e client.LogEntry) error {
		if e.Seq > r.x.Through {
			return errThrough
		}
		if err := r.change(&e); err != nil {
			return err
		}
		for _, t := range r.trails {
			t.entry(&r.x, &e)
		}
		return nil
	})
	for _, t := range r.trails { // of entries that the log does not have
		for _, at := range t.at {
			r.x.Records[at].Link = history.Broken
		}
	}
	if errors.Is(err, errThrough) {
		err = nil
	}
	return err
}

// errThrough ends a read of the log behind the records.
var errThrough = errors.New("through")

// change notes from which entry on the log has which functions in force.
func (r *recordReader) change(e *client.LogEntry) error {
	if e.Kind != order.KindFunctions {
		return nil
	}
	c, err := order.ParseFunctionsChange(order.Payload(e.Bytes))
	if err != nil {
		return fmt.Errorf("entry %d: %w", e.Seq, err)
	}
	switch c.Op {
	case order.FunctionsOffer:
		r.offer = nil
		for i := range c.Offer {
			r.offer = append(r.offer, history.PostFunction{Name: c.Offer[i].Name, SHA256: fmt.Sprintf("%x", c.Offer[i].SHA256)})
		}
	case order.FunctionsBegin:
		r.x.Begun = append(r.x.Begun, history.Begun{Entry: e.Seq, Post: r.offer})
	}
	return nil
}

func (r *recordReader) record(rec client.Record) error {
	name := r.names[rec.Function]
	if name == "" {
		name = rec.Function
		r.names[name] = name
	}
	r.x.Records = append(r.x.Records, history.Record{Entry: rec.Entry, Function: name, Fault: rec.Fault, Sum: xxhash.Sum64(rec.Bytes)})
	if r.audits[name] {
		t := r.trails[name]
		if t == nil {
			t = &trail{}
			r.trails[name] = t
		}
		t.at, t.bytes = append(t.at, len(r.x.Records)-1), append(t.bytes, bytes.Clone(rec.Bytes))
	}
	return nil
}

// trail are the records of an audit trail, SHA-256 over what came before, done again here from the
// log and not by the function.
type trail struct {
	at    []int // in Recorded.Records
	bytes [][]byte
	begun bool   // there was a record
	last  []byte // hash of the record before; nil: not known
}

// linkSize is number and time of the entry, and the hash.
const linkSize = 8 + 8 + sha256.Size

// entry judges the record of an entry of the log.
func (t *trail) entry(x *history.Recorded, e *client.LogEntry) {
	for len(t.at) > 0 && x.Records[t.at[0]].Entry <= e.Seq {
		r, b := &x.Records[t.at[0]], t.bytes[0]
		t.at, t.bytes = t.at[1:], t.bytes[1:]
		switch {
		case r.Fault != "": // what it wrote before it failed is in its state
			r.Link, t.begun, t.last = history.NoLink, true, nil
			continue
		case r.Entry != e.Seq || !e.Kind.IsOrder() || len(b) != linkSize ||
			binary.LittleEndian.Uint64(b) != e.Seq || int64(binary.LittleEndian.Uint64(b[8:])) != order.Received(e.Bytes):
			r.Link = history.Broken
		default:
			r.Link = t.link(b, order.Message(e.Bytes))
		}
		t.begun = true
		if t.last = nil; len(b) == linkSize {
			t.last = b[16:]
		}
	}
}

// link judges a record that is of its entry.
func (t *trail) link(b, message []byte) history.Link {
	follows := func(last []byte) bool {
		h := sha256.New()
		h.Write(last)
		h.Write(b[:16])
		h.Write(message)
		return bytes.Equal(h.Sum(nil), b[16:])
	}
	first := make([]byte, sha256.Size) // before the first of all
	switch {
	case t.last != nil && follows(t.last), !t.begun && follows(first):
		return history.Linked
	case t.last == nil, follows(first): // in the middle of a trail the account asks what begins it anew
		return history.Anchor
	}
	return history.Broken
}
