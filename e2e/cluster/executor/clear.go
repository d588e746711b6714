package executor

import (
	"context"
	"fmt"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/e2e/cluster/executor/packets"
)

// Clear reverts every fault in the book of dir, without a server, and waits
// until they are gone. The caller holds the directory's lock.
func Clear(ctx context.Context, o Options) error {
	s, err := NewServer(o)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, e := range s.book.all(true) {
		if _, err := s.remove(e.Status.ID); err != nil {
			return err
		}
		select {
		case <-e.over:
		case <-ctx.Done():
			return fmt.Errorf("fault %s is %s still: %w", e.Status.ID, s.book.status(e).State, ctx.Err())
		}
	}
	return nil
}

// ClearServed has a running executor revert every fault.
func ClearServed(ctx context.Context, client *executor.Client) error {
	all, err := client.List(ctx)
	if err != nil {
		return err
	}
	for _, f := range all {
		for !f.State.Over() {
			status, err := client.Delete(ctx, f.ID)
			if err != nil {
				return fmt.Errorf("fault %s is %s still: %w", f.ID, f.State, err)
			}
			f = *status
		}
	}
	return nil
}

// RemoveRules removes rules no fault accounts for from the networks of
// processes, and returns how many there were.
func RemoveRules(ctx context.Context, pids []int) (removed int, err error) {
	for _, pid := range pids {
		n, err := packets.RemoveAll(ctx, packets.Namespace{PID: pid})
		if err != nil {
			return removed, err
		}
		removed += n
	}
	return removed, nil
}
