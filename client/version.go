package client

import (
	"context"
	"errors"
	"time"
)

// versionPatience is how long an order is sent again that a copy of the partition is not known to
// know: the primary asks the copies upon the first one.
const versionPatience = time.Second

func (s *Session) submitAgain(ctx context.Context, fix []byte, err error) (receipt Receipt, _ error) {
	var back backoff
	for until := nanotime() + int64(versionPatience); errors.Is(err, ErrVersionAwaited) && nanotime() < until && back.wait(ctx.Done(), s.client.cfg.RetryMax); {
		receipt, err = s.submit(ctx, fix, nil, true)
	}
	return receipt, err
}
