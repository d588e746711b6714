package node

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// question is one Query. Of the data loop, but for what its goroutine writes before it hands it back.
type question struct {
	p        *partition
	inc      *incarnation
	l        *link
	client   uint64
	m        wire.Query // its bytes are a copy
	v        *view.View
	ctx      context.Context
	cancel   context.CancelFunc
	deadline int64         // Mono; beyond it an answer that is not read is dropped
	ready    chan struct{} // closed once the view has entry MinSeq
	waits    bool          // ready is open
	full     bool          // when ready: the view ends before the log does
	fault    wire.QueryEnd // when ready: why it is not to be run, Done if it is
	stopped  wire.QueryEndCode

	began  int64          // Mono
	shot   *view.Snapshot // that the answer is of, until the loop has its hash
	way    query.Way
	rows   uint64
	end    wire.QueryEnd
	frames [][]byte // rows that the connection has not taken
}

// questionStep rows are looked at between two looks whether the question is still wanted.
const questionStep = 1 << 14

// stop ends a question that has no answer yet.
func (q *question) stop(code wire.QueryEndCode) {
	if q.stopped == 0 {
		q.stopped = code
		q.cancel()
	}
}

// check lets a question go on whose view has the entry that it must see.
func (q *question) check() {
	q.waits = false
	q.full = q.v.Incomplete() != nil
	var other *view.HistoryError
	if errors.As(q.inc.view.f.Has(q.m.MinSeq, q.m.MinHash), &other) {
		q.fault = wire.QueryEnd{Code: wire.QueryDiverged, Hash: other.Hash, Body: []byte(other.Error())}
	}
	close(q.ready)
}

// answer lets questions go on that waited for what was just applied.
func (w *partView) answer() {
	if len(w.asked) == 0 {
		return
	}
	applied, ended := w.v.Applied(), w.v.Incomplete() != nil
	w.asked = slices.DeleteFunc(w.asked, func(q *question) bool {
		switch {
		case q.ctx.Err() != nil:
			return true
		case q.m.MinSeq > applied && ended:
			q.fault = wire.QueryEnd{Code: wire.QueryIncomplete, Body: []byte(w.why)}
			q.waits = false
			close(q.ready)
			return true
		case q.m.MinSeq > applied:
			return false
		}
		q.check()
		return true
	})
}

// failed sets the end of a question without an answer.
func (q *question) failed(code wire.QueryEndCode, text string) {
	q.end.Code, q.end.Body = code, []byte(text)
	q.frames = nil
}

// run answers the question, on a goroutine of its own, and hands it to the loop.
func (q *question) run(slots chan struct{}) {
	select {
	case <-q.ready:
		if q.end = q.fault; q.end.Code == wire.QueryDone {
			select {
			case slots <- struct{}{}:
				q.answer()
				<-slots
			case <-q.ctx.Done():
				q.interrupted(0)
			}
		}
	case <-q.ctx.Done():
		q.interrupted(0)
		if q.end.Code == wire.QueryTimedOut {
			q.failed(wire.QueryBehind, fmt.Sprintf("entry %d is not applied here within %d ms, entries up to %d are: ask another copy, or later", q.m.MinSeq, q.m.TimeoutMs, q.v.Applied()))
			q.end.At = q.v.Applied()
		}
	}
	if !q.p.loop.Post(q.finish) {
		q.release()
	}
}

func (q *question) release() {
	if q.shot != nil {
		q.shot.Release()
		q.shot = nil
	}
}

// interrupted says why the context has ended.
func (q *question) interrupted(scanned uint64) {
	if q.inc.ctx.Err() != nil {
		q.failed(wire.QueryLeaving, "the replica stops serving here: ask another")
	} else if errors.Is(q.ctx.Err(), context.DeadlineExceeded) {
		q.failed(wire.QueryTimedOut, fmt.Sprintf("it took more than %d ms, after %d rows; ask with a narrower filter, or with more time", q.m.TimeoutMs, scanned))
	} else {
		q.failed(wire.QueryCancelled, "the client asked for it, or lost its permission")
	}
	q.end.Scanned = scanned
}

// answer runs the question on a snapshot.
func (q *question) answer() {
	limits := q.p.clients.questions.limits
	limits.Page = int64(q.m.MaxBytes)
	asked, err := query.Decode(q.m.Question, limits)
	if err != nil {
		q.failed(wire.QueryRefused, err.Error())
		return
	}
	if q.full && asked.Position() == 0 {
		q.failed(wire.QueryIncomplete, fmt.Sprintf("the view ends at entry %d, before the log does, for want of memory", q.v.Applied()))
		return
	}
	if q.shot, err = q.v.Snapshot(asked.Position()); err != nil {
		q.wrong(err)
		return
	}
	q.end.At, q.end.Base = q.shot.At(), q.shot.Base()
	x, err := query.OpenAt(q.shot, asked, limits)
	if err == nil {
		q.way = x.Way()
	}
	switch {
	case err != nil:
		q.wrong(err)
	case q.m.Explain:
		q.end.Body = []byte(x.Explain())
	default:
		q.steps(x)
	}
}

