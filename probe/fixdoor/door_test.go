package fixdoor

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/grid"
	"github.com/ordergrid/ordergrid/probe/ledger"
	"github.com/ordergrid/ordergrid/probe/load"
)

// road is what is between a session and its gateway. It passes bytes on, and cuts connections.
type road struct {
	net.Listener
	to   atomic.Value // address
	cuts atomic.Int64
	mu   sync.Mutex
	rnd  *rand.Rand // nil: nothing is cut
}

func newRoad(t *testing.T, to string, rnd *rand.Rand) *road {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{Listener: l, rnd: rnd}
	r.to.Store(to)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(c)
		}
	}()
	return r
}

func (r *road) carry(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", r.to.Load().(string))
	if err != nil {
		return
	}
	defer s.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
		both.Go(func() {
			defer c.Close()
			defer s.Close()
			for b := make([]byte, 64<<10); ; {
				n, err := way[0].Read(b)
				if err != nil {
					return
				}
				cut := r.cut()
				if cut == 1 { // what was sent does not arrive
					return
				}
				if _, err := way[1].Write(b[:n]); err != nil || cut == 2 {
					return // it arrives, and what is sent for it does not
				}
			}
		})
	}
	both.Wait()
}

// cut returns how a message fares: 1 it is lost, 2 the connection ends behind it; each of them rarely.
func (r *road) cut() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rnd == nil {
		return 0
	}
	switch n := r.rnd.IntN(40); n {
	case 1, 2:
		r.cuts.Add(1)
		return n
	}
	return 0
}

type setting struct {
	g     *testgrid.Grid
	c     *grid.Grid
	gates []string // addresses of gateways
	file  string
}

// before starts a grid, with gateways before it that know so many sessions of a version in partition 1.
func before(t *testing.T, version string, gateways, sessions int) *setting {
	t.Helper()
	x := &setting{g: testgrid.Run(t)}
	var err error
	if x.c, err = grid.Dial(t.Context(), grid.Config{Endpoints: x.g.Endpoints, RequestTimeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.c.Close() })
	names, err := Names(version, 0, map[wire.PartitionID]int{1: sessions}, x.c.SessionHome)
	if err != nil {
		t.Fatal(err)
	}
	if x.file, err = WriteSessions(t.TempDir(), names, "secret"); err != nil {
		t.Fatal(err)
	}
	for range gateways {
		w, err := x.g.StartGateway(t.Context(), testgrid.Program(t, "order-gateway"), "--listen", "127.0.0.1:0", "--sessions", x.file, "--fix-insecure-plain")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Kill)
		x.gates = append(x.gates, w.Address)
	}
	return x
}

