package client

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// readGrid is a fake grid that holds orders 1..n, and the sequence numbers they have.
func readGrid(t testing.TB, nodes, n int) (*fakeGrid, []uint64) {
	g := newFakeGrid(t, nodes)
	seqs := make([]uint64, n+1)
	for i := 1; i <= n; i++ {
		g.seq++
		seqs[i] = g.seq
		g.orders = append(g.orders, fakeOrder{payload: string(testOrder(i)), seq: g.seq})
	}
	return g, seqs
}

func openReader(t testing.TB, c *Client, opts ...ReadOption) *Reader {
	t.Helper()
	r, err := c.Reader(testPartition, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

type gotRead struct {
	order Order
	err   error
}

// collectReads is a callback and the answers it received.
func collectReads(n int) (func(*OrderView, error), chan gotRead) {
	all := make(chan gotRead, n)
	return func(v *OrderView, err error) {
		if err != nil {
			all <- gotRead{err: err}
			return
		}
		all <- gotRead{order: v.Order()}
	}, all
}

func TestReaderAnswersInOrder(t *testing.T) {
	eachIO(t, func(t *testing.T, io func(*Config)) {
		g, seqs := readGrid(t, 1, 40)
		r := openReader(t, g.dial(t, io))
		done, all := collectReads(100)
		for i := 1; i <= 40; i++ {
			check(t, r.Enqueue(seqs[i], done))
			check(t, r.EnqueueByClOrdID(fmt.Appendf(nil, "T%06d", i), done))
		}
		check(t, r.GetByClOrdIDAsync([]byte("UNUSED"), done))
		check(t, r.Drain(t.Context()))
		for i := 1; i <= 40; i++ {
			for _, how := range []string{"id", "ClOrdID"} {
				got := <-all
				if o := got.order; got.err != nil || o.ID.Seq != seqs[i] || o.ClOrdID != fmt.Sprintf("T%06d", i) || string(o.FIX) != string(testOrder(i)) ||
					o.Side != '1' || o.Symbol != "" || o.Received.UnixNano() != 7 || o.CommitSeq != g.seq || o.From == "" {
					t.Fatalf("read %d by %s: %+v, error %v", i, how, o, got.err)
				}
			}
		}
		if got := <-all; !errors.Is(got.err, ErrNotFound) {
			t.Fatalf("an unused ClOrdID: %v, want ErrNotFound", got.err)
		}
		if st := r.Stats(); st.Reads != 81 || st.ReadsAnswered != 81 || st.ReadsFailed != 0 || st.Submitted != 0 {
			t.Fatalf("stats %+v, want 81 reads answered", st)
		}
	})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReaderRefusesAtOnce(t *testing.T) {
	g, _ := readGrid(t, 1, 1)
	c := g.dial(t, func(c *Config) { c.MaxInFlight = 8 })
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	g.primary.setHook(func(_ *fakeConn, frame []byte) bool { return wire.FrameType(frame) == wire.TypeGet })
	r := openReader(t, c)
	done, _ := collectReads(100)
	for range 8 {
		check(t, r.GetAsync(1, done))
	}
	if err := r.GetAsync(1, done); !errors.Is(err, ErrWindowFull) {
		t.Errorf("the ninth of 8 reads: %v, want ErrWindowFull", err)
	}
	for want, err := range map[string]error{
		"done is nil, allowed: a function":              r.GetAsync(1, nil),
		"order id is p0/0, allowed: a seq of 1 or more": r.GetAsync(0, done),
		"ClOrdID has 0 bytes, allowed: 1..255":          r.GetByClOrdIDAsync(nil, done),
		"ClOrdID has 256 bytes, allowed: 1..255":        c.GetByClOrdIDAsync(make([]byte, 256), done),
		"read mode is 9, allowed":                       c.GetByClOrdIDAsync([]byte("A"), done, WithMode(9)),
		"partition is p7, allowed: p0..p0":              c.GetAsync(wire.OrderID{Partition: 7, Seq: 1}, done),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	r.Close()
	if err := r.GetAsync(1, done); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v, want ErrClosed", err)
	}
}

func TestReaderEndsWhatIsUnanswered(t *testing.T) {
	for name, end := range map[string]func(r *Reader){
		"deadline": func(*Reader) {},
		"close":    func(r *Reader) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := readGrid(t, 1, 1)
			g.primary.setHook(func(_ *fakeConn, frame []byte) bool { return wire.FrameType(frame) == wire.TypeGet })
			r := openReader(t, g.dial(t, func(c *Config) { c.RequestTimeout = 60 * time.Millisecond }))
			done, all := collectReads(3)
			for range 3 {
				check(t, r.GetAsync(1, done))
			}
			end(r)
			for range 3 {
				got := <-all
				if !errors.Is(got.err, ErrUnavailable) {
					t.Fatalf("error %v, want ErrUnavailable", got.err)
				}
				t.Log(got.err)
			}
			if st := r.Stats(); st.ReadsFailed != 3 || st.ReadsAnswered != 0 {
				t.Fatalf("stats %+v, want 3 failed reads", st)
			}
		})
	}
}

// TestReaderAsksAgain: a node that cannot answer yet says so, and the read is still answered.
func TestReaderAsksAgain(t *testing.T) {
	g, seqs := readGrid(t, 1, 1)
	var refused atomic.Int64
	g.primary.setHook(func(c *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeGet || refused.Add(1) > 10 {
			return false
		}
		var m wire.Get
		wire.DecodeGet(frame, &m)
		c.Write(wire.AppendReject(nil, testPartition, &wire.Reject{RequestID: m.ReqID, Code: wire.CodeOverloaded, ForType: wire.TypeGet}))
		return true
	})
	r := openReader(t, g.dial(t))
	done, all := collectReads(4)
	for range 4 {
		check(t, r.GetAsync(seqs[1], done))
	}
	for range 4 {
		if got := <-all; got.err != nil {
			t.Fatal(got.err)
		}
	}
	if st := r.Stats(); st.Connects != 1 {
		t.Fatalf("%d connections, want 1: being busy is no reason to leave", st.Connects)
	}
}

func TestReaderFollowsThePrimary(t *testing.T) {
	for name, lose := range map[string]func(g *fakeGrid){
		"killed":     func(g *fakeGrid) { n := g.primary; g.promote(g.nodes[1]); n.kill() },
		"redirected": func(g *fakeGrid) { g.promote(g.nodes[1]) },
		"cut":        func(g *fakeGrid) { g.primary.cut() },
	} {
		t.Run(name, func(t *testing.T) {
			g, seqs := readGrid(t, 2, 1)
			var hold atomic.Bool
			g.nodes[0].setHook(func(_ *fakeConn, frame []byte) bool {
				return wire.FrameType(frame) == wire.TypeGet && hold.Load()
			})
			r := openReader(t, g.dial(t))
			done, all := collectReads(20)
			check(t, r.GetAsync(seqs[1], done))
			if got := <-all; got.err != nil {
				t.Fatal(got.err)
			}
			hold.Store(true)
			for range 5 {
				check(t, r.GetAsync(seqs[1], done)) // swallowed
			}
			hold.Store(false)
			lose(g)
			for range 5 {
				check(t, r.GetAsync(seqs[1], done))
			}
			for range 10 {
				if got := <-all; got.err != nil {
					t.Fatal(got.err)
				}
			}
			if o := r.Outages(); len(o) != 1 {
				t.Fatalf("outages %v, want one", o)
			}
		})
	}
}

func TestReaderOfABackup(t *testing.T) {
	g, seqs := readGrid(t, 3, 1)
	c := g.dial(t)
	r := openReader(t, c, WithMode(Backup))
	done, all := collectReads(10)
	check(t, r.GetAsync(seqs[1], done))
	got := <-all
	if got.err != nil || got.order.From == g.primary.ln.Addr().String() {
		t.Fatalf("answered by %s, error %v, want a backup", got.order.From, got.err)
	}
	for _, n := range g.nodes[1:] {
		if n.ln.Addr().String() == got.order.From {
			n.kill()
		}
	}
	check(t, r.GetAsync(seqs[1], done))
	if again := <-all; again.err != nil || again.order.From == got.order.From {
		t.Fatalf("after its end answered by %s, error %v, want another copy", again.order.From, again.err)
	}
	check(t, c.GetAsync(wire.OrderID{Partition: testPartition, Seq: seqs[1]}, done, WithMode(Backup)))
	if got := <-all; got.err != nil {
		t.Fatal(got.err)
	}
}

// TestReaderHostileServer: for every invalid answer the caller gets an error that describes it, and
// the connection is closed.
func TestReaderHostileServer(t *testing.T) {
	found := func(change func(m *wire.GetReply)) func(wire.Get) []byte {
		return func(q wire.Get) []byte {
			m := wire.GetReply{ReqID: q.ReqID, Epoch: 1, CommitSeq: 9, Entry: fakeEntry(q.Seq, string(testOrder(1)))}
			change(&m)
			return wire.AppendGetReply(nil, testPartition, &m)
		}
	}
	entry := func(change func(e []byte) []byte) func(wire.Get) []byte {
		return found(func(m *wire.GetReply) { m.Entry = change(m.Entry) })
	}
	for name, tc := range map[string]struct {
		answer func(q wire.Get) []byte
		want   string
	}{
		"never asked":      {found(func(m *wire.GetReply) { m.ReqID = 77 }), "GetReply has reqID 77, allowed: that of a read without an answer (1..1)"},
		"reqID 0":          {found(func(m *wire.GetReply) { m.ReqID = 0 }), "reqID 0, allowed"},
		"another order":    {entry(func(e []byte) []byte { return fakeEntry(4, string(testOrder(1))) }), "seq is 4, allowed: 3, which was asked for"},
		"not committed":    {found(func(m *wire.GetReply) { m.CommitSeq = 2 }), "seq is 3, allowed: at most GetReply.commitSeq, 2"},
		"entry too short":  {entry(func(e []byte) []byte { return e[:10] }), "bytes is 10, allowed: 64 or more"},
		"entry too long":   {entry(func(e []byte) []byte { return append(e, 0) }), "1 bytes follow the entry, allowed: none"},
		"size of 4 GiB":    {entry(func(e []byte) []byte { e[3] = 0xff; return e }), "size is"},
		"field outside":    {entry(func(e []byte) []byte { e[7] = 0xff; return e }), "clOrdIDOff is"},
		"no entry":         {found(func(m *wire.GetReply) { m.Entry = nil }), "entry is 0, allowed: an entry when found"},
		"status 9":         {found(func(m *wire.GetReply) { m.Status = 9 }), "status is 9, allowed: 0 found, 1 not found"},
		"a session's kind": {entry(func(e []byte) []byte { e[4] = 3; return e }), "GetReply.entry"},
		"cut short":        {func(wire.Get) []byte { return []byte("\x09\x00\x00\x00\x31\x00\x00\x00\x00") }, "GetReply: length is 9"},
		"other partition": {func(q wire.Get) []byte {
			return wire.AppendGetReply(nil, 5, &wire.GetReply{ReqID: q.ReqID, Status: wire.GetNotFound})
		}, "GetReply.partition is p5, allowed: p0"},
		"ack": {func(wire.Get) []byte { return wire.AppendAck(nil, testPartition, &wire.Ack{ClientSeq: 1, Seq: 1}) }, "ack is for order 1"},
		"reject of a submit": {func(q wire.Get) []byte {
			return wire.AppendReject(nil, testPartition, &wire.Reject{RequestID: q.ReqID, Code: wire.CodeBadFIX, ForType: wire.TypeSubmit})
		}, "reject is for a Submit, allowed: Get"},
		"reject of nothing": {func(q wire.Get) []byte {
			return wire.AppendReject(nil, testPartition, &wire.Reject{RequestID: 66, Code: wire.CodeOverloaded, ForType: wire.TypeGet})
		}, "Reject has reqID 66, allowed"},
		"answered twice": {func(q wire.Get) []byte {
			m := wire.GetReply{ReqID: q.ReqID, Epoch: 1, CommitSeq: 9, Status: wire.GetNotFound}
			return wire.AppendGetReply(wire.AppendGetReply(nil, testPartition, &m), testPartition, &m)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newFakeGrid(t, 1)
			g.primary.setHook(func(c *fakeConn, frame []byte) bool {
				if wire.FrameType(frame) != wire.TypeGet {
					return false
				}
				var q wire.Get
				wire.DecodeGet(frame, &q)
				c.Write(tc.answer(q))
				return true
			})
			r := openReader(t, g.dial(t, func(c *Config) { c.RequestTimeout = 150 * time.Millisecond }))
			done, all := collectReads(1)
			check(t, r.GetAsync(3, done))
			got := <-all
			if tc.want == "" { // the first answer counts
				if !errors.Is(got.err, ErrNotFound) {
					t.Fatalf("error %v, want ErrNotFound", got.err)
				}
			} else if !errors.Is(got.err, ErrUnavailable) || !strings.Contains(got.err.Error(), tc.want) {
				t.Fatalf("error %v, want one that says %q", got.err, tc.want)
			}
			t.Log(got.err)
			if st := r.Stats(); st.Violations == 0 {
				t.Fatalf("stats %+v, want a violation", st)
			}
		})
	}
}

// TestOnBatch: it runs behind the callbacks of what was read at once, and what it
// sends is sent.
func TestOnBatch(t *testing.T) {
	g, seqs := readGrid(t, 1, 1)
	r := openReader(t, g.dial(t))
	answered, batches, rounds := 0, 0, 0
	over := make(chan struct{})
	done := func(_ *OrderView, err error) {
		if answered++; err != nil {
			t.Error(err)
		}
	}
	send := func() {
		for range 8 {
			if err := r.Enqueue(seqs[1], done); err != nil {
				t.Error(err)
			}
		}
	}
	r.OnBatch(func() {
		if batches++; answered%8 != 0 || answered == 0 {
			return // the rest of this round comes in another read
		}
		if rounds++; rounds == 10 {
			close(over)
			return
		}
		send()
	})
	send()
	r.Push()
	<-over
	if answered != 80 || batches > answered {
		t.Fatalf("%d answers in %d batches, want 80 answers", answered, batches)
	}
}