// steps runs the question to its end.
func (q *question) steps(x *query.Exec) {
	for {
		done, err := x.Step(questionStep)
		switch scanned := uint64(x.Result().Scanned); {
		case err != nil:
			q.wrong(err)
			return
		case q.ctx.Err() != nil:
			q.interrupted(scanned)
			return
		case done:
			q.encode(x.Result())
			return
		}
		runtime.Gosched()
	}
}

// encode makes the frames of an answer: a snapshot's values are its own.
func (q *question) encode(a *query.Result) {
	q.rows = uint64(len(a.Rows))
	q.end.Base, q.end.Scanned, q.end.Matched = a.Base, uint64(a.Scanned), uint64(a.Matched)
	m := wire.QueryRows{ReqID: q.m.ReqID}
	flush := func() {
		if m.Rows > 0 {
			q.frames = append(q.frames, wire.AppendQueryRows(nil, q.p.id, &m))
			m.Rows, m.Values = 0, m.Values[:0]
		}
	}
	for _, row := range a.Rows {
		before := len(m.Values)
		if m.Values = query.AppendRow(m.Values, row); len(m.Values) > wire.MaxQueryBytes && m.Rows > 0 {
			last := slices.Clone(m.Values[before:])
			m.Values = m.Values[:before]
			flush()
			m.Values = append(m.Values, last...)
		}
		m.Rows++
	}
	flush()
	q.end.Body = query.AppendHead(nil, a)
}

// wrong is for errors of packages view and query.
func (q *question) wrong(err error) {
	var old *view.TooOldError
	var behind *view.NotAppliedError
	var refused *query.Error
	code := wire.QueryBound
	switch {
	case errors.As(err, &old):
		code, q.end.Base = wire.QueryTooOld, old.Base
	case errors.As(err, &behind):
		code, q.end.At = wire.QueryBehind, behind.Applied
	case errors.As(err, &refused):
		code = wire.QueryRefused
	}
	q.failed(code, err.Error())
}

// cut names the prefix that the answer is about: the hash of its last entry is the loop's to look up, while the snapshot
// holds it.
func (q *question) cut() {
	if q.p.inc != q.inc || !q.p.answers() {
		q.failed(wire.QueryLeaving, fmt.Sprintf("%s is %s here now: ask another copy", q.p.id, q.p.status.Role))
		return
	}
	if q.end.Hash = q.inc.store.HashAt(q.end.At); q.end.Hash == 0 && q.end.At > 0 { // its view was over, and nothing was held for it
		q.failed(wire.QueryTooOld, fmt.Sprintf("entry %d was freed before the answer was complete: ask again", q.end.At))
		return
	}
	q.end.Lineage = uint32(q.p.replica.Lineage())
	if c := q.p.status.Config; c != nil {
		q.end.Epoch = c.Epoch
	}
}

// finish takes the question back from its goroutine; on the loop.
func (q *question) finish() {
	qs := &q.p.clients.questions
	if q.end.Code == wire.QueryDone {
		q.cut()
	}
	q.release()
	q.inc.view.users--
	if q.waits {
		w := q.inc.view
		w.asked = slices.DeleteFunc(w.asked, func(o *question) bool { return o == q })
	}
	if !q.p.closed && q.p.inc == q.inc {
		q.p.all.views.touch(q.p) // entries that it held may be freed
	}
	if q.end.Code == wire.QueryDone && !q.m.Explain {
		qs.stats.Returned += q.rows
		qs.stats.Took[q.way].Observe(q.p.loop.Clock().Mono() - q.began)
	}
	qs.answered = append(qs.answered, q)
	qs.give()
}

// give writes what the connection takes, and reports whether the question is over; on the loop.
func (q *question) give(now int64) (over bool) {
	c := q.l.conn
	if !c.Open() {
		return true
	}
	for len(q.frames) > 0 && c.Buffered() <= crowdedOut {
		c.SetOut(append(c.Out(), q.frames[0]...))
		c.Spend(len(q.frames[0]))
		q.frames = q.frames[1:]
	}
	switch {
	case len(q.frames) > 0 && now < q.deadline && q.stopped == 0:
		return false
	case len(q.frames) > 0:
		q.failed(wire.QueryTimedOut, "the client did not read the answer in time")
	}
	q.end.ReqID = q.m.ReqID
	c.SetOut(wire.AppendQueryEnd(c.Out(), q.p.id, &q.end))
	return true
}

// patience is how long a question may take.
func (q *question) patience() time.Duration {
	return min(time.Duration(q.m.TimeoutMs)*time.Millisecond, maxQuestionTime)
}
