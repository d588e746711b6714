package robustness

import (
	"context"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/drill/traffic"
)

// rejoin kills a process of a grid that holds much: the one that is started
// instead has to catch up on all of it while orders flow.
func rejoin(ctx context.Context, e *Env, n int) error {
	if n == 1 {
		if err := e.fill(ctx); err != nil {
			return err
		}
	}
	return e.kill(ctx, n, e.primary)
}

// fill puts Options.Fill bytes of log into one partition.
func (e *Env) fill(ctx context.Context) error {
	// A client of its own: what fills must not queue before the orders that are judged.
	c, err := client.Dial(ctx, client.Config{Endpoints: e.target.Endpoints(), Grid: e.target.Grid(), Name: "robustness-fill", RequestTimeout: e.RequestTimeout})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	p := e.h.Partitions[0]
	orders := e.Fill / traffic.EntryBytes
	start := time.Now()
	if err := traffic.Fill(ctx, c, p, orders); err != nil {
		return err
	}
	note := fmt.Sprintf("before the first repetition %s was filled with %d orders, %d MiB of log, in %s", p, orders, orders*traffic.EntryBytes>>20, time.Since(start).Round(time.Second))
	e.h.Notes = append(e.h.Notes, note)
	e.Progress("%s", note)
	return nil
}
