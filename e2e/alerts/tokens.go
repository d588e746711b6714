package alerts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/dashboards/live"
	"github.com/ordergrid/ordergrid/probe/clock"
)

// new clients are clients that come one after the other, each with a new token.
type newcomers struct {
	grid   *live.Guarded
	cancel context.CancelFunc
	coming sync.WaitGroup
}

// prepare has a grid that authenticates them, and the first one connected.
func (n *newcomers) prepare(ctx context.Context, r *live.Run) (err error) {
	if n.grid, err = r.StartGuarded(ctx); err != nil {
		return err
	}
	if err := n.grid.LetReview(ctx); err != nil {
		return err
	}
	return n.letIn(ctx, r)
}

// cause removes the nodes' right to review, and connects new clients.
func (n *newcomers) cause(ctx context.Context, _ *live.Run) error {
	if err := n.grid.ForbidReview(ctx); err != nil {
		return err
	}
	coming, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.coming.Go(func() {
		for coming.Err() == nil {
			_ = n.come(coming) // the alert is about the outcome
			_ = clock.Wait(coming, 300*time.Millisecond)
		}
	})
	return nil
}

// undo restores the right: new clients are accepted again.
func (n *newcomers) undo(ctx context.Context, r *live.Run) error {
	defer n.coming.Wait()
	defer n.cancel()
	if err := n.grid.LetReview(ctx); err != nil {
		return err
	}
	return n.letIn(ctx, r)
}

func (n *newcomers) letIn(ctx context.Context, r *live.Run) error {
	var last error
	if err := r.Until(ctx, "a newcomer is let in", func() bool {
		last = n.come(ctx)
		return last == nil
	}); err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// come connects with a new token.
func (n *newcomers) come(ctx context.Context) error {
	token, err := n.grid.Token(ctx)
	if err != nil {
		return err
	}
	c, err := client.Dial(ctx, client.Config{Endpoints: []string{n.grid.Endpoint}, Grid: live.GuardedGrid, Name: "alerts-check", DialTimeout: time.Second,
		TLS: client.TLSAuthority(n.grid.CA, ""), Token: func() (string, error) { return token, nil }})
	if err != nil {
		return err
	}
	return c.Close()
}
