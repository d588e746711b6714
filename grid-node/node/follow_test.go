package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// followOnce returns the first batch of a new follower.
func followOnce(t *testing.T, c *client.Client, o client.FollowOptions) (client.FollowBatch, error) {
	t.Helper()
	f, err := c.Follow(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	b, err := f.Next(t.Context())
	if err != nil {
		return client.FollowBatch{}, err
	}
	return *b, nil
}

// tape is what a follower has got.
type tape struct {
	mu     sync.Mutex
	hashes []uint64 // of entry 1 and on
	orders int
	after  client.Position
	from   map[string]bool // replicas
	err    error
}

func (s *tape) seq() uint64 { s.mu.Lock(); defer s.mu.Unlock(); return s.after.Seq }

// taped follows until ctx ends.
func taped(ctx context.Context, c *client.Client, o client.FollowOptions) *tape {
	s := &tape{from: map[string]bool{}}
	f, err := c.Follow(ctx, o)
	if err != nil {
		s.err = err
		return s
	}
	go func() {
		defer func() { _ = f.Close() }()
		for {
			b, err := f.Next(ctx)
			s.mu.Lock()
			if err != nil {
				if ctx.Err() == nil {
					s.err = err
				}
				s.mu.Unlock()
				return
			}
			for _, e := range b.Entries {
				s.hashes = append(s.hashes, order.Hash(e.Bytes))
				if e.Kind == order.KindOrder {
					s.orders++
				}
			}
			s.after, s.from[b.Address] = b.Through, true
			s.mu.Unlock()
		}
	}()
	return s
}

// logHashes are those of a node's log.
func (g *grid) logHashes(i int) (hashes []uint64) {
	g.t.Helper()
	g.onLoop(i, func() {
		st := g.nodes[i].data.parts.list[0].store
		for seq := uint64(1); seq <= st.Committed(); seq++ {
			hashes = append(hashes, order.Hash(st.Read(seq)))
		}
	})
	return hashes
}

// Followers at any replica get each entry once, in order, while orders flow and primaries
// are killed; those with a filter get the orders it lets through.
func TestFollowersMissAndRepeatNothing(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	c := g.client()
	part := wire.PartitionID(0)
	var tapes []*tape
	for range 3 {
		tapes = append(tapes, taped(t.Context(), g.client(), client.FollowOptions{Partition: part, Window: 32 << 10}))
	}
	mine := taped(t.Context(), g.client(), client.FollowOptions{Partition: part, Account: "ACCT"})
	others := taped(t.Context(), g.client(), client.FollowOptions{Partition: part, Account: "ACC"})
	acked, stop := g.load(c)
	for round := range 4 {
		before := acked.Load()
		g.until(func() bool { return acked.Load() > before+300 }, "no orders flow")
		if round == 2 {
			tapes = append(tapes, taped(t.Context(), g.client(), client.FollowOptions{Partition: part})) // late, and alone at first
		}
		g.kill(round % 2)
		g.until(func() bool { return acked.Load() > before+600 }, "no orders flow")
		g.start(round % 2)
		g.ready()
	}
	orders := int(stop())
	g.settled()
	want := g.logHashes(0)
	for i, s := range append(tapes, mine, others) {
		g.until(func() bool { return s.seq() >= uint64(len(want)) || s.failed() != nil }, "follower %d is at %d of %d", i, func() any { return s.seq() }, len(want))
		if err := s.failed(); err != nil {
			t.Fatalf("follower %d: %v", i, err)
		}
	}
	for i, s := range tapes {
		s.mu.Lock()
		if len(s.hashes) != len(want) || s.orders < orders {
			t.Errorf("follower %d has %d entries and %d orders, the log %d, and %d orders were acknowledged", i, len(s.hashes), s.orders, len(want), orders)
		}
		for k := range min(len(want), len(s.hashes)) {
			if s.hashes[k] != want[k] {
				t.Fatalf("follower %d: entry %d has hash %016x, that of the log %016x", i, k+1, s.hashes[k], want[k])
			}
		}
		if len(s.from) != 2 {
			t.Errorf("follower %d was at %v, want both replicas", i, s.from)
		}
		s.mu.Unlock()
	}
	if mine.orders != tapes[0].orders || len(mine.hashes) != mine.orders || len(others.hashes) != 0 {
		t.Errorf("with a filter: %d orders in %d entries, and %d of another account; want %d", mine.orders, len(mine.hashes), len(others.hashes), tapes[0].orders)
	}
}

func (s *tape) failed() error { s.mu.Lock(); defer s.mu.Unlock(); return s.err }

// follows sends a Follow on a connection without manners.
func (r *raw) follow(m *wire.Follow) {
	r.t.Helper()
	if _, err := r.Write(wire.AppendFollow(nil, 0, m)); err != nil {
		r.t.Fatal(err)
	}
}

// rawClient has said Hello.
func (g *grid) rawClient(node int) *raw {
	g.t.Helper()
	r := &raw{Conn: g.known(node), t: g.t}
	return r
}

// streamsOf is what a node's books say of streams.
func (g *grid) streamsOf(i int) (streams int, used int64) {
	g.onLoop(i, func() {
		f := &g.nodes[i].data.clients.follows
		streams, used = f.streams, f.used
	})
	return streams, used
}

// A follower that gives no room gets its window and no more, whatever comes; its place is
// not kept, and the node waits for it with nothing.
func TestFollowersAreSentTheirWindow(t *testing.T) {
	g := newGrid(t, 1, 1).up()
	c := g.client()
	for i := range 40 {
		if _, err := c.Submit(t.Context(), long(fmt.Sprintf("L-%d", i), 10<<10)); err != nil {
			t.Fatal(err)
		}
	}
	const window = 100 << 10
	r := g.rawClient(0)
	r.follow(&wire.Follow{ReqID: 1, FromSeq: 1, Window: window})
	got, through := 0, uint64(0)
	read := func() {
		_ = r.SetReadDeadline(time.Now().Add(5 * time.Minute))
		frame := r.next()
		var m wire.FollowEntries
		if err := wire.DecodeFollowEntries(frame, &m); err != nil {
			t.Fatalf("%v: %v", wire.FrameType(frame), err)
		}
		if m.From != through+1 || m.Window != window {
			t.Fatalf("from %d behind %d, window %d", m.From, through, m.Window)
		}
		got, through = got+len(frame), m.Through
	}
	read() // the first frame says that the stream has begun
	w := func() (w *follower) {
		g.onLoop(0, func() { w = g.nodes[0].data.parts.list[0].inc.followers[0] })
		return w
	}()
	for got < window {
		read()
	}
	if got > window+(16<<10) {
		t.Fatalf("%d bytes without credit, the window is %d", got, window)
	}
	g.until(func() bool { return w.log.Held() == 0 }, "the log is held for who gives no room")
	submit(t, c, "more", 20)
	var buffered int
	g.onLoop(0, func() { buffered = w.l.conn.Buffered() })
	if buffered != 0 {
		t.Fatalf("%d bytes wait for a follower that gave no room", buffered)
	}
	before := through
	if _, err := r.Write(wire.AppendFollowCredit(nil, 0, &wire.FollowCredit{ReqID: 1, Through: through, Window: window})); err != nil {
		t.Fatal(err)
	}
	for got = 0; got < window; {
		read()
	}
	if through <= before {
		t.Fatal("credit brought nothing")
	}
	if _, err := r.Write(wire.AppendFollowCredit(nil, 0, &wire.FollowCredit{ReqID: 1, Through: through})); err != nil {
		t.Fatal(err)
	}
	var end wire.FollowEnd
	if err := wire.DecodeFollowEnd(r.next(), &end); err != nil || end.Reason != wire.EndStopped {
		t.Fatalf("%+v, %v", end, err)
	}
	if n, used := g.streamsOf(0); n != 0 || used != 0 {
		t.Errorf("%d streams with windows of %d bytes are left on the books", n, used)
	}
}

// Clients that follow and read nothing cost their windows at most; orders flow beside, another follower is at
// the end, and what the node had for them is free when they are gone.
func TestFollowersThatReadNothing(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	c := g.client()
	for i := range 96 {
		if _, err := c.Submit(t.Context(), long(fmt.Sprintf("L-%d", i), 15<<10)); err != nil {
			t.Fatal(err)
		}
	}
	before := g.records()[0]
	good := taped(t.Context(), g.client(), client.FollowOptions{Replica: g.addrs[0]})
	g.until(func() bool { return good.seq() > 90 || good.failed() != nil }, "the follower that reads is at %d: %v", func() any { return good.seq() }, func() any { return good.failed() })
	bound := g.nodes[0].data.clients.follows.windows / windowsOfOne
	refused := 0
	var conns []net.Conn
	for range 60 {
		r := g.rawClient(0)
		conns = append(conns, r.Conn)
		r.follow(&wire.Follow{ReqID: 1, FromSeq: 1, Window: 1 << 20})
	}
	g.until(func() bool { n, used := g.streamsOf(0); return n > 1 && used+minWindow > bound }, "the windows are not taken")
	for _, conn := range conns[40:] { // the last ones found no room
		r := &raw{Conn: conn, t: t}
		var m wire.Reject
		if frame := r.next(); wire.FrameType(frame) == wire.TypeReject && wire.DecodeReject(frame, &m) == nil {
			refused++
			if m.Code != wire.CodeOverloaded || m.Limit != uint64(bound) || !strings.Contains(string(m.Text), "bytes of windows of this client") {
				t.Errorf("refused with %+v: %s", m, m.Text)
			}
		}
	}
	if refused == 0 {
		t.Error("there was room for every window")
	}
	submit(t, c, "beside", 300)
	g.until(func() bool { return good.seq() > 390 }, "the follower that reads is at %d", func() any { return good.seq() })
	unread := 0
	g.onLoop(0, func() { unread = g.nodes[0].loop.Stats().Unread })
	if unread > int(bound) {
		t.Errorf("%d bytes unread, the windows are %d", unread, bound)
	}
	if now := g.records()[0]; now.Epoch != before.Epoch {
		t.Errorf("epoch %d, was %d: a copy fell out", now.Epoch, before.Epoch)
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	g.until(func() bool { n, _ := g.streamsOf(0); return n == 1 }, "streams are left of connections that are gone")
}

// A connection has a bounded number of streams, and a number names one of them.
func TestStreamsAreBounded(t *testing.T) {
	g := newGrid(t, 1, 1).up()
	r := g.rawClient(0)
	for i := range connStreams {
		r.follow(&wire.Follow{ReqID: uint64(i + 1), Window: 1 << 10})
		if f := r.next(); wire.FrameType(f) != wire.TypeFollowEntries {
			t.Fatalf("stream %d: %v", i, wire.FrameType(f))
		}
	}
	r.follow(&wire.Follow{ReqID: 99, Window: 1 << 10})
	var m wire.Reject
	if err := wire.DecodeReject(r.next(), &m); err != nil || m.Code != wire.CodeOverloaded || m.Detail != connStreams || m.Limit != connStreams || !strings.Contains(string(m.Text), "streams of this connection: 64, allowed: 64") {
		t.Fatalf("%+v %s, %v", m, m.Text, err)
	}
	r.follow(&wire.Follow{ReqID: 1, Window: 1 << 10})
	if f := r.next(); wire.FrameType(f) != wire.TypeGoaway {
		t.Fatalf("a second stream of a number: %v", wire.FrameType(f))
	}
}

// A follower with another history, or that asks for entries the log does not have, gets an end with the reason.
func TestFollowersOfAnotherHistory(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	c := g.client()
	submit(t, c, "one", 20)
	g.settled()
	log := g.logHashes(0)
	for i, addr := range g.addrs {
		var diverged *client.DivergedError
		_, err := followOnce(t, c, client.FollowOptions{Replica: addr, After: client.Position{Seq: 7, Hash: 0xbad, Lineage: 1}})
		if !errors.As(err, &diverged) || !errors.Is(err, client.ErrDiverged) || diverged.Hash != log[6] ||
			!strings.Contains(err.Error(), fmt.Sprintf("entry 7 of the follower has hash 0000000000000bad, that of the log %016x", log[6])) {
			t.Errorf("node %d: %v", i, err)
		}
		b, err := followOnce(t, c, client.FollowOptions{Replica: addr, After: client.Position{Seq: 7, Hash: log[6], Lineage: 1}})
		if err != nil || b.From != 8 {
			t.Errorf("node %d: from %d, %v", i, b.From, err)
		}
		// It asks again until its time is up, so the error is the replica's once that has answered.
		g.until(func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			f, _ := c.Follow(ctx, client.FollowOptions{Replica: addr, After: client.Position{Seq: 1000, Hash: 0xbad, Lineage: 1}})
			defer f.Close()
			_, err = f.Next(ctx)
			return err != nil && strings.Contains(err.Error(), "Behind") && strings.Contains(err.Error(), "entry 1000 is not committed here")
		}, "node %d does not answer that entry 1000 is not committed there", i)
	}
}

// fills submits until a node has used more than a part of its memory, or says stop.
func (g *grid) fills(i int, c *client.Client, name string, stop func() bool) {
	g.t.Helper()
	for k := 0; !stop() && k < 60; k++ {
		if err := burst(g.t, c, fmt.Sprintf("%s%d", name, k), 1000); err != nil {
			g.t.Fatal(err)
		}
	}
}

func (g *grid) freed(i int) (seq uint64) {
	g.onLoop(i, func() { seq = g.nodes[i].data.parts.list[0].replica.Status().FreedSeq })
	return seq
}

// A reader outside holds the log, through the death of a primary, until it says what it has; one without
// a name is told what is freed.
func TestAnExternalSinkHoldsTheLog(t *testing.T) {
	g := newGrid(t, 2, 1)
	g.base.ExternalSinks = []string{"kafka"}
	g.base.MemoryLimit, g.base.Retention, g.base.HighWatermark = 64<<20, RetentionFreeDownstream, 20
	g.up()
	c := g.client()
	f, err := c.Follow(t.Context(), client.FollowOptions{Name: "kafka"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var at client.Position
	read := func(to uint64) {
		t.Helper()
		for at.Seq < to {
			b, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at = b.Through
		}
	}
	high := g.nodes[0].cfg.retention(g.nodes[0].data.parts.plan.orders).High
	primary := 0
	used := func() (n int64) {
		g.onLoop(primary, func() { n = g.nodes[primary].data.parts.budget.Used() })
		return n
	}
	g.fills(0, c, "A", func() bool { return used() > high+high/4 })
	read(200)
	if err := errors.Join(f.Advance(at.Seq, at.Hash), f.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	held := at.Seq
	g.kill(0)
	primary = 1
	submit(t, c, "B", 50)
	g.start(0)
	g.ready()
	g.until(func() bool { return g.readiness(1).Partitions[0].Role == "primary" }, "node 1 is not the primary")
	g.fills(1, c, "C", func() bool { return used() > high+high/2 })
	if seq := g.freed(1); seq > held {
		t.Fatalf("entries up to %d are freed, the sink outside holds %d", seq, held)
	}
	read(held + 5000)
	if err := errors.Join(f.Advance(at.Seq, at.Hash), f.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	g.until(func() bool { return g.freed(1) > held }, "nothing is freed although the sink outside holds entries up to %d", at.Seq)
	first := g.freed(1) + 1
	var gone *client.SnapshotRequiredError
	if _, err := followOnce(t, c, client.FollowOptions{Replica: g.addrs[1]}); !errors.As(err, &gone) || !errors.Is(err, client.ErrSnapshotRequired) || gone.After.Seq+1 < first || gone.After.Hash == 0 {
		t.Fatalf("first is %d: %v", first, err)
	}
	b, err := followOnce(t, c, client.FollowOptions{Replica: g.addrs[1], After: gone.After})
	for before := uint64(0); errors.As(err, &gone) && gone.After.Seq > before; { // more was freed meanwhile, at most what the sink holds
		before = gone.After.Seq
		b, err = followOnce(t, c, client.FollowOptions{Replica: g.addrs[1], After: gone.After})
	}
	if err != nil || b.From != gone.After.Seq+1 {
		t.Errorf("from %d behind %d, %v", b.From, gone.After.Seq, err)
	}
	// Other histories and names are refused, and positions stay as they are.
	for name, bad := range map[string]struct {
		o    client.FollowOptions
		seq  uint64
		hash uint64
		err  error
	}{
		"another history": {client.FollowOptions{Name: "kafka"}, at.Seq + 1, 0xbad, client.ErrDiverged},
		"no such reader":  {client.FollowOptions{Name: "flink"}, at.Seq, at.Hash, client.ErrReaderUnknown},
	} {
		o, err := c.Follow(t.Context(), bad.o)
		if err != nil {
			t.Fatal(err)
		}
		_ = o.Advance(bad.seq, bad.hash)
		if err := o.Flush(t.Context()); !errors.Is(err, bad.err) {
			t.Errorf("%s: %v", name, err)
		}
		_ = o.Close()
	}
	if _, err := followOnce(t, c, client.FollowOptions{Name: "flink"}); !errors.Is(err, client.ErrReaderUnknown) || !strings.Contains(err.Error(), "allowed: kafka") {
		t.Errorf("a stream in the name of no reader: %v", err)
	}
	// A stream in the name takes the place of the one before.
	if _, err := followOnce(t, c, client.FollowOptions{Name: "kafka", After: at, Replica: g.addrs[1]}); err != nil {
		t.Error(err)
	}
}

// The stream of a reader ends where another one begins.
func TestAReaderIsReplaced(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.ExternalSinks = []string{"kafka"}
	g.up()
	c := g.client()
	first := taped(t.Context(), c, client.FollowOptions{Name: "kafka"})
	g.until(func() bool { return first.seq() > 0 }, "nothing comes")
	if _, err := followOnce(t, c, client.FollowOptions{Name: "kafka"}); err != nil {
		t.Fatal(err)
	}
	g.until(func() bool { return first.failed() != nil }, "the first stream goes on")
	if err := first.failed(); !errors.Is(err, client.ErrReplaced) {
		t.Error(err)
	}
}

// A permission that is withdrawn ends the streams it was for.
func TestFollowersLoseTheirPermission(t *testing.T) {
	d := newDesk(t, 1, access.Limits{})
	c, err := client.Dial(t.Context(), d.as("operations"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	s := taped(t.Context(), c, client.FollowOptions{})
	d.until(func() bool { return s.seq() > 0 }, "nothing comes")
	d.rule(strings.ReplaceAll(deskRules, `, "Watch"`, ""))
	d.until(func() bool { return s.failed() != nil }, "the stream goes on")
	if err := s.failed(); !errors.Is(err, client.ErrNotPermitted) || !strings.Contains(err.Error(), "Submit, Read, Admin, Sink") {
		t.Error(err)
	}
}
