package node

import (
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A question for the rows of one ClOrdID is answered by the loop, as a Get is: handing it to a goroutine and back takes
// several times as long as the answer. What it may cost is bounded by the bytes of the question and the rows looked at.
const (
	shortRows = 16      // looked at
	shortWork = 4 << 10 // bytes of answers that it is counted as, beside its rows
)

// short answers a question by key at once, and reports whether it did.
func (q *question) short() bool {
	if q.m.Explain || len(q.m.Question) > query.ShortBytes || q.m.MinSeq > q.v.Applied() || q.v.Incomplete() != nil || q.inc.view.f.Has(q.m.MinSeq, q.m.MinHash) != nil {
		return false
	}
	limits := q.p.clients.questions.limits
	limits.Page = int64(q.m.MaxBytes)
	asked, err := query.Decode(q.m.Question, limits)
	if err != nil {
		return false
	}
	s, err := q.v.Snapshot(0)
	if err != nil {
		return false
	}
	q.shot = s
	x := query.ShortAt(s, asked, limits, shortRows)
	if x == nil {
		q.release()
		return false
	}
	if done, err := x.Step(shortRows + 1); err != nil || !done {
		q.release()
		return false
	}
	q.way, q.cancel = x.Way(), func() {}
	q.end = wire.QueryEnd{At: s.At(), Base: s.Base()}
	q.encode(x.Result())
	return true
}
