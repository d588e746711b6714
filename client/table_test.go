package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// twoPartitions is a grid of p0 and p1, each on nodes of its own. Those of p0 know both,
// those of p1 their own only.
func twoPartitions(t *testing.T, nodes int) (p0, p1 *fakeGrid) {
	p0, p1 = newFakeGrid(t, nodes), newFakeGrid(t, nodes)
	p0.parts, p1.parts, p1.part = 2, 2, 1
	p0.beside = p1
	return p0, p1
}

// orderOf is the i-th order whose ClOrdID belongs to a partition.
func orderOf(t *testing.T, c *Client, p wire.PartitionID, i int) []byte {
	for n := i * 1000; ; n++ {
		if got, err := c.Route(testOrder(n)); err != nil {
			t.Fatal(err)
		} else if got == p {
			return testOrder(n)
		}
	}
}

// A node that reports another number of partitions than before is not believed: orders would go
// where their ClOrdIDs are not known.
func TestTableOfAnotherNumberOfPartitions(t *testing.T) {
	g := newFakeGrid(t, 1)
	g.parts = 8
	c := g.dial(t, func(c *Config) { c.RequestTimeout = 2 * time.Second })
	before := c.Table()
	g.mu.Lock()
	g.parts = 16
	g.mu.Unlock()
	err := c.Refresh(t.Context())
	var protocol *ProtocolError
	if !errors.Is(err, ErrProtocol) || !errors.As(err, &protocol) || protocol.Address != g.endpoints()[0] ||
		!strings.Contains(err.Error(), "Table.partitions is 16, allowed: 8") {
		t.Fatalf("error %v, want a ProtocolError that names both numbers and the node", err)
	}
	if after := c.Table(); len(after) != len(before) || len(after) != 8 {
		t.Errorf("%d partitions, want the 8 of before", len(after))
	}
	// Where the grid was recreated at the same addresses, no order goes there.
	g.primary.cut()
	if _, err := c.Submit(t.Context(), testOrder(1)); FateOf(err) != FateRefused || !strings.Contains(err.Error(), "partitions is 16") {
		t.Errorf("error %v, want one that says why the order was not sent", err)
	}
	checkOnce(t, g, 0)
}

// Routing is the hash of the ClOrdID modulo the number of partitions, whether they are
// known or not.
func TestRouteIsTheHashModuloThePartitions(t *testing.T) {
	for _, n := range []int{1, 2, 7, 8, 1024} {
		c := &Client{}
		t1, err := (&table{}).merge(&wire.Table{Partitions: uint16(n)})
		if err != nil {
			t.Fatal(err)
		}
		c.table.Store(t1)
		seen := map[wire.PartitionID]int{}
		for i := range 20 * n {
			seen[c.RouteClOrdID(fmt.Appendf(nil, "ID%d", i))]++
		}
		for p, k := range seen {
			if int(p) >= n || k > 80 {
				t.Errorf("%d partitions: %d of %d orders go to %s", n, k, 20*n, p)
			}
		}
	}
	// xxHash64 of the ClOrdID: if it changed, orders would move to other partitions.
	c := &Client{}
	c.table.Store(&table{parts: make([]PartitionInfo, 8)})
	for id, want := range map[string]wire.PartitionID{"ORD-1": 1, "ORD-2": 6} {
		if got := c.RouteClOrdID([]byte(id)); got != want {
			t.Errorf("%s belongs to %s, want %s", id, got, want)
		}
	}
}