func (x *setting) door(t *testing.T, addresses ...string) *Door {
	t.Helper()
	d, err := New(Config{Addresses: addresses, Sessions: x.file, Timeout: time.Minute}, x.c.SessionHome)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// judge holds what became of orders against both copies of the log.
func (x *setting) judge(t *testing.T, id fixorder.ID, orders []load.Order) (all ledger.Counts) {
	t.Helper()
	last := uint64(0)
	for i := range orders {
		last = max(last, orders[i].Seq)
	}
	if err := x.c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	copies := x.c.Copies(1)
	if len(copies) != 2 {
		t.Fatalf("%d copies, want 2", len(copies))
	}
	for _, c := range copies {
		k := ledger.NewChecker(id, 0, 0, false)
		k.Begin(0, orders, func(_ int64, fix []byte) error { return fixorder.Check(fixorder.Unaddressed(fix, "")) })
		if err := x.c.ReadLog(t.Context(), 1, c.Address, 1, last, k.Entry); err != nil {
			t.Fatal(err)
		}
		n := k.Finish()
		if n.Lost+n.Duplicates+n.Misplaced+n.Refused+n.Corrupt+n.Gaps+n.ChainBreaks != 0 {
			t.Errorf("%s: %+v %v", c.Member, n, k.Examples())
		}
		all.Add(n)
	}
	return all
}

// submit sends orders by a session, and notes what became of them.
func submit(ctx context.Context, t *testing.T, x *Session, id fixorder.ID, n int) []load.Order {
	t.Helper()
	maker, err := fixorder.NewMaker(fixorder.FIX44, id)
	if err != nil {
		t.Fatal(err)
	}
	orders := make([]load.Order, n)
	for i := range orders {
		r, err := x.Submit(ctx, maker.Make(int64(i), int64(i+1), time.Now(), time.Now()))
		if err != nil {
			t.Fatalf("order %d: %v", i, err)
		}
		orders[i] = load.Order{Seq: r.Seq, Epoch: r.Epoch, Fate: load.Acked}
	}
	return orders
}

// Connections are cut at any place, by turns before two gateways: each order is in the log once, where its report says.
func TestOrdersSurviveCuts(t *testing.T) {
	x := before(t, "FIX.4.4", 2, 1)
	roads := []*road{newRoad(t, x.gates[0], rand.New(rand.NewPCG(7, 1))), newRoad(t, x.gates[1], rand.New(rand.NewPCG(8, 1)))}
	s, err := x.door(t, roads[0].Addr().String(), roads[1].Addr().String()).Open(t.Context(), "FIX.4.4", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := fixorder.ID{Run: 5}
	orders := submit(t.Context(), t, s, id, 400)
	if cuts := roads[0].cuts.Load() + roads[1].cuts.Load(); cuts < 10 || s.Reconnects < 5 {
		t.Errorf("%d cuts, logged on again %d times: it was not tested", cuts, s.Reconnects)
	}
	x.judge(t, id, orders)
}

// The order is as long as the published one, and its header is the session's.
func TestPublishedLength(t *testing.T) {
	x := before(t, "FIX.4.2", 1, 2)
	d := x.door(t, x.gates[0])
	for range 2 {
		s, err := d.Open(t.Context(), "FIX.4.2", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		maker, err := fixorder.NewMaker(fixorder.FIX42, fixorder.ID{Run: 6})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Submit(t.Context(), maker.Make(int64(s.name.Sender[len(s.name.Sender)-1]), 1, time.Now(), time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		err = x.c.ReadLog(t.Context(), 1, x.c.Copies(1)[0].Address, r.Seq, r.Seq, func(e ledger.Entry) {
			if e.Seq == r.Seq {
				found = len(e.FIX) == fixorder.Size && fixorder.SentBy(e.FIX, s.name.Sender, s.name.Target)
			}
		})
		if err != nil || !found {
			t.Errorf("%v: the entry at %d is not the order with its %d bytes", err, r.Seq, fixorder.Size)
		}
	}
	if _, err := d.Open(t.Context(), "FIX.4.2", 1); err == nil || !strings.Contains(err.Error(), "no further session of FIX.4.2 in partition p1") {
		t.Errorf("a third session: %v", err)
	}
}

// What is refused is known to be refused, and a password that is wrong says so.
func TestRefusals(t *testing.T) {
	x := before(t, "FIX.4.4", 1, 2)
	d := x.door(t, x.gates[0])
	s, err := d.Open(t.Context(), "FIX.4.4", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	maker, err := fixorder.NewMaker(fixorder.FIX44, fixorder.ID{Run: 9})
	if err != nil {
		t.Fatal(err)
	}
	make1 := func() []byte { return maker.Make(1, 1, time.Now(), time.Now()) }
	if _, err := s.Submit(t.Context(), make1()); err != nil {
		t.Fatal(err)
	}
	for name, fix := range map[string][]byte{
		"twice":         make1(), // by an ExecutionReport
		"no such field": bytes.Replace(make1(), []byte("\x0154=1"), []byte("\x0154=z"), 1),
		"no order":      []byte("hello"),
	} {
		if _, err := s.Submit(t.Context(), fix); err == nil || s.Fate(err) != load.Rejected {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(x.file), "password"), []byte("wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := x.door(t, x.gates[0])
	wrong.free = wrong.free[1:]
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	// The gateway reads the password again too, so the session is given another one here.
	wrong.free[0].PasswordFile = filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(wrong.free[0].PasswordFile, []byte("neither\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Open(ctx, "FIX.4.4", 1); err == nil {
		t.Error("a wrong password logs on")
	}
}

// Without an answer an order is unknown, and the session goes on with the next one.
func TestUnanswered(t *testing.T) {
	x := before(t, "FIX.4.4", 1, 1)
	r := newRoad(t, x.gates[0], nil)
	d := x.door(t, r.Addr().String())
	s, err := d.Open(t.Context(), "FIX.4.4", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := fixorder.ID{Run: 11}
	maker, err := fixorder.NewMaker(fixorder.FIX44, id)
	if err != nil {
		t.Fatal(err)
	}
	// A listener that takes connections and says nothing.
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	r.to.Store(mute.Addr().String())
	s.drop()
	d.cfg.Timeout = 300 * time.Millisecond
	_, err = s.Submit(t.Context(), maker.Make(0, 1, time.Now(), time.Now()))
	if err == nil || s.Fate(err) != load.Unknown {
		t.Fatalf("without a gateway: %v", err)
	}
	r.to.Store(x.gates[0])
	d.cfg.Timeout = time.Minute
	receipt, err := s.Submit(t.Context(), maker.Make(1, 2, time.Now(), time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	x.judge(t, id, []load.Order{{Fate: load.Unknown}, {Fate: load.Acked, Seq: receipt.Seq}})
}

// What a gateway sends is read in any parts, and what it must not send is refused.
func TestNext(t *testing.T) {
	x := &Session{name: Name{"FIX.4.4", "A", "B"}}
	whole := x.appendMessage(nil, "8", 7, []byte("20260101-00:00:00"), "11=x\x01")
	for n := range whole {
		if _, rest, err := next(whole[:n]); err != nil || rest != nil {
			t.Fatalf("%d of %d bytes: %v, %q", n, len(whole), err, rest)
		}
	}
	m, rest, err := next(append(bytes.Clone(whole), '8'))
	if err != nil || string(rest) != "8" || m.kind != '8' || m.seq != 7 || !m.possDup || string(m.get("\x0111=")) != "x" {
		t.Errorf("%+v, %q, %v", m, rest, err)
	}
	for name, bad := range map[string][]byte{
		"no FIX":    []byte(strings.Repeat("GET / HTTP/1.1\r\n", 4)),
		"check sum": append(bytes.Clone(whole[:len(whole)-2]), '?', 1),
		"length":    []byte("8=FIX.4.4\x019=99999999\x01"),
		"no number": x.bad("34=x\x01"),
	} {
		if _, _, err := next(bad); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	for _, id := range []string{"", "NONE", "p1/17", "p1/@3", "p1/17@", "p1/x@3"} {
		if r, _, err := place([]byte(id)); err == nil {
			t.Errorf("OrderID %q is read as %+v", id, r)
		}
	}
	if r, p, err := place([]byte("p1/17@3")); err != nil || p != "p1" || r.Seq != 17 || r.Epoch != 3 {
		t.Errorf("%+v %s %v", r, p, err)
	}
}

// bad is a message whose MsgSeqNum is another field.
func (x *Session) bad(field string) []byte {
	b := x.appendMessage(nil, "0", 1, nil, "")
	b = bytes.Replace(b, []byte("34=1\x01"), []byte(field), 1)
	return append(append(b[:len(b)-4:len(b)-4], fmt3(order.CheckSum(b[:len(b)-7]))...), 1)
}

// What is not a file of sessions, and addresses that are none.
func TestConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sessions.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home := func(_, _, _ string) wire.PartitionID { return 0 }
	for _, c := range []struct{ text, address, want string }{
		{`{}`, "", "no address"},
		{`{}`, "host", "host:port"},
		{`{`, "a:1", "sessions.json"},
		{`{"sessions": [{"version": "FIX.4.4"}]}`, "a:1", "sessions[0]"},
	} {
		write(c.text)
		cfg := Config{Sessions: file}
		if c.address != "" {
			cfg.Addresses = []string{c.address}
		}
		if _, err := New(cfg, home); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s at %q: %v, want %s", c.text, c.address, err, c.want)
		}
	}
	if _, err := Names("FIX.4.4", 0, map[wire.PartitionID]int{3: 1}, home); err == nil {
		t.Error("a partition that no name leads to has names")
	}
}
