package client

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// questions answers the questions that come to the nodes of a fake grid.
type questions struct {
	mu     sync.Mutex
	asked  int
	conns  map[*fakeConn]bool
	answer func(asked int) (code wire.QueryEndCode, silent bool)
}

func (q *questions) at(t *testing.T, g *fakeGrid) {
	q.conns = map[*fakeConn]bool{}
	for _, n := range g.nodes {
		n.setHook(func(c *fakeConn, frame []byte) bool {
			if wire.FrameType(frame) == wire.TypeQueryCancel {
				return true
			}
			if wire.FrameType(frame) != wire.TypeQuery {
				return false
			}
			var m wire.Query
			if err := wire.DecodeQuery(frame, &m); err != nil {
				t.Error(err)
			}
			q.mu.Lock()
			q.asked++
			q.conns[c] = true
			code, silent := q.answer(q.asked)
			q.mu.Unlock()
			if silent {
				return true
			}
			end := wire.QueryEnd{ReqID: m.ReqID, Code: code, Body: []byte("said so")}
			if code == wire.QueryDone {
				end.Body = query.AppendHead(nil, &query.Result{Columns: []query.Column{{Name: "Seq", Kind: view.Int}}})
			}
			c.Write(wire.AppendQueryEnd(nil, wire.FramePartition(frame), &end)) //nolint:errcheck // the client may be gone
			return true
		})
	}
}

func done(int) (wire.QueryEndCode, bool) { return wire.QueryDone, false }

// keyedQuery names one ClOrdID, with a further condition of some bytes.
func keyedQuery(more int) Query {
	where := query.Expr{Op: query.Eq, Field: view.ClOrdID, Values: []view.Value{{Kind: view.Text, Text: "A-1"}}}
	if more > 0 {
		account := query.Expr{Op: query.Eq, Field: view.Account, Values: []view.Value{{Kind: view.Text, Text: strings.Repeat("x", more)}}}
		where = query.Expr{Op: query.And, Args: []query.Expr{where, account}}
	}
	return Query{Query: query.Query{Where: &where}}
}

// TestKeyedQuestionIsAskedAgain: a node that has no time for a keyed question in its first attempt, or whose view has no
// room, is no end of it.
func TestKeyedQuestionIsAskedAgain(t *testing.T) {
	for _, code := range []wire.QueryEndCode{wire.QueryTimedOut, wire.QueryIncomplete, wire.QueryBehind, wire.QueryLeaving} {
		p0, p1 := twoPartitions(t, 2)
		busy, idle := &questions{answer: func(asked int) (wire.QueryEndCode, bool) {
			if asked == 1 {
				return code, false
			}
			return wire.QueryDone, false
		}}, &questions{answer: done}
		busy.at(t, p0)
		idle.at(t, p1)
		c := p0.dial(t)
		if _, err := c.Query(t.Context(), keyedQuery(0)); err != nil || busy.asked != 2 || idle.asked != 1 {
			t.Errorf("%s: %v; asked %d and %d times, want 2 and 1", code, err, busy.asked, idle.asked)
		}
	}
	p0, p1 := twoPartitions(t, 2)
	refused, idle := &questions{answer: func(int) (wire.QueryEndCode, bool) { return wire.QueryRefused, false }}, &questions{answer: done}
	refused.at(t, p0)
	idle.at(t, p1)
	if _, err := p0.dial(t).Query(t.Context(), keyedQuery(0)); err == nil || !strings.Contains(err.Error(), "said so") || refused.asked != 1 {
		t.Errorf("refused: %v, asked %d times, want what the node said, once", err, refused.asked)
	}
}

// TestKeyedQuestionBesideASilentNode: a node that does not answer costs the connections to the others nothing.
func TestKeyedQuestionBesideASilentNode(t *testing.T) {
	p0, p1 := twoPartitions(t, 1)
	silent, quick := &questions{}, &questions{answer: done}
	silent.answer = func(asked int) (wire.QueryEndCode, bool) { return wire.QueryDone, asked == 1 }
	silent.at(t, p0)
	quick.at(t, p1)
	c := p0.dial(t, func(c *Config) { c.SuspectAfter = 20 * time.Millisecond })
	for range 4 {
		if _, err := c.Query(t.Context(), keyedQuery(0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(quick.conns) != 1 || quick.asked < 5 {
		t.Errorf("%d questions over %d connections to the node that answered at once, want 5 or more over one", quick.asked, len(quick.conns))
	}
}

// TestKeyedQuestionThatIsLong: what a node would not answer at once, or is too long, is asked as other questions are.
func TestKeyedQuestionThatIsLong(t *testing.T) {
	p0, p1 := twoPartitions(t, 2)
	a, b := &questions{answer: done}, &questions{answer: done}
	a.at(t, p0)
	b.at(t, p1)
	c := p0.dial(t)
	if _, err := c.Query(t.Context(), keyedQuery(wire.MaxQuestion)); err == nil || !strings.Contains(err.Error(), "allowed: 65536") || a.asked+b.asked != 0 {
		t.Errorf("%v, asked %d times; want that it is too long, before it is sent", err, a.asked+b.asked)
	}
	for more, together := range map[int]bool{0: true, 10: true, query.ShortBytes: false} {
		q := keyedQuery(more)
		g, err := newGather(c, &q)
		if err != nil || g.together() != together {
			t.Errorf("with %d bytes more: together %t, %v", more, g.together(), err)
		}
	}
}
