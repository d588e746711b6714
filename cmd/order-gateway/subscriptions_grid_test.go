package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// One client that sends 10,000 subscriptions gets as many as it may have, and an error that says so for each other one,
// whether it reads meanwhile or not; one beside it gets each order.
func TestGridManySubscriptions(t *testing.T) {
	const sent, allowed, orders = 10_000, 1000, 100
	g := testgrid.Run(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Endpoints: g.Endpoints, RequestTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	p := startGateway(t, g, "127.0.0.1:0", "--websocket-clients", clientsOf(t, map[string]string{"greedy": `"topics": ["orders.>"]`, "reader": `"topics": ["orders.>"]`}))
	reader := speak(t, p, readerToken)
	reader.subscribed("orders.>")
	for name, subscription := range map[string]struct {
		command string // of a number
		reads   bool   // while orders come
	}{
		"topics that no order has": {`{"op":"subscribe","id":%d,"topics":"orders.A%[1]d.*.buy"}`, true},
		"all orders each time":     {`{"op":"subscribe","id":%d,"topics":"orders.>"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			greedy := speak(t, p, tokenOf+"greedy")
			wrote := make(chan error, 1)
			go func() {
				var err error
				for id := 0; id < sent && err == nil; id++ {
					err = greedy.c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, subscription.command, id))
				}
				wrote <- err
			}()
			begin, answered := make(chan struct{}), make(chan error, 1)
			go func() { <-begin; answered <- answers(ctx, greedy.c, sent, allowed) }()
			if subscription.reads {
				close(begin)
			}
			worst := time.Duration(0)
			for n := range orders {
				at := time.Now()
				id := fmt.Sprintf("%.3s-%d", strings.ToUpper(name), n)
				if _, err := c.Submit(ctx, testgrid.Order(id, 0)); err != nil {
					t.Fatal(err)
				}
				if m := reader.hear(); m.Op != "message" || !strings.Contains(string(m.Data), fmt.Sprintf("%q", id)) {
					t.Fatalf("got %+v, want order %s", m, id)
				}
				worst = max(worst, time.Since(at))
			}
			t.Logf("from an order to who is beside: %v at the most, of %d", worst, orders)
			if !subscription.reads {
				close(begin)
			}
			for _, done := range []chan error{wrote, answered} {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// answers reads those to so many subscriptions, and reports what is not as it has to be.
func answers(ctx context.Context, c *websocket.Conn, sent, allowed int) error {
	counts := map[string]int{}
	for counts["subscribed"]+counts["error"] < sent {
		_, b, err := c.Read(ctx)
		var m heard
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		if err != nil {
			return fmt.Errorf("%w behind %v", err, counts)
		}
		counts[m.Op]++
		if m.Op == "error" && (m.Code != "limit" || !strings.Contains(m.Error, fmt.Sprintf("allowed: at most %d", allowed))) {
			return fmt.Errorf("an error is %+v", m)
		}
	}
	if counts["subscribed"] != allowed {
		return fmt.Errorf("answers are %v, want %d subscribed", counts, allowed)
	}
	return nil
}
