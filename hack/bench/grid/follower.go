package grid

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// follower is a process of grid-sink.
type follower struct {
	*proc.Process
	url string // of its status
}

const (
	sinkReady = time.Minute
	// wroteLimit is how long the first batch may take behind the load: an archive puts one every half second.
	wroteLimit = 10 * time.Second
	look       = 50 * time.Millisecond
)

// awaitReady waits until every partition is open at the target.
func (f *follower) awaitReady(ctx context.Context) error {
	return f.await(ctx, sinkReady, "open its target", func(s *sink.Status) bool { return s.Ready && len(s.Partitions) > 0 })
}

// end waits until an order was written and ends the process. One that wrote none was no part of what was measured.
func (f *follower) end() error {
	err := f.await(context.Background(), wroteLimit, "write an order", func(s *sink.Status) bool {
		var orders uint64
		for i := range s.Partitions {
			orders += s.Partitions[i].Orders
		}
		return orders > 0 && s.Ready
	})
	f.Kill()
	return err
}

// await asks for the status until it is as wanted.
func (f *follower) await(ctx context.Context, limit time.Duration, what string, ok func(*sink.Status) bool) error {
	late := time.After(limit)
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	var last sink.Status
	for {
		if s, err := f.status(ctx, client); err == nil {
			if ok(s) {
				return nil
			}
			last = *s
		}
		select {
		case <-f.Ended():
			return fmt.Errorf("%s ended: %s", f.Name, f.Said())
		case <-late:
			return fmt.Errorf("%s did not %s within %v: %s; its status is %+v", f.Name, what, limit, f.Said(), last)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}

func (f *follower) status(ctx context.Context, client *http.Client) (*sink.Status, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	var s sink.Status
	return &s, json.NewDecoder(resp.Body).Decode(&s)
}
