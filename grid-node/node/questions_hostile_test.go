package node

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// wide is a question for everything.
func wide() []byte {
	q := query.Query{Select: []view.Field{view.Seq, view.ClOrdID, view.Symbol, view.Account, view.Price, view.OrderQty, view.TransactTime, view.Received, view.State}}
	return q.Append(nil)
}

// openQuestions are those of node 0, and the bytes of their answers that no connection has taken.
func (g *grid) openQuestions() (n, held int) {
	g.onLoop(0, func() {
		qs := &g.nodes[0].data.clients.questions
		n = qs.n
		for _, q := range qs.answered {
			for _, f := range q.frames {
				held += len(f)
			}
		}
	})
	return n, held
}

// A client that asks and never reads holds a bounded number of answers of bounded size, until they
// time out; others are answered meanwhile.
func TestAnswersThatAreNotRead(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.MinInSync, g.base.Views = 1, &Views{Memory: 64 << 20, Rows: 1 << 16}
	c := g.up().client()
	acked, stop := g.load(c)
	g.until(func() bool { return acked.Load() > 3000 }, "no orders flow")
	r := dialRaw(t, g.addrs[0])
	_ = r.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	b := hello(wire.RoleClient, 0, "silent", "")
	const hostile = clientQuestions - 4
	for i := range hostile {
		b = wire.AppendQuery(b, 0, &wire.Query{ReqID: uint64(i + 1), TimeoutMs: 1500, MaxBytes: 1 << 30, Question: wide()})
	}
	if _, err := r.Write(b); err != nil {
		t.Fatal(err)
	}
	g.until(func() bool { _, held := g.openQuestions(); return held > 0 }, "everything was taken")
	for range 10 {
		before := acked.Load()
		if _, err := c.Query(t.Context(), client.Query{Query: query.Query{Aggregates: []query.Aggregate{{Func: query.Count}}}}); err != nil {
			t.Fatal(err)
		}
		g.until(func() bool { return acked.Load() > before }, "orders wait")
		if n, held := g.openQuestions(); n > clientQuestions || held > hostile*(maxPage+wire.MaxQueryBytes) {
			t.Fatalf("%d questions, %d bytes", n, held)
		}
	}
	stop()
	g.until(func() bool { n, held := g.openQuestions(); return n == 0 && held == 0 }, "answers are kept")
}

// More questions than allowed, and questions that are none, are refused one by one; the connection goes on.
func TestQuestionsBeyondTheBounds(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.MinInSync, g.base.Views = 1, &Views{Memory: 64 << 20, Rows: 1 << 16}
	submit(t, g.up().client(), "bound", 3)
	r := dialRaw(t, g.addrs[0])
	b := hello(wire.RoleClient, 0, "hostile", "")
	for i := range clientQuestions + 3 { // they wait for an entry that does not come
		b = wire.AppendQuery(b, 0, &wire.Query{ReqID: uint64(i + 1), MinSeq: 1 << 40, TimeoutMs: 60_000, MaxBytes: 1, Question: wide()})
	}
	for i := range clientQuestions {
		b = wire.AppendQueryCancel(b, 0, &wire.QueryCancel{ReqID: uint64(i + 1)})
	}
	if _, err := r.Write(b); err != nil {
		t.Fatal(err)
	}
	rejected, cancelled := 0, 0
	for rejected+cancelled < clientQuestions+3 {
		frame := r.next()
		var end wire.QueryEnd
		switch wire.FrameType(frame) {
		case wire.TypeReject:
			rejected++
		case wire.TypeQueryEnd:
			if err := wire.DecodeQueryEnd(frame, &end); err != nil || end.Code != wire.QueryCancelled {
				t.Fatalf("%+v, %v", end, err)
			}
			cancelled++
		}
	}
	if rejected != 3 {
		t.Errorf("%d rejected", rejected)
	}
	if _, err := r.Write(wire.AppendQuery(nil, 0, &wire.Query{ReqID: 1, TimeoutMs: 1000, MaxBytes: 1, Question: []byte("select * from orders")})); err != nil {
		t.Fatal(err)
	}
	var end wire.QueryEnd
	if err := wire.DecodeQueryEnd(r.next(), &end); err != nil || end.Code != wire.QueryRefused {
		t.Errorf("%+v, %v", end, err)
	}
}

// A question that is longer than any may be ends its connection, with the reason.
func TestAQuestionOfAMegabyte(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.MinInSync, g.base.Views = 1, &Views{Memory: 64 << 20, Rows: 1 << 16}
	submit(t, g.up().client(), "long", 1)
	r := dialRaw(t, g.addrs[0])
	b := wire.AppendQuery(nil, 0, &wire.Query{ReqID: 1, TimeoutMs: 1000, MaxBytes: 1, Question: wide()})
	b = append(b, make([]byte, wire.MaxFrame-len(b))...)
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	if _, err := r.Write(append(hello(wire.RoleClient, 0, "long", ""), b...)); err != nil {
		t.Fatal(err)
	}
	for {
		frame := r.next()
		if wire.FrameType(frame) == wire.TypeWelcome {
			continue
		}
		var m wire.Goaway
		if err := wire.DecodeGoaway(frame, &m); err != nil || !strings.Contains(string(m.Text), "frame of 1048576 bytes, allowed from a client: at most ") {
			t.Errorf("%s %q, %v", wire.FrameType(frame), m.Text, err)
		}
		return
	}
}

// A node without views says so.
func TestNoViews(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.MinInSync = 1
	c := g.up().client()
	if _, err := c.Query(t.Context(), ofAccount("ACCT")); err == nil {
		t.Error("an answer without a view")
	}
}
