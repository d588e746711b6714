package client

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A node of a release before closes the connection upon a request that it does not know. So it is not sent one: the caller is
// told at once, and other requests on the connection go on. A node that says that it knows it is asked.
func TestARequestThatAnOldNodeDoesNotKnow(t *testing.T) {
	g := newFakeGrid(t, 1)
	var hellos, reads, bands atomic.Int32
	pending := make(chan struct{})
	answer := make(chan func(), 1)
	g.nodes[0].setHook(func(c *fakeConn, frame []byte) bool {
		switch wire.FrameType(frame) {
		case wire.TypeHello:
			hellos.Add(1)
		case wire.TypeMarket:
			var m wire.Market
			if err := wire.DecodeMarket(frame, &m); err != nil {
				t.Error(err)
			}
			if m.Op == wire.MarketBand {
				bands.Add(1)
			}
			_, _ = c.Write(wire.AppendMarketDone(nil, testPartition, &wire.MarketDone{ReqID: m.ReqID, Seq: 8, State: m.State}))
			return true
		case wire.TypeReadOrders:
			reads.Add(1)
			_, _ = c.Write(wire.AppendGoaway(nil, &wire.Goaway{Code: wire.GoawayRole, Text: []byte("no such frame")}))
			return true
		case wire.TypeReadBook:
			var m wire.ReadBook
			if err := wire.DecodeReadBook(frame, &m); err != nil {
				t.Error(err)
			}
			answer <- func() {
				_, _ = c.Write(wire.AppendBookLevels(nil, testPartition, &wire.BookLevels{ReqID: m.ReqID, Seq: 7}))
			}
			close(pending)
			return true
		}
		return false
	})
	c := g.dial(t)
	read := make(chan error, 1)
	go func() {
		b, err := c.ReadBook(t.Context(), "IBM", 1, "")
		if err == nil && b.Seq != 7 {
			err = errors.New("another book")
		}
		read <- err
	}()
	<-pending
	before := hellos.Load()
	for _, replica := range []string{"", g.nodes[0].ln.Addr().String()} {
		var b OrderBook
		_, err := c.ReadOrders(t.Context(), "IBM", &b, replica)
		var old *OldNodeError
		if !errors.As(err, &old) || old.Frame != wire.TypeReadOrders || !strings.Contains(err.Error(), "ReadOrders: it is of a release before; update the nodes first") {
			t.Errorf("ReadOrders at %q: %v, want an *OldNodeError", replica, err)
		}
	}
	var old *OldNodeError
	if _, _, err := c.Market(t.Context(), MarketOp{Symbol: "IBM", Band: &PriceBand{Low: 1, High: 2}, Reason: "x"}); !errors.As(err, &old) || old.Frame != wire.TypeMarket || bands.Load() != 0 {
		t.Errorf("a price band: %v, %d were sent, want an *OldNodeError, and none", err, bands.Load())
	}
	if seq, _, err := c.Market(t.Context(), MarketOp{Symbol: "IBM", State: BookHalted, Reason: "x"}); err != nil || seq != 8 {
		t.Errorf("a halt: entry %d, %v, want 8", seq, err)
	}
	(<-answer)()
	if err := <-read; err != nil || hellos.Load() != before || reads.Load() != 0 {
		t.Errorf("a request of before: %v, with %d further connections and %d ReadOrders, want its answer, and none of both", err, hellos.Load()-before, reads.Load())
	}

	g.mu.Lock()
	g.features = uint16(wire.FeatureReadOrders | wire.FeatureMarketBand)
	g.mu.Unlock()
	g.nodes[0].cut()
	if _, _, err := c.Market(t.Context(), MarketOp{Symbol: "IBM", Band: &PriceBand{Low: 1, High: 2}, Reason: "x"}); err != nil || bands.Load() != 1 {
		t.Errorf("a price band at a node that knows them: %v, %d were sent, want 1", err, bands.Load())
	}
	var b OrderBook
	var goaway *GoawayError
	if _, err := c.ReadOrders(t.Context(), "IBM", &b, ""); !errors.As(err, &goaway) || reads.Load() == 0 {
		t.Errorf("at a node that knows it: %v after %d questions, want what it answers", err, reads.Load())
	}
}
