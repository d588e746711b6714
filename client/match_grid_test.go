package client_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// message is a FIX 4.4 message of "35=D 11=a 55=IBM ...".
func message(fields string) []byte {
	body := strings.ReplaceAll(fields, " ", "\x01") + "\x0149=CLIENT\x0156=GRID\x0134=2\x0152=20261123-09:30:00\x0160=20261123-09:30:00\x01"
	m := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
	order.Seal(m)
	return m
}

// pushed collects executions by id.
type pushed struct {
	mu   sync.Mutex
	t    *testing.T
	byID map[string]client.Execution
}

func (p *pushed) got(list []client.Execution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range list {
		if known, twice := p.byID[e.ID()]; twice && known != e {
			p.t.Errorf("execution %s was %+v, and is %+v", e.ID(), known, e)
		}
		p.byID[e.ID()] = e
	}
}

func (p *pushed) has(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byID) >= n
}

// TestGridMatches: two orders of two clients cross, and both are told; while orders come the
// primary is killed, and what was executed before is the same after it, on every copy.
func TestGridMatches(t *testing.T) {
	g := testgrid.Matching(t)
	buyer, seller := &pushed{t: t, byID: map[string]client.Execution{}}, &pushed{t: t, byID: map[string]client.Execution{}}
	b := dial(t, g, func(c *client.Config) { c.BySymbol, c.OnExecutions = true, buyer.got })
	s := dial(t, g, func(c *client.Config) { c.BySymbol, c.OnExecutions = true, seller.got })
	waitForRedundancy(t, b)
	partition, err := b.Route(message("35=D 11=x 55=IBM 54=1 38=1 40=2 44=1"))
	if err != nil {
		t.Fatal(err)
	}
	bought, err := b.Submit(t.Context(), message("35=D 11=buy 55=IBM 54=1 38=100 40=2 44=125.25"))
	if err != nil {
		t.Fatal(err)
	}
	sold, err := s.Submit(t.Context(), message("35=D 11=sell 55=IBM 54=2 38=40 40=2 44=125.00"))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return buyer.has(2) && seller.has(2) })
	fill := buyer.byID[fmt.Sprintf("%s/%d.3", partition, sold.Seq)]
	if fill.Kind != client.ExecFilled || fill.Order != bought.Seq || fill.Other != sold.Seq || fill.Price != 12525 || fill.Qty != 40 || fill.Leaves != 60 || !fill.Passive {
		t.Errorf("the buyer was told %+v", fill)
	}
	if fill = seller.byID[fmt.Sprintf("%s/%d.2", partition, sold.Seq)]; fill.Kind != client.ExecFilled || fill.Leaves != 0 || fill.Cum != 40 || fill.Passive {
		t.Errorf("the seller was told %+v", fill)
	}

	crossWhileKilled(t, g, b, s, partition)

	want := executions(t, b, partition, "")
	for id, e := range buyer.byID {
		if want[id] != e {
			t.Errorf("the buyer was told %+v, and the log has %+v", e, want[id])
		}
	}
	for id, e := range seller.byID {
		if want[id] != e {
			t.Errorf("the seller was told %+v, and the log has %+v", e, want[id])
		}
	}
	var lots [3]int64
	for _, e := range want {
		if e.Kind == client.ExecFilled {
			lots[e.Side] += e.Qty
		}
	}
	if lots[1] != lots[2] || lots[1] < 40+100*10 {
		t.Errorf("%d were bought and %d sold, want the same, and 1040 at least", lots[1], lots[2])
	}
	info := b.Table()[partition]
	for _, m := range info.Members {
		if m.Address == info.Primary.Address {
			continue
		}
		var got map[string]client.Execution
		waitFor(t, func() bool { got = executions(t, b, partition, m.Address); return len(got) == len(want) })
		for id, e := range want {
			if got[id] != e {
				t.Errorf("%s has execution %+v, the primary %+v", m.Address, got[id], e)
			}
		}
	}
}

// crossWhileKilled trades, and kills the primary in the middle.
func crossWhileKilled(t *testing.T, g *testgrid.Grid, b, s *client.Client, partition wire.PartitionID) {
	t.Helper()
	var wg sync.WaitGroup
	for who, c := range map[string]*client.Client{"1": b, "2": s} {
		wg.Go(func() {
			for i := range 200 {
				if _, err := c.Submit(t.Context(), message(fmt.Sprintf("35=D 11=k%s-%d 55=IBM 54=%s 38=10 40=2 44=126", who, i, who))); err != nil {
					t.Errorf("order %d of side %s: %v", i, who, err)
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	pid, err := g.PIDOf(b.Table()[partition].Primary.Address)
	if err != nil {
		t.Fatal(err)
	}
	before := executions(t, b, partition, "")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	waitForRedundancy(t, b)
	after := executions(t, b, partition, "")
	for id, e := range before {
		if after[id] != e {
			t.Errorf("execution %s was %+v before the primary was killed, and is %+v", id, e, after[id])
		}
	}
	if b.Stats().Outages+s.Stats().Outages == 0 {
		t.Error("no order was sent over the death of the primary")
	}
	t.Logf("%d executions before the primary was killed, %d in the end", len(before), len(after))
}

func executions(t *testing.T, c *client.Client, partition wire.PartitionID, address string) map[string]client.Execution {
	t.Helper()
	all := map[string]client.Execution{}
	_, err := c.ReadExecutions(t.Context(), partition, address, 1, func(e client.Execution) error {
		all[e.ID()] = e
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestGridMatchRefuses: what a grid that matches cannot do is answered.
func TestGridMatchRefuses(t *testing.T) {
	g := testgrid.Matching(t)
	c := dial(t, g, func(c *client.Config) { c.BySymbol = true })
	for fields, tag := range map[string]uint32{
		"35=D 11=a 55=XYZ 54=1 38=100 40=2 44=1":      55,
		"35=D 11=b 55=IBM 54=1 38=100 40=2 44=1.2345": 44,
		"35=D 11=c 55=IBM 54=5 38=100 40=2 44=1":      54,
	} {
		_, err := c.Submit(t.Context(), message(fields))
		var reject *client.RejectError
		if !errors.As(err, &reject) || reject.Code != wire.CodeBadFIX || reject.Tag != tag {
			t.Errorf("%s: %v, want a refusal for tag %d", fields, err, tag)
		}
	}
	// The order is read back as it was sent.
	msg := message("35=D 11=whole 55=OIL 54=1 38=3 40=2 44=-7")
	if _, err := c.Submit(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	o, err := c.GetByClOrdID(t.Context(), "whole")
	if err != nil || string(o.FIX) != string(msg) || o.Symbol != "OIL" {
		t.Errorf("the order is read back as %+v, %v", o, err)
	}
}
