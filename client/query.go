package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Query is a question about the orders of a grid whose nodes keep views (grid-node --views).
type Query struct {
	query.Query // At, From and After are not used: see Page
	// After are receipts of orders that the answer must see, with all before them.
	After []Receipt
	// Linearizable makes the answer see every order that was acknowledged, to any client,
	// before Query was called: it costs a confirmed read of each partition.
	Linearizable bool
	// Page goes on behind an answer: Answer.Next.
	Page *Page
}

// Cut is the prefix of a partition's log that an answer is about.
type Cut struct {
	Partition wire.PartitionID
	Lineage   uint32
	Epoch     uint64
	Seq       uint64 // the last entry that counts
	Hash      uint64 // of that entry
	Address   string // of the replica that answered
}

// Answer to a Query. Several partitions are several cuts, not one instant. The state of an order
// is by messages of its own partition: a replace or cancel may be in another.
type Answer struct {
	Columns []query.Column
	Rows    [][]view.Value
	Cuts    []Cut  // by partition
	Next    *Page  // nil: there are no more rows
	Scanned uint64 // rows that the nodes looked at
	Matched uint64 // of those, let through by the filter
}

// QueryError is why a question has no answer.
type QueryError struct {
	Partition wire.PartitionID
	Address   string
	Code      wire.QueryEndCode
	Text      string
}

func (e *QueryError) Error() string {
	return fmt.Sprintf("client: query %s at %s: %s: %s", e.Partition, e.Address, e.Code, e.Text)
}

// elsewhere reports whether another replica, or the same one later, may answer.
func (e *QueryError) elsewhere() bool {
	return e.Code == wire.QueryBehind || e.Code == wire.QueryLeaving
}

// finalAnswer reports whether err is the end of a question that is the same anywhere.
func finalAnswer(err error) bool {
	var e *QueryError
	return errors.As(err, &e) && !e.elsewhere()
}

const (
	// maxGathered bounds the rows and groups that are put together for one answer.
	maxGathered = 1 << 20
	questionMin = 5 * time.Second // for one replica, unless there is less time in all
	pageBytes   = 1 << 20
)

// Query asks every partition, and puts the answers together: rows by OrderBy, then partition and
// place in the log, groups by their fields. It ends with ctx, or after Config.RequestTimeout.
// An answer is whole, up to Limit, or there is none.
func (c *Client) Query(ctx context.Context, q Query) (*Answer, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.RequestTimeout)
		defer cancel()
	}
	g, err := newGather(c, &q)
	if err != nil {
		return nil, err
	}
	if len(g.parts) == 1 { // no goroutine waits for another
		if err := g.parts[0].fetch(ctx); err != nil {
			return nil, err
		}
		return g.answer()
	}
	if g.together() {
		if err := g.askTogether(ctx); err != nil {
			return nil, err
		}
		return g.answer()
	}
	all := make([]*part, len(g.parts))
	for i := range g.parts {
		all[i] = &g.parts[i]
	}
	if err := fetchAll(ctx, all); err != nil {
		return nil, err
	}
	return g.answer()
}

