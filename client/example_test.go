package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// The examples run against `grid-node dev` when they are tested.

var (
	exampleGrid  *testgrid.Grid
	startExample = sync.OnceFunc(func() {
		g, err := testgrid.Open(context.Background(), testgrid.Options{})
		if err != nil {
			log.Fatal(err)
		}
		exampleGrid = g
	})
)

// exampleEndpoints stands for your grid's address, for example
// "trades-client.trading.svc:7400".
func exampleEndpoints() []string {
	startExample()
	return exampleGrid.Endpoints
}

// newOrder stands for your FIX engine: a NewOrderSingle with this ClOrdID.
func newOrder(clOrdID string) []byte { return testgrid.Order(clOrdID, 305) }

func ExampleDial() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{Endpoints: exampleEndpoints(), Grid: "dev"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, p := range c.Table() {
		fmt.Println(p.ID, "copies:", len(p.Members), "primary known:", p.Primary.Address != "")
	}
	// Output:
	// p0 copies: 2 primary known: true
	// p1 copies: 2 primary known: true
}

func ExampleClient_Submit() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Endpoints: exampleEndpoints(), Grid: "dev"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	receipt, err := c.Submit(ctx, newOrder("SUBMIT-1"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("copies:", receipt.Copies, "in sequence:", receipt.Seq > 0)

	order, err := c.GetByClOrdID(ctx, "SUBMIT-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.ClOrdID, order.Symbol, order.ID == receipt.ID())
	// Output:
	// copies: 2 in sequence: true
	// SUBMIT-1 IBM true
}

// What an error means for the order, and what to do about it.
func ExampleFateOf_submit() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Endpoints: exampleEndpoints(), Grid: "dev"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	for range 2 {
		_, err := c.Submit(ctx, newOrder("FATE-1"))
		switch client.FateOf(err) {
		case client.FateAccepted:
			fmt.Println("accepted")
		case client.FateRefused: // it will never be accepted; errors.Is says why
			fmt.Println("refused, duplicate:", errors.Is(err, client.ErrDuplicateClOrdID))
		case client.FateUnknown: // ask before submitting it again
			_, err := c.GetByClOrdID(ctx, "FATE-1")
			fmt.Println("unknown, found:", err == nil)
		}
	}
	// Output:
	// accepted
	// refused, duplicate: true
}

func ExampleSession_SubmitAsync() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Endpoints: exampleEndpoints(), Grid: "dev"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	session, err := c.Session(c.Table()[0].ID)
	if err != nil {
		log.Fatal(err)
	}

	var accepted, dense int
	var last uint64
	done := func(r client.Receipt, err error) { // one at a time, in the order of the answers
		if err != nil {
			log.Print(err)
			return
		}
		accepted++
		if last == 0 || r.Seq > last {
			dense++
		}
		last = r.Seq
	}
	for i := range 100 {
		if err := session.Enqueue(newOrder(fmt.Sprintf("ASYNC-%d", i)), done); err != nil {
			log.Fatal(err)
		}
	}
	session.Push() // all 100 in one write
	if err := session.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	session.Close()
	fmt.Println(accepted, "accepted,", dense, "in rising order")
	// Output: 100 accepted, 100 in rising order
}

func ExampleClient_ReadLog() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Endpoints: exampleEndpoints(), Grid: "dev"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	receipt, err := c.Submit(ctx, newOrder("LOG-1"))
	if err != nil {
		log.Fatal(err)
	}
	// The primary's log from that order on; numbers and hash chain are checked.
	_, err = c.ReadLog(ctx, receipt.Partition, "", receipt.Seq, func(e client.LogEntry) error {
		fmt.Println(e.Kind, e.Seq == receipt.Seq, len(e.Bytes) > 305)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: order true true
}

func ExampleClient_Follow() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Endpoints: exampleEndpoints(), Grid: "dev"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	receipt, err := c.Submit(ctx, newOrder("FOLLOW-1"))
	if err != nil {
		log.Fatal(err)
	}
	// From that order on, and what comes; After of an earlier follower begins behind what that had.
	f, err := c.Follow(ctx, client.FollowOptions{Partition: receipt.Partition, After: client.Position{Seq: receipt.Seq - 1}})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for {
		b, err := f.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		for _, e := range b.Entries {
			if o, ok := e.Order(b.Partition); ok {
				fmt.Println(o.ClOrdID, o.ID == receipt.ID())
				return
			}
		}
	}
	// Output: FOLLOW-1 true
}

// Explains why orders waited. What is printed for a hand-over: "p1: no answers for 2.6ms (moved),
// from primary … of epoch 7 to … of epoch 8, 1 attempts: …".
func ExampleClient_Outages() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{
		Endpoints: exampleEndpoints(), Grid: "dev",
		OnOutage: func(o client.Outage) { log.Printf("orders waited: %v", o) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Submit(ctx, newOrder("OUTAGE-1")); err != nil {
		log.Fatal(err)
	}
	for _, o := range c.Outages() { // the last 64, without a callback
		fmt.Println(o.Duration(), o.Cause, o.OldEpoch, o.NewEpoch)
	}
	st := c.Stats()
	for i, n := range st.OutageCounts {
		if n > 0 && i < len(client.OutageBounds) {
			fmt.Println(n, "outages of at most", client.OutageBounds[i])
		}
	}
	fmt.Println("outages:", st.Outages)
	// Output: outages: 0
}
