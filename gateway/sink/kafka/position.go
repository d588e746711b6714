package kafka

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
)

// position is the value of a record of the positions topic: what was written with it and before it.
type position struct {
	Version int    `json:"version"`
	Grid    string `json:"grid"`
	Sink    string `json:"sink"`
	Lineage uint32 `json:"lineage"`
	Epoch   uint32 `json:"epoch"`
	Seq     uint64 `json:"seq"`
	Hash    string `json:"hash"` // of entry Seq, 16 hex digits
	// LastOrder is the last entry that is an order, 0 if there is none: header prev of the next one.
	LastOrder uint64 `json:"lastOrder"`
	// Topic is the id of the topic of orders, and Offset an offset that its end is not before.
	Topic  string `json:"topic"`
	Offset int64  `json:"offset"`
}

const positionVersion = 1

func (p *position) client() (client.Position, error) {
	hash, err := strconv.ParseUint(p.Hash, 16, 64)
	return client.Position{Seq: p.Seq, Hash: hash, Lineage: p.Lineage}, err
}

func hexID(id [16]byte) string { return hex.EncodeToString(id[:]) }

// resume finds the position that the writer goes on behind. The writers before are fenced already.
func (w *writer) resume(ctx context.Context) error {
	first, end, err := w.settled(ctx, w.orders)
	if err != nil {
		return err
	}
	start, positionsEnd, err := w.settled(ctx, w.positions)
	if err != nil {
		return err
	}
	r, err := w.lastCommitted(ctx, w.positions, start, positionsEnd)
	if err != nil {
		return err
	}
	w.held.Topic, w.held.Offset = hexID(w.orders.id), end
	if r == nil {
		return w.checkEmpty(ctx, first, end)
	}
	var p position
	if err := json.Unmarshal(r.Value, &p); err != nil || p.Version != positionVersion {
		return w.unreadable(r.Offset, fmt.Sprintf("version %d", p.Version), err)
	}
	at, err := p.client()
	if err != nil {
		return w.unreadable(r.Offset, fmt.Sprintf("hash %.20q", p.Hash), nil)
	}
	if err := w.checkOrders(&p, end); err != nil {
		return err
	}
	if err := w.checkLast(ctx, &p, first, end); err != nil {
		return err
	}
	w.at, w.held.Epoch, w.held.LastOrder = at, p.Epoch, p.LastOrder
	return nil
}

func (w *writer) unreadable(offset int64, what string, err error) error {
	return &sink.PermanentError{
		What:   fmt.Sprintf("topic %s, partition %d, offset %d is no position: %s", w.positions.topic, w.positions.partition, offset, what),
		Remedy: fmt.Sprintf("allowed: records of version %d of this sink only; name another topic", positionVersion), Err: err,
	}
}

// checkOrders compares a position with the topic of orders that is there.
func (w *writer) checkOrders(p *position, end int64) error {
	const remedy = "delete the topic %s too, to begin with what the grid still holds, or restore the topic %s"
	switch {
	case p.Grid != w.t.cfg.Grid || p.Sink != w.t.cfg.Sink:
		return &sink.PermanentError{
			What:   fmt.Sprintf("topic %s is that of sink %q of grid %q, and this is sink %q of grid %q", w.orders.topic, p.Sink, p.Grid, w.t.cfg.Sink, w.t.cfg.Grid),
			Remedy: "name another topic",
		}
	case p.Topic != w.held.Topic && p.Topic != hexID([16]byte{}) && w.held.Topic != hexID([16]byte{}):
		return &sink.PermanentError{
			What:   fmt.Sprintf("topic %s has id %s, and the orders up to entry %d were written to id %s: it was deleted and created again", w.orders.topic, w.held.Topic, p.Seq, p.Topic),
			Remedy: fmt.Sprintf(remedy, w.positions.topic, w.orders.topic),
		}
	case end < p.Offset:
		return &sink.PermanentError{
			What:   fmt.Sprintf("topic %s, partition %d ends at offset %d, and the orders up to entry %d end at %d or later: it lost records", w.orders.topic, w.orders.partition, end, p.Seq, p.Offset),
			Remedy: fmt.Sprintf(remedy, w.positions.topic, w.orders.topic),
		}
	}
	return nil
}

// checkLast compares the last order that consumers see with the position: a transaction of which brokers kept one half
// only is not gone on from.
func (w *writer) checkLast(ctx context.Context, p *position, first, end int64) error {
	r, err := w.lastCommitted(ctx, w.orders, first, end)
	if err != nil || r == nil && first > 0 { // all that was written is older than the topic keeps
		return err
	}
	last := "none"
	if r != nil {
		last = "?"
		for _, h := range r.Headers {
			if h.Key == HeaderSeq {
				last = string(h.Value)
			}
		}
	}
	if last == strconv.FormatUint(p.LastOrder, 10) || r == nil && p.LastOrder == 0 {
		return nil
	}
	return &sink.PermanentError{
		What:   fmt.Sprintf("the last order in topic %s, partition %d is entry %s, and by topic %s it is entry %d", w.orders.topic, w.orders.partition, last, w.positions.topic, p.LastOrder),
		Remedy: "records were removed from one of them, or added by another program; name another topic, or delete both to begin with what the grid still holds",
	}
}

// checkEmpty is for topics without a position: there must be no orders either, or they would be written twice. What
// aborted transactions left does not count.
func (w *writer) checkEmpty(ctx context.Context, first, end int64) error {
	what := fmt.Sprintf("begins at offset %d", first)
	if first == 0 {
		r, err := w.lastCommitted(ctx, w.orders, first, end)
		if r == nil || err != nil {
			return err
		}
		what = fmt.Sprintf("has records up to offset %d", r.Offset)
	}
	return &sink.PermanentError{
		What:   fmt.Sprintf("topic %s, partition %d %s, and topic %s has no position", w.orders.topic, w.orders.partition, what, w.positions.topic),
		Remedy: "allowed: both empty, or both as this sink left them; name another topic, or delete " + w.orders.topic + " to begin with what the grid still holds",
	}
}
