package node

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Clients may ask questions about the orders of a partition, at any replica in sync that keeps a view. A question has a
// goroutine, some of them run at once, in steps; the loop takes part where it begins and where its answer is written.
// An answer is one page of bounded size: asking for the next one is what lets the node send more. A client that does not
// read its answers keeps its own questions from being answered, until they time out.

const (
	maxQuestions    = 64 // of a node, waiting, running, or with an answer that is not read
	clientQuestions = 16 // of one client
	maxQuestionTime = 30 * time.Second
	maxPage         = 1 << 20 // bytes of an answer
	// questionsPart of the heap is for what questions keep while they run, all together.
	questionsPart = 4
)

// questions are those of all clients. Of the data loop, but for slots and limits.
type questions struct {
	n        int
	ofClient map[uint64]int // by link.client
	answered []*question    // whose answers are not written
	slots    chan struct{}  // of those that run
	limits   query.Limits
	stats    metrics.Questions
}

func newQuestions(plan memoryPlan) questions {
	running := max(1, min(4, runtime.NumCPU()/2))
	memory := plan.heap / questionsPart / int64(running)
	return questions{ofClient: map[uint64]int{}, slots: make(chan struct{}, running),
		limits: query.Limits{Bytes: wire.MaxQuestion, Memory: min(memory, 16<<20), Groups: 50_000}}
}

// query begins a question, or says why it does not.
func (c *clients) query(l *link, frame []byte) error {
	var m wire.Query
	if err := wire.DecodeQuery(frame, &m); err != nil {
		return c.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	l.conn.Spend(len(m.Question)) // beside followWork: it is copied
	p := c.parts.at(wire.FramePartition(frame))
	switch {
	case p == nil:
		return c.directory.notHere(l, wire.TypeQuery, frame)
	case p.ended:
		return c.directory.notServed(l, p, wire.TypeQuery, frame)
	case slices.ContainsFunc(l.questions, func(q *question) bool { return q.m.ReqID == m.ReqID }):
		return c.badFrame(l, wire.GoawayProtocol, fmt.Sprintf("frame Query: reqID is %d, allowed: one that no question of the connection has", m.ReqID))
	case p.inc.view == nil:
		return c.refuseQuery(l, p, &m, wire.CodeUnsupported, 0, 0, "this node keeps no views of orders, allowed: questions to nodes with --views")
	case !p.answers():
		return c.endQuery(l, p, &m, wire.QueryLeaving, fmt.Sprintf("%s is %s here, allowed: to ask the primary, or a backup", p.id, p.status.Role))
	}
	qs := &c.questions
	for _, bound := range []struct {
		what        string
		have, limit int
	}{{"of this client", qs.ofClient[l.client], clientQuestions}, {"of all clients", qs.n, maxQuestions}} {
		if bound.have >= bound.limit {
			qs.stats.Rejected++
			return c.refuseQuery(l, p, &m, wire.CodeOverloaded, bound.have, bound.limit,
				fmt.Sprintf("questions %s on the node: %d, allowed: %d; wait for an answer, or ask another copy", bound.what, bound.have, bound.limit))
		}
	}
	w := p.inc.view
	if w.v == nil && !c.parts.views.wants(p, w) {
		return c.endQuery(l, p, &m, wire.QueryLeaving, fmt.Sprintf("%s is primary here, and views are kept by backups, allowed: to ask one", p.id))
	}
	if w.v == nil && !c.parts.views.open(p, w) {
		return c.endQuery(l, p, &m, wire.QueryIncomplete, w.why)
	}
	if w.v.Incomplete() != nil && m.MinSeq > w.v.Applied() {
		return c.endQuery(l, p, &m, wire.QueryIncomplete, w.why)
	}
	c.startQuestion(l, p, &m)
	return nil
}

func (c *clients) startQuestion(l *link, p *partition, m *wire.Query) {
	q := &question{p: p, inc: p.inc, l: l, client: l.client, m: *m, v: p.inc.view.v}
	q.m.MaxBytes = min(m.MaxBytes, maxPage)
	q.began = p.loop.Clock().Mono()
	q.deadline = q.began + int64(q.patience())
	p.inc.view.users++
	l.questions = append(l.questions, q)
	c.questions.n++
	c.questions.ofClient[q.client]++
	if q.short() {
		l.conn.Spend(shortWork)
		q.finish()
		return
	}
	q.m.Question = slices.Clone(m.Question)
	q.ready = make(chan struct{})
	q.ctx, q.cancel = context.WithTimeout(p.inc.ctx, q.patience())
	if q.m.MinSeq <= q.v.Applied() {
		q.check()
	} else {
		q.waits = true
		p.inc.view.asked = append(p.inc.view.asked, q)
	}
	p.inc.wg.Go(func() { q.run(c.questions.slots) })
}

// answers reports whether the replica's log is in sync: what it has committed is of the partition.
func (p *partition) answers() bool {
	return p.status.Role == replica.RolePrimary || p.status.Role == replica.RoleBackup
}

// cancelQuery ends a question. It may have been answered meanwhile.
func (c *clients) cancelQuery(l *link, frame []byte) error {
	var m wire.QueryCancel
	if err := wire.DecodeQueryCancel(frame, &m); err != nil {
		return c.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	for _, q := range l.questions {
		if q.m.ReqID == m.ReqID {
			q.stop(wire.QueryCancelled)
		}
	}
	return nil
}

func (c *clients) refuseQuery(l *link, p *partition, m *wire.Query, code wire.Code, have, limit int, text string) error {
	l.conn.SetOut(wire.AppendReject(l.conn.Out(), p.id, &wire.Reject{RequestID: m.ReqID, Code: code, ForType: wire.TypeQuery, Detail: uint64(have), Limit: uint64(limit), Text: []byte(text)}))
	return nil
}

func (c *clients) endQuery(l *link, p *partition, m *wire.Query, code wire.QueryEndCode, text string) error {
	c.questions.stats.Ends[code]++
	l.conn.SetOut(wire.AppendQueryEnd(l.conn.Out(), p.id, &wire.QueryEnd{ReqID: m.ReqID, Code: code, Body: []byte(text)}))
	return nil
}

// give writes answers as far as connections take them.
func (qs *questions) give() {
	if len(qs.answered) == 0 {
		return
	}
	qs.answered = slices.DeleteFunc(qs.answered, func(q *question) bool {
		if !q.give(q.p.loop.Clock().Mono()) {
			return false
		}
		q.cancel()
		q.l.questions = slices.DeleteFunc(q.l.questions, func(o *question) bool { return o == q })
		qs.n--
		if qs.ofClient[q.client]--; qs.ofClient[q.client] == 0 {
			delete(qs.ofClient, q.client)
		}
		qs.stats.Ends[q.end.Code]++
		qs.stats.Scanned += q.end.Scanned
		return true
	})
}