// fetchAll fetches parts side by side. The first error ends the others.
func fetchAll(ctx context.Context, parts []*part) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	errs := make([]error, len(parts))
	for i, p := range parts {
		wg.Go(func() {
			if errs[i] = p.fetch(ctx); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		for _, err := range errs {
			if err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

// Explain returns the plan of a partition's replica for a question.
func (c *Client) Explain(ctx context.Context, partition wire.PartitionID, q Query) (string, error) {
	if err := c.checkPartition(partition); err != nil {
		return "", err
	}
	p := part{c: c, id: partition, ask: q.Query}
	if _, err := p.call(ctx, &p.ask, true); err != nil {
		return "", err
	}
	return string(p.end.Body), nil
}

// part is the question to one partition.
type part struct {
	c     *Client
	id    wire.PartitionID
	ask   query.Query
	all   bool // every page is fetched: of groups
	min   Receipt
	exact bool // linearizable
	none  bool // that prefix has no entry

	end  wire.QueryEnd
	cut  Cut
	cols []query.Column
	next *query.Cursor
	rows [][]view.Value

	scanned, matched uint64
}

// fetch gets the rows that may be among the first of the answer.
func (p *part) fetch(ctx context.Context) error {
	if p.none {
		return nil
	}
	if p.exact && p.ask.Position() == 0 {
		if err := p.confirm(ctx); err != nil {
			return err
		}
	}
	q := p.ask
	for {
		rows, err := p.call(ctx, &q, false)
		if err != nil {
			return err
		}
		if p.rows = append(p.rows, rows...); len(p.rows) > maxGathered {
			return fmt.Errorf("client: query %s: more than %d rows, allowed: %d; ask with a limit, or a narrower filter", p.id, maxGathered, maxGathered)
		}
		enough := !p.all && p.ask.Limit > 0 && len(p.rows) >= int(p.ask.Limit)
		if p.next == nil || enough {
			return nil
		}
		q.After = p.next
		if p.ask.Limit > 0 {
			q.Limit = p.ask.Limit - uint32(len(p.rows))
		}
	}
}

// confirm learns how far the partition is committed.
func (p *part) confirm(ctx context.Context) error {
	var m wire.GetReply
	_, err := p.c.retry(ctx, p.id, false, func(ctx context.Context, addr string) error {
		return p.c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
			return wire.AppendGet(dst, p.id, &wire.Get{ReqID: reqID, Seq: 1, By: wire.ByID, Mode: wire.ModeConfirmed})
		}, func(frame []byte) error { return wire.DecodeGetReply(frame, &m) })
	})
	if err == nil && m.CommitSeq > p.min.Seq {
		p.min = Receipt{Seq: m.CommitSeq}
	}
	return err
}

// call asks for one page, at backups first.
func (p *part) call(ctx context.Context, q *query.Query, explain bool) (rows [][]view.Value, err error) {
	question := q.Append(nil)
	if len(question) > wire.MaxQuestion {
		return nil, fmt.Errorf("client: query of %d bytes, allowed: %d; ask for fewer values at a time", len(question), wire.MaxQuestion)
	}
	_, err = p.c.retry(ctx, p.id, true, func(_ context.Context, addr string) error {
		attempt, cancel := context.WithTimeout(ctx, max(questionMin, p.c.cfg.SuspectAfter))
		defer cancel()
		rows, err = p.attempt(attempt, addr, question, explain)
		return err
	})
	return rows, err
}

func (p *part) attempt(ctx context.Context, addr string, question []byte, explain bool) ([][]view.Value, error) {
	k, err := p.c.callerOf(ctx, addr)
	if err != nil {
		return nil, err
	}
	q, err := p.begin(ctx, k, question, explain)
	if err != nil {
		if errors.Is(err, errLost) {
			p.c.dropCaller(k)
		}
		return nil, err
	}
	return p.await(ctx, k, q, addr, explain)
}

// begin sends a question to a node; await has to be called.
func (p *part) begin(ctx context.Context, k *caller, question []byte, explain bool) (*call, error) {
	until, _ := ctx.Deadline()
	m := wire.Query{MinSeq: p.min.Seq, MinHash: p.min.Hash, MaxBytes: pageBytes, Explain: explain, Question: question,
		TimeoutMs: uint32(max(time.Until(until)/time.Millisecond, 1))}
	return k.begin(ctx, func(dst []byte, reqID uint64) []byte {
		m.ReqID = reqID
		return wire.AppendQuery(dst, p.id, &m)
	})
}

// await reads the page that begin asked for.
func (p *part) await(ctx context.Context, k *caller, q *call, addr string, explain bool) ([][]view.Value, error) {
	frame, parts, err := k.await(ctx, q, func(dst []byte, reqID uint64) []byte {
		return wire.AppendQueryCancel(dst, p.id, &wire.QueryCancel{ReqID: reqID})
	})
	if err != nil {
		if errors.Is(err, errLost) {
			p.c.dropCaller(k)
		}
		return nil, err
	}
	if err := k.refusal(frame); err != nil {
		return nil, err
	}
	return p.decode(addr, frame, parts, explain)
}

// decode reads the frames of one page.
func (p *part) decode(addr string, frame []byte, parts [][]byte, explain bool) (rows [][]view.Value, err error) {
	if err := wire.DecodeQueryEnd(frame, &p.end); err != nil {
		return nil, &ProtocolError{Address: addr, What: "query-end", Cause: err}
	}
	if p.end.Code != wire.QueryDone {
		return nil, &QueryError{Partition: p.id, Address: addr, Code: p.end.Code, Text: printable(p.end.Body)}
	}
	p.cut = Cut{Partition: p.id, Lineage: p.end.Lineage, Epoch: p.end.Epoch, Seq: p.end.At, Hash: p.end.Hash, Address: addr}
	if explain {
		return nil, nil
	}
	p.scanned, p.matched = p.scanned+p.end.Scanned, p.matched+p.end.Matched
	for _, b := range parts {
		var m wire.QueryRows
		if err = wire.DecodeQueryRows(b, &m); err == nil {
			var some [][]view.Value
			some, err = query.DecodeRows(m.Values, int(m.Rows))
			rows = append(rows, some...)
		}
		if err != nil {
			return nil, &ProtocolError{Address: addr, What: "query-rows", Cause: err}
		}
	}
	if p.cols, p.next, err = query.DecodeHead(p.end.Body); err != nil {
		return nil, &ProtocolError{Address: addr, What: "query-end", Cause: err}
	}
	for _, r := range rows {
		if len(r) != len(p.cols) {
			return nil, &ProtocolError{Address: addr, What: fmt.Sprintf("a row of %d values in an answer of %d columns", len(r), len(p.cols))}
		}
	}
	return rows, nil
}

// latest is the receipt of a partition's latest entry among those that the answer must see.
func latest(receipts []Receipt, p wire.PartitionID) (r Receipt) {
	for _, o := range receipts {
		if o.Partition == p && o.Seq > r.Seq {
			r = o
		}
	}
	return r
}
