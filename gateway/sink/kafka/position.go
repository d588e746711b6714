package kafka

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

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
	// Topic is the id of the topic of orders, and Offset an offset that its end is not before; empty where executions are
	// written alone.
	Topic  string `json:"topic"`
	Offset int64  `json:"offset"`
	// Executions is nil while they are not written.
	Executions *executionsHeld `json:"executions,omitempty"`
}

// executionsHeld is what a position has of the topic of executions.
type executionsHeld struct {
	Last   string `json:"last"` // executionID of the last one, empty: none
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
	start, positionsEnd, err := w.settled(ctx, w.positions)
	if err != nil {
		return err
	}
	r, err := w.lastCommitted(ctx, w.positions, start, positionsEnd)
	if err != nil {
		return err
	}
	if r == nil {
		if err := w.resumeOrders(ctx, nil); err != nil {
			return err
		}
		return w.resumeExecutions(ctx, &position{})
	}
	var p position
	if err := json.Unmarshal(r.Value, &p); err != nil || p.Version != positionVersion {
		return w.unreadable(r.Offset, fmt.Sprintf("version %d", p.Version), err)
	}
	at, err := p.client()
	if err != nil {
		return w.unreadable(r.Offset, fmt.Sprintf("hash %.20q", p.Hash), nil)
	}
	if p.Grid != w.t.cfg.Grid || p.Sink != w.t.cfg.Sink {
		return &sink.PermanentError{
			What:   fmt.Sprintf("topic %s is that of sink %q of grid %q, and this is sink %q of grid %q", w.first().topic, p.Sink, p.Grid, w.t.cfg.Sink, w.t.cfg.Grid),
			Remedy: "name another topic",
		}
	}
	if before, now := p.Topic != "", w.orders != nil; before != now {
		return &sink.PermanentError{
			What:   fmt.Sprintf("the sink of topic %s wrote %s, and is to write %s now: there would be a gap", w.first().topic, contentOf(before), contentOf(now)),
			Remedy: "write what it wrote before, or name another topic",
		}
	}
	if err := w.resumeOrders(ctx, &p); err != nil {
		return err
	}
	if err := w.resumeExecutions(ctx, &p); err != nil {
		return err
	}
	w.at, w.held.Epoch, w.held.LastOrder = at, p.Epoch, p.LastOrder
	return nil
}

// resumeOrders compares a position with the topic of orders; nil: there is none.
func (w *writer) resumeOrders(ctx context.Context, p *position) error {
	w.held.Topic, w.held.Offset = "", 0
	if w.orders == nil {
		return nil
	}
	x := *w.orders
	first, end, err := w.settled(ctx, x)
	if err != nil {
		return err
	}
	w.held.Topic, w.held.Offset = hexID(x.id), end
	if p == nil {
		return w.checkEmpty(ctx, x, first, end)
	}
	if err := w.checkTopic(x, "orders", p, p.Topic, p.Offset, end); err != nil {
		return err
	}
	return w.checkLast(ctx, x, "order", first, end, strconv.FormatUint(p.LastOrder, 10))
}

// resumeExecutions compares a position with the topic of executions. They may be written from a position on that has
// none, into an empty topic.
func (w *writer) resumeExecutions(ctx context.Context, p *position) error {
	w.held.Executions = nil
	if w.executions == nil {
		return nil
	}
	x := *w.executions
	first, end, err := w.settled(ctx, x)
	if err != nil {
		return err
	}
	w.held.Executions = &executionsHeld{Topic: hexID(x.id), Offset: end}
	held := p.Executions
	if held == nil {
		return w.checkEmpty(ctx, x, first, end)
	}
	w.held.Executions.Last = held.Last
	if err := w.checkTopic(x, "executions", p, held.Topic, held.Offset, end); err != nil {
		return err
	}
	return w.checkLast(ctx, x, "execution", first, end, held.Last)
}

func (w *writer) unreadable(offset int64, what string, err error) error {
	return &sink.PermanentError{
		What:   fmt.Sprintf("topic %s, partition %d, offset %d is no position: %s", w.positions.topic, w.positions.partition, offset, what),
		Remedy: fmt.Sprintf("allowed: records of version %d of this sink only; name another topic", positionVersion), Err: err,
	}
}

// checkTopic compares what a position has of a topic, its id and an offset, with the topic that is there. What are its
// records.
func (w *writer) checkTopic(x place, what string, p *position, id string, offset, end int64) error {
	const remedy = "delete the topic %s too, to begin with what the grid still holds, or restore the topic %s"
	present, unknown := hexID(x.id), hexID([16]byte{})
	switch {
	case id != present && id != unknown && present != unknown:
		return &sink.PermanentError{
			What:   fmt.Sprintf("topic %s has id %s, and the %s up to entry %d were written to id %s: it was deleted and created again", x.topic, present, what, p.Seq, id),
			Remedy: fmt.Sprintf(remedy, w.positions.topic, x.topic),
		}
	case end < offset:
		return &sink.PermanentError{
			What:   fmt.Sprintf("topic %s, partition %d ends at offset %d, and the %s up to entry %d end at %d or later: it lost records", x.topic, x.partition, end, what, p.Seq, offset),
			Remedy: fmt.Sprintf(remedy, w.positions.topic, x.topic),
		}
	}
	return nil
}

// checkLast compares the last record that consumers see with that of the position, want, "0" or "" for none: a
// transaction of which brokers kept one half only is not gone on from.
func (w *writer) checkLast(ctx context.Context, x place, what string, first, end int64, want string) error {
	r, err := w.lastCommitted(ctx, x, first, end)
	if err != nil || r == nil && first > 0 { // all that was written is older than the topic keeps
		return err
	}
	last := "none"
	if r != nil {
		last = recordID(r)
	}
	if last == want || r == nil && (want == "0" || want == "") {
		return nil
	}
	return &sink.PermanentError{
		What:   fmt.Sprintf("the last %s in topic %s, partition %d is entry %s, and by topic %s it is entry %s", what, x.topic, x.partition, last, w.positions.topic, cmp.Or(want, "none")),
		Remedy: "records were removed from one of them, or added by another program; name another topic, or delete both to begin with what the grid still holds",
	}
}

// recordID is the entry of an order, or entry and number of an execution.
func recordID(r *kgo.Record) string {
	id, n := "?", ""
	for _, h := range r.Headers {
		switch h.Key {
		case HeaderSeq:
			id = string(h.Value)
		case HeaderN:
			n = "." + string(h.Value)
		}
	}
	return id + n
}

// checkEmpty is for topics without a position: there must be no records either, or they would be written twice. What
// aborted transactions left does not count.
func (w *writer) checkEmpty(ctx context.Context, x place, first, end int64) error {
	what := fmt.Sprintf("begins at offset %d", first)
	if first == 0 {
		r, err := w.lastCommitted(ctx, x, first, end)
		if r == nil || err != nil {
			return err
		}
		what = fmt.Sprintf("has records up to offset %d", r.Offset)
	}
	return &sink.PermanentError{
		What:   fmt.Sprintf("topic %s, partition %d %s, and topic %s has no position of it", x.topic, x.partition, what, w.positions.topic),
		Remedy: "allowed: both empty, or both as this sink left them; name another topic, or delete " + x.topic + " to begin with what the grid still holds",
	}
}
