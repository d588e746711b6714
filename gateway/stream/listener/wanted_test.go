package listener

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// halted is a generation before a grid that follows what is wanted. Its partitions are as if no node could be reached, until
// follow.
type halted struct {
	*generation
	t    *testing.T
	c    *client.Client
	addr net.Addr
}

func newHalted(t *testing.T) *halted {
	c, err := client.Dial(t.Context(), client.Config{Endpoints: testgrid.Run(t).Endpoints})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	file := files(t)
	a, err := OpenAccess(Files{Clients: file("clients.json", `{"clients": [{"name": "a", "tokenFile": "`+file("token", tokenA)+`", "topics": ["orders.>"]}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(Config{Client: c, Listen: []string{"127.0.0.1:0"}, Access: a, OnlyWanted: true, Backlog: 100})
	if err != nil {
		t.Fatal(err)
	}
	g := &generation{l: l, histories: make(chan *history, maxHistories)}
	for _, p := range c.Table() {
		part := &partition{g: g, id: p.ID, told: []*selected{newSelected()}}
		part.books, part.orderBooks = newBooks(part), newOrderBooks(part)
		g.parts = append(g.parts, part)
	}
	if err := g.survey(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.open(); err != nil {
		t.Fatal(err)
	}
	l.current.Store(g)
	ended := make(chan error, 1)
	go func() { ended <- g.server.Run() }()
	t.Cleanup(func() { g.server.Stop("the test ends"); <-ended })
	h := &halted{generation: g, t: t, c: c}
	if h.addr, err = g.server.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return h
}

// follow has a partition be reached.
func (h *halted) follow(p int) {
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.parts[p].run(ctx) }()
	h.t.Cleanup(func() { cancel(); <-ended })
}

// dial returns a connection that is logged in.
func (h *halted) dial() *websocket.Conn {
	c, _, err := websocket.Dial(h.t.Context(), "ws://"+h.addr.String()+"/stream", &websocket.DialOptions{Subprotocols: []string{"ordergrid.json.v1"}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.CloseNow() })
	h.say(c, `{"op":"login","token":"`+tokenA+`"}`)
	return c
}

func (h *halted) say(c *websocket.Conn, text string) {
	if err := c.Write(h.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		h.t.Fatal(err)
	}
}

type said struct {
	Op        string
	Partition int
	At        string
	Ranges    json.RawMessage
}

func (h *halted) hear(c *websocket.Conn) (m said) {
	ctx, cancel := context.WithTimeout(h.t.Context(), 10*time.Second)
	defer cancel()
	_, b, err := c.Read(ctx)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		h.t.Fatalf("%s: %v", b, err)
	}
	return m
}

// orders submits some, and returns the entries of each partition.
func (h *halted) orders(prefix string, n int) map[int][]string {
	h.t.Helper()
	all := map[int][]string{}
	for i := range n {
		r, err := h.c.Submit(h.t.Context(), testgrid.Order(fmt.Sprint(prefix, i), 305))
		if err != nil {
			h.t.Fatal(err)
		}
		all[int(r.Partition)] = append(all[int(r.Partition)], fmt.Sprint(r.Seq))
	}
	return all
}

// A partition that cannot be reached does not keep subscriptions from the others. When it comes, they get of it what they
// lack.
func TestOnePartitionKeepsNoOtherFromSubscriptions(t *testing.T) {
	h := newHalted(t)
	go h.readHistories(t.Context())
	h.follow(0)
	c := h.dial()
	h.say(c, `{"op":"subscribe","id":1,"topics":"orders.>"}`)
	for m := h.hear(c); m.Op != "subscribed"; m = h.hear(c) {
	}
	before := h.orders("BEFORE", 40)
	if len(before) != 2 {
		t.Fatalf("orders are in %d partitions", len(before))
	}
	got := map[int][]string{}
	take := func(p, n int) {
		t.Helper()
		for len(got[p]) < n {
			m := h.hear(c)
			if m.Op != "message" {
				t.Fatalf("got %+v", m)
			}
			got[m.Partition] = append(got[m.Partition], m.At)
		}
	}
	take(0, len(before[0]))
	if n := h.l.metrics.incomplete.Load(); n != 1 || len(got[1]) != 0 {
		t.Errorf("%d subscriptions are incomplete, want 1 that got nothing of p1: %v", n, got[1])
	}
	h.follow(1)
	take(1, len(before[1]))
	after := h.orders("AFTER", 40)
	for p := range 2 {
		want := append(before[p], after[p]...)
		take(p, len(want))
		if fmt.Sprint(got[p]) != fmt.Sprint(want) {
			t.Errorf("of p%d got %v, want %v", p, got[p], want)
		}
	}
	if n := h.l.metrics.incomplete.Load(); n != 0 {
		t.Errorf("%d subscriptions are incomplete", n)
	}
}

// What waits for nodes that do not answer is bounded, and what has ended makes room. A subscription beyond the bound goes on,
// and is told as a gap what it lacks.
func TestWhatWaitsForNodesIsBounded(t *testing.T) {
	h := newHalted(t)
	waiting := func() (n int) {
		h.server.Do(func(*fanout.Hub) { n = len(h.wanted.waiting) })
		return n
	}
	var conns []*websocket.Conn
	for n := 0; n < maxHistories+100; {
		c := h.dial()
		conns = append(conns, c)
		for i := range 900 {
			h.say(c, fmt.Sprintf(`{"op":"subscribe","id":%d,"topics":"orders.A%d.>"}`, i, i%100))
			n++
		}
		for range 901 {
			if m := h.hear(c); m.Op != "subscribed" && m.Op != "welcome" {
				t.Fatalf("got %+v", m)
			}
		}
	}
	if n := waiting(); n != maxHistories {
		t.Errorf("%d wait, want %d", n, maxHistories)
	}
	for _, c := range conns {
		_ = c.CloseNow()
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if s, _ := h.server.Stats(); s.Hub.Clients == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("clients do not end")
		}
	}
	c := h.dial()
	h.say(c, `{"op":"subscribe","id":1,"topics":"orders.>"}`)
	for m := h.hear(c); m.Op != "subscribed"; m = h.hear(c) {
	}
	if n := waiting(); n != 1 {
		t.Errorf("%d wait, want the one that has not ended", n)
	}
}

// A node that does not answer has no more remembered for it than some selections; one that is answered and not known any
// more is taken for none.
func TestSelectionsThatAreNotAnsweredAreBounded(t *testing.T) {
	h := newHalted(t)
	p := h.parts[0]
	for range 3 * toldMost {
		p.ask(newSelected())
	}
	if len(p.told) != 1 {
		t.Errorf("%d selections are kept for a follower that is not there", len(p.told))
	}
	f, err := p.follow(t.Context(), p.from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it never fails
	var last *selected
	for range 3 * toldMost {
		last = newSelected()
		p.ask(last)
	}
	if len(p.told) != toldMost {
		t.Errorf("%d selections are kept, want %d", len(p.told), toldMost)
	}
	if p.selectedBy(0) != nil || p.selectedBy(2) != nothing || p.selectedBy(3*toldMost+2) != nothing || p.selectedBy(3*toldMost+1) != last || len(p.told) != 1 {
		t.Errorf("selections are not known by their number; %d are kept", len(p.told))
	}
}

// More than nodes take is everything, and is said; a new generation begins with nothing.
func TestEverythingIsFollowedBeyondWhatNodesTake(t *testing.T) {
	h := newHalted(t)
	m := h.l.metrics
	state := func() string { return fmt.Sprint(m.selectors.Load(), m.everything.Load()) }
	var claims []*claim
	h.server.Do(func(*fanout.Hub) {
		for i := range wire.MaxSelectors + 1 {
			claims = append(claims, h.wanted.claim([]client.Selector{{Kinds: client.KindOrders, Account: fmt.Sprint(i)}}))
		}
		h.wanted.widens = true
		h.wanted.ask()
	})
	if got := state(); got != "0 1" || len(h.wanted.present.list) != 1 {
		t.Errorf("selectors and everything are %s, the nodes are asked for %d", got, len(h.wanted.present.list))
	}
	leave := func(n int) {
		h.server.Do(func(*fanout.Hub) {
			for _, c := range claims[:n] {
				c.Leave()
			}
			claims = claims[n:]
			h.wanted.narrows = true
			h.wanted.ask()
		})
	}
	if leave(10); state() != "0 1" {
		t.Errorf("with little room selectors and everything are %s", state())
	}
	if leave(wire.MaxSelectors / 4); state() != fmt.Sprint(len(claims), 0) {
		t.Errorf("with room for a quarter selectors and everything are %s, want %d and 0", state(), len(claims))
	}
	if newWanted(h.generation); state() != "0 0" {
		t.Errorf("a new generation begins with %s", state())
	}
}

// A gateway that follows everything reads histories as before there were selections, so that it works with older nodes.
func TestHistoriesAreReadAsTheLogIsFollowed(t *testing.T) {
	h := newHalted(t)
	want := &interest{list: []client.Selector{{Kinds: client.KindOrders, Account: "A"}}}
	if o := h.parts[0].rereading(want, h.parts[0].end); o.Selection == nil || len(o.Selection.Selectors) != 1 {
		t.Errorf("where it follows what is wanted: %+v", o)
	}
	all := &partition{g: &generation{l: h.l}, id: h.parts[0].id}
	if o := all.rereading(want, h.parts[0].end); o.Selection != nil || o.Executions || o.After != h.parts[0].end {
		t.Errorf("where it follows everything: %+v", o)
	}
}

// A history from which nothing comes gives its worker back, and others of the partition do not wait
// that long.
func TestHistoriesGiveTheirWorkerBack(t *testing.T) {
	h := newHalted(t)
	p, began := h.parts[0], time.Now()
	f, err := h.l.cfg.Client.Follow(t.Context(), client.FollowOptions{AtEnd: true, Replica: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it never fails
	if _, err := p.next(t.Context(), f); !errors.Is(err, errSilent) || time.Since(began) < historyTurn || time.Since(began) > 5*historyTurn {
		t.Errorf("%v after %s, want %v after %s", err, time.Since(began), errSilent, historyTurn)
	}
	x := &history{}
	if err := p.feed(t.Context(), x, nil, fanout.Range{}, time.Now()); !errors.Is(err, errSilent) || x.waits.IsZero() {
		t.Errorf("the next one: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.next(ctx, f); err == nil || errors.Is(err, errSilent) {
		t.Errorf("of a gateway that ends: %v", err)
	}
}

// The last messages are looked for in the partitions that can be reached; one that ends meanwhile is left.
func TestLastOfThePartitionsThatCanBeReached(t *testing.T) {
	h := newHalted(t)
	go h.readHistories(t.Context())
	before := h.orders("BEFORE", 40)
	h.follow(0)
	for end := time.Now().Add(20 * time.Second); fmt.Sprint(h.parts[0].readTo.Load()) != before[0][len(before[0])-1]; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("p0 is not read")
		}
	}
	c := h.dial()
	h.say(c, `{"op":"subscribe","id":1,"topics":"orders.>","last":5}`)
	var got []string
	for m := h.hear(c); m.Op != "live"; m = h.hear(c) {
		switch {
		case m.Op == "message" && m.Partition == 0:
			got = append(got, m.At)
		case m.Op != "welcome" && m.Op != "subscribed":
			t.Fatalf("got %+v", m)
		}
	}
	if want := before[0][len(before[0])-5:]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the last 5 are %v, want %v", got, want)
	}
	began := time.Now()
	_, err := h.parts[0].last(t.Context(), goneHeld(h), &interest{}, h.parts[0].readTo.Load(), 5, time.Now().Add(lastTime))
	if !errors.Is(err, errGone) || time.Since(began) > historyTurn {
		t.Errorf("of one that has ended: %v after %s", err, time.Since(began))
	}
}

// goneHeld is a subscription on hold that has ended.
func goneHeld(h *halted) *server.Held {
	c := h.dial()
	h.say(c, `{"op":"subscribe","id":1,"topics":"orders.NEVER.>"}`)
	for m := h.hear(c); m.Op != "subscribed"; m = h.hear(c) {
	}
	var held *server.Held
	h.server.Do(func(*fanout.Hub) { held = h.wanted.waiting[len(h.wanted.waiting)-1].h })
	_ = c.CloseNow()
	for end := time.Now().Add(20 * time.Second); held.Do(func(*fanout.Sub) {}); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatal("the subscription does not end")
		}
	}
	return held
}