// A partition that no node reports is an error when it is used, at the deadline, and is served as
// soon as its record is made.
func TestPartitionThatIsNotMadeYet(t *testing.T) {
	g, later := newFakeGrid(t, 1), newFakeGrid(t, 1)
	g.parts, later.parts, later.part = 2, 2, 1
	c := g.dial(t)
	list := c.Table()
	if len(list) != 2 || list[1].ID != 1 || list[1].Epoch != 0 || len(list[1].Members) != 0 {
		t.Fatalf("the table is %+v", list)
	}
	if _, err := c.SubmitTo(t.Context(), 0, testOrder(0)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.SubmitTo(ctx, 1, testOrder(1))
	if FateOf(err) != FateRefused || !strings.Contains(err.Error(), "where to find p1: ") || !strings.Contains(err.Error(), "knows 1 of the grid's 2 partitions") {
		t.Errorf("error %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.SubmitTo(t.Context(), 1, testOrder(2))
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	g.mu.Lock()
	g.beside = later
	g.mu.Unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := c.SubmitTo(t.Context(), 2, testOrder(3)); !errors.Is(err, ErrNotSent) || !strings.Contains(err.Error(), "partition is p2, allowed: p0..p1") {
		t.Errorf("error %v", err)
	}
}

// Sessions of many partitions that lose their primaries at once ask a node once: it knows
// the whole grid.
func TestQuestionsOfManyPartitionsAreOne(t *testing.T) {
	g := newFakeGrid(t, 1)
	g.parts = 64
	c := g.dial(t, func(c *Config) { c.SuspectAfter = time.Minute }) // a busy machine must not be suspected
	hold, asked := make(chan struct{}), make(chan struct{}, 64)
	g.nodes[0].setHook(func(_ *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) == wire.TypeTableRequest {
			asked <- struct{}{}
			<-hold
		}
		return false
	})
	var wg sync.WaitGroup
	now := nanotime() // what Dial has just learned is too old
	for p := range wire.PartitionID(64) {
		f := c.fly(p, "", now)
		wg.Go(func() {
			if err := f.wait(t.Context()); (err == nil) != (p == 0) {
				t.Errorf("%s: %v, want an error of those that the node does not know", p, err)
			}
		})
	}
	<-asked
	close(hold)
	wg.Wait()
	if n := len(asked); n > 32 { // searches that a busy machine began late ask again
		t.Errorf("the node was asked %d times more", n)
	}
}

// An answer that is news of one partition and stale of another ends the search for the first only.
func TestStaleOfOnePartitionIsNotEnoughForIt(t *testing.T) {
	p0, p1 := twoPartitions(t, 2)
	c := p0.dial(t)
	old := p1.nodes[0].ln.Addr().String()
	p1.mu.Lock()
	stale := p1.table(0).Parts[0]
	p1.mu.Unlock()
	p1.promote(p1.nodes[1])
	// The nodes of p0 know the next primary of p0, but not that of p1.
	p0.promote(p0.nodes[1])
	behind := &fakeGrid{nodes: p1.nodes, part: 1, epoch: 1, primary: p1.nodes[0]}
	p0.mu.Lock()
	p0.beside = behind
	p0.mu.Unlock()
	if v := judge(&wire.Table{Parts: []wire.TablePart{stale}}, 1, old); v != verdict(1) {
		t.Fatalf("verdict %d", v)
	}
	both := []*flight{c.fly(0, p0.nodes[0].ln.Addr().String(), 0), c.fly(1, old, 0)}
	for p, f := range both {
		if err := f.wait(t.Context()); err != nil {
			t.Errorf("p%d: %v", p, err)
		}
	}
	for p, want := range []*fakeNode{p0.nodes[1], p1.nodes[1]} {
		if got := c.addressOf(wire.PartitionID(p)); got != want.ln.Addr().String() {
			t.Errorf("p%d: the primary is %s, want %s", p, got, want.ln.Addr())
		}
	}
}

// Refresh returns what the grid reports after the call, not an answer that another caller has just
// received.
func TestRefreshAsksAfterTheCall(t *testing.T) {
	g := newFakeGrid(t, 2)
	c := g.dial(t)
	for i := range 100 {
		if err := c.refresh(t.Context(), 0, ""); err != nil {
			t.Fatal(err)
		}
		g.promote(g.nodes[i%2])
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := c.Table()[0].Epoch, uint64(i+2); got != want {
			t.Fatalf("epoch %d after Refresh, want %d", got, want)
		}
	}
}

// A partition moves from two nodes to two others, one copy after the other. The session
// comes along: an order that was sent and not answered is sent again, and gets its first
// answer.
func TestPartitionMovesToOtherNodes(t *testing.T) {
	p0, p1 := twoPartitions(t, 4)
	from, to := p1.nodes[:2], p1.nodes[2:]
	members := func(nodes ...*fakeNode) {
		p1.mu.Lock()
		defer p1.mu.Unlock()
		p1.nodes = nodes
	}
	members(from...)
	c := p0.dial(t)
	s, err := c.Session(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Submit(t.Context(), orderOf(t, c, 1, 0)); err != nil {
		t.Fatal(err)
	}
	lost := make(chan struct{})
	var once sync.Once
	from[0].setHook(func(fc *fakeConn, frame []byte) bool {
		if wire.FrameType(frame) != wire.TypeSubmit {
			return false
		}
		handled := dropAnswers(fc, frame) // applied, and no answer
		once.Do(func() { close(lost) })
		return handled
	})
	answer := make(chan error, 1)
	var receipt Receipt
	go func() {
		var err error
		receipt, err = s.Submit(t.Context(), orderOf(t, c, 1, 1))
		answer <- err
	}()
	<-lost
	members(from[0], from[1], to[0])
	members(from[0], to[0], to[1])
	p1.promote(to[0])
	members(to...)
	for _, n := range from {
		n.kill()
	}
	if err := <-answer; err != nil || !receipt.Duplicate {
		t.Fatalf("receipt %+v, error %v, want the first answer", receipt, err)
	}
	if _, err := c.Submit(t.Context(), orderOf(t, c, 1, 2)); err != nil {
		t.Fatal(err)
	}
	checkOnce(t, p1, 3)
	if st := s.Stats(); st.Evictions != 0 || st.Unknown != 0 || st.Violations != 0 {
		t.Errorf("stats %+v", st)
	}
}
