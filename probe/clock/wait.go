package clock

import (
	"context"
	"time"
)

// Wait waits so long, or until the context ends: then its error is returned.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
