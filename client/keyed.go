package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A short question for the orders of one ClOrdID is answered by a node in some microseconds (query.ShortAt), in which a
// goroutine for each partition is not begun yet. It is asked by one goroutine, at as few nodes as have a copy of each
// partition. Whichever partition a ClOrdID belongs to, an order may be in another (SubmitTo), so all are asked.

// keyed reports whether a filter names one ClOrdID or OrigClOrdID.
func keyed(e *query.Expr) bool {
	named := func(e query.Expr) bool {
		return e.Op == query.Eq && len(e.Values) == 1 && (e.Field == view.ClOrdID || e.Field == view.OrigClOrdID)
	}
	return e != nil && (named(*e) || e.Op == query.And && slices.ContainsFunc(e.Args, named))
}

// together reports whether the parts are asked so: the first page of a short keyed question, which need not be
// linearizable.
func (g *gather) together() bool {
	if g.grouped || g.q.Page != nil || g.q.Linearizable || !keyed(g.q.Where) {
		return false
	}
	g.question = g.parts[0].ask.Append(nil)
	return len(g.question) <= query.ShortBytes
}

// asked is a question that is under way at a node.
type asked struct {
	k    *caller
	q    *call
	addr string
	err  error // it was not sent
}

// askTogether sends each part before it waits for the first answer. What is not answered so, as by a copy without a
// view or one that has other work, is asked again in the way of other questions.
func (g *gather) askTogether(ctx context.Context) error {
	c, n := g.parts[0].c, len(g.parts)
	attempt, cancel := context.WithTimeout(ctx, c.attemptTimeout(0))
	defer cancel()
	first := int(c.turn.Add(1) % uint64(n)) // so that nodes are asked in turn
	sent, nodes := make([]asked, n), make([]string, 0, 4)
	for i := range n {
		p := &g.parts[(first+i)%n]
		addr := c.copyAmong(p.id, nodes)
		a := p.send(attempt, addr, g.question)
		if sent[(first+i)%n] = a; a.err == nil && !slices.Contains(nodes, addr) {
			nodes = append(nodes, addr)
		}
	}
	var final error
	again := make([]*part, 0, n)
	for i := range sent {
		p := &g.parts[i]
		rows, err := p.receive(attempt, &sent[i])
		switch {
		case err == nil && (p.next == nil || p.ask.Limit > 0 && len(rows) >= int(p.ask.Limit)):
			p.rows = rows
		case final == nil && finalAnswer(err) && !anotherMay(err):
			final = err
			cancel() // the others'
		default:
			c.noteViews(p.id, sent[i].addr, err)
			again = append(again, p)
		}
	}
	if final != nil {
		return final
	}
	for _, p := range again {
		p.scanned, p.matched = 0, 0
	}
	return fetchAll(ctx, again)
}

// anotherMay reports whether a copy that was asked first, with little time, is no measure for the others.
func anotherMay(err error) bool {
	var e *QueryError
	return errors.As(err, &e) && (e.Code == wire.QueryTimedOut || e.Code == wire.QueryIncomplete)
}

// send asks for the first page at a node; receive has to be called.
func (p *part) send(ctx context.Context, addr string, question []byte) (a asked) {
	a.addr = addr
	if addr == "" {
		a.err = errLost
		return a
	}
	if a.k, a.err = p.c.callerOf(ctx, addr); a.err == nil {
		a.q, a.err = p.begin(ctx, a.k, question, false)
	}
	return a
}

// receive is the answer to what was sent.
func (p *part) receive(ctx context.Context, a *asked) ([][]view.Value, error) {
	if a.err != nil {
		if errors.Is(a.err, errLost) && a.k != nil {
			p.c.dropCaller(a.k)
		}
		return nil, a.err
	}
	return p.await(ctx, a.k, a.q, a.addr, false)
}

// copyAmong is the copy of a partition that is asked first: one of these nodes, or a backup.
func (c *Client) copyAmong(p wire.PartitionID, nodes []string) string {
	info, _ := c.partition(p)
	for _, m := range info.Members {
		if m.InSync && slices.Contains(nodes, m.Address) && (m.ID != info.Primary.ID || nanotime() > c.viewless.Load()) {
			return m.Address
		}
	}
	return c.replica(p, true, 1)
}

// viewlessFor is how long primaries are not asked first after one has said that its view is kept by backups.
const viewlessFor = time.Minute

// noteViews notes that primaries of the grid keep no views.
func (c *Client) noteViews(p wire.PartitionID, addr string, err error) {
	var q *QueryError
	if info, _ := c.partition(p); errors.As(err, &q) && q.Code == wire.QueryLeaving && info.Primary.Address == addr {
		c.viewless.Store(nanotime() + int64(viewlessFor))
	}
}
