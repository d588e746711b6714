package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/replay"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// ReplayHelp is the help of the flag --replay.
const ReplayHelp = "of a grid that matches, also match each log again, naively and from the text of its messages, and compare the executions of every copy with that"

// Executions reads what the entries of a replica did; FromClient makes a Grid that is one.
type Executions interface {
	// ReadExecutions calls fn for every record of the committed entries from entry from on.
	ReadExecutions(ctx context.Context, partition wire.PartitionID, address string, from uint64, fn func(client.Execution) error) (next uint64, err error)
}

// Replay is what matching a partition's log again has shown.
type Replay struct {
	replay.Sums
	Resting uint64       `json:"resting"` // orders in the books after entry Common
	Copies  []ReplayCopy `json:"copies"`
	Error   string       `json:"error,omitempty"` // why the log could not be matched again
}

// ReplayCopy is one copy's executions.
type ReplayCopy struct {
	Address  string `json:"address"`
	Compared uint64 `json:"compared"` // records
	Error    string `json:"error,omitempty"`
}

// replayed matches a log again while its entries are compared.
type replayed struct {
	ctx    context.Context
	grid   Executions
	id     wire.PartitionID
	p      *Partition
	result *Replay
	log    *replay.Log
	copies []*copyOf // nil before there are books
}

// copyOf is what a copy says its entries did.
type copyOf struct {
	chunks  chan []client.Execution
	err     error // valid when chunks is closed
	current []client.Execution
	fills   *replay.Fills
	ended   bool
}

func newReplayed(ctx context.Context, g Executions, id wire.PartitionID, p *Partition) *replayed {
	p.Replay = &Replay{Copies: []ReplayCopy{}}
	return &replayed{ctx: ctx, grid: g, id: id, p: p, result: p.Replay, log: replay.NewLog()}
}

// entry matches the next entry of the common prefix.
func (r *replayed) entry(e *client.LogEntry) {
	if r.result.Error != "" {
		return
	}
	want, err := r.log.Entry(&e.Entry, order.Payload(e.Bytes))
	switch {
	case errors.Is(err, replay.ErrBeginning):
		r.result.Error = err.Error()
		return
	case err != nil:
		r.p.problem("%v", err)
	}
	if r.log.Matches() && r.copies == nil {
		r.open(e.Seq)
	}
	for i, c := range r.copies {
		r.compare(c, i, e.Seq, want)
	}
}

// open begins to read the executions of every copy that could be read.
func (r *replayed) open(from uint64) {
	for i := range r.p.Replicas {
		m := &r.p.Replicas[i]
		c := &copyOf{chunks: make(chan []client.Execution, 2), fills: replay.NewFills(), ended: m.Error != ""}
		r.copies = append(r.copies, c)
		r.result.Copies = append(r.result.Copies, ReplayCopy{Address: m.Address, Error: m.Error})
		if !c.ended {
			go c.run(r.ctx, r.grid, r.id, m.Address, from, r.p.Common)
		}
	}
}

const executionsOfChunk = 256

func (c *copyOf) run(ctx context.Context, g Executions, p wire.PartitionID, address string, from, through uint64) {
	defer close(c.chunks)
	var chunk []client.Execution
	send := func() error {
		select {
		case c.chunks <- chunk:
			chunk = nil
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	next, err := g.ReadExecutions(ctx, p, address, from, func(x client.Execution) error {
		if x.Entry > through {
			return errEnough
		}
		if chunk = append(chunk, x); len(chunk) == executionsOfChunk {
			return send()
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		c.err = err
	case err == nil && next <= through:
		c.err = fmt.Errorf("its executions end with entry %d", next-1)
	}
	if len(chunk) > 0 {
		if err := send(); err != nil && c.err == nil {
			c.err = err
		}
	}
}

// of returns what the copy says the entry did; false: it says no more.
func (c *copyOf) of(seq uint64) (did []match.Record, names []uint32, ok bool) {
	for {
		for len(c.current) > 0 && c.current[0].Entry <= seq {
			did, names = append(did, RecordOf(&c.current[0])), append(names, c.current[0].N)
			c.current = c.current[1:]
		}
		if len(c.current) > 0 {
			return did, names, true
		}
		var more bool
		if c.current, more = <-c.chunks; !more {
			return did, names, c.err == nil
		}
	}
}

// RecordOf returns an execution as the record of the books that it is.
func RecordOf(e *client.Execution) match.Record {
	return match.Record{Order: e.Order, Other: e.Other, Price: e.Price, Qty: e.Qty, Leaves: e.Leaves, Cum: e.Cum, Owner: e.Owner, Book: e.Book,
		Kind: match.Kind(e.Kind), Side: match.Side(e.Side), Reason: match.Reason(e.Reason), Flags: e.Flags}
}

func (r *replayed) compare(c *copyOf, i int, seq uint64, want []match.Record) {
	if c.ended || seq > r.p.Replicas[i].Committed {
		return
	}
	did, names, ok := c.of(seq)
	out := &r.result.Copies[i]
	if !ok {
		c.ended, out.Error = true, fmt.Sprintf("from entry %d: %v", seq, c.err)
		return
	}
	for n := range did {
		if names[n] != uint32(n)+1 {
			r.p.problem("%s: execution %s/%d.%d is there as the %d. of its entry", out.Address, r.p.ID, seq, names[n], n+1)
			break
		}
	}
	if n, text := replay.Difference(did, want); n > 0 {
		r.p.problem("%s: execution %s/%d.%d %s", out.Address, r.p.ID, seq, n, text)
	}
	for n := range did {
		c.fills.Add(fmt.Sprintf("%s/%d.%d", r.p.ID, seq, n+1), &did[n])
	}
	out.Compared += uint64(len(did))
}

// finish adds up what each copy says. Copies that are as far as the log have to have its orders left.
func (r *replayed) finish() {
	if r.result.Error == "" && !r.log.Matches() {
		r.result.Error = "it stores orders and matches none, allowed: a grid that runs with --execution match"
	}
	resting := r.log.Resting()
	r.result.Resting = uint64(len(resting))
	for i, c := range r.copies {
		if c.ended || r.p.Replicas[i].Committed < r.p.Common {
			continue
		}
		r.result.Sums = c.fills.Sums
		if wrong, words := c.fills.Finish(resting); wrong > 0 {
			for _, w := range words {
				r.p.problem("%s: %s", r.result.Copies[i].Address, w)
			}
			r.p.ProblemCount += uint64(wrong - len(words))
		}
	}
}

func (r *Replay) text(out *printer) {
	if r.Error != "" {
		out.printf("  replay   NOT MATCHED AGAIN: %s\n", r.Error)
		return
	}
	out.printf("  replay   orders %d, executions %d, trades %d, resting %d: bought = sold, positions and quantities add up\n", r.Orders, r.Records, r.Trades, r.Resting)
	for _, c := range r.Copies {
		out.printf("  replay   %-21s executions compared %d", c.Address, c.Compared)
		if c.Error != "" {
			out.printf("  NOT READ: %s", c.Error)
		}
		out.printf("\n")
	}
}

// unread is how much could not be compared.
func (r *Replay) unread() (n uint64) {
	if r.Error != "" {
		return 1
	}
	for _, c := range r.Copies {
		if c.Error != "" {
			n++
		}
	}
	return n
}
