package link

import (
	"context"
	"sync"
	"time"
)

// pace holds all partitions to a number of bytes a second.
type pace struct {
	rate int64 // 0: no limit
	mu   sync.Mutex
	free time.Time // when what was granted so far has been sent
}

// paceBurst is how much may be sent at once after a pause.
const paceBurst = 20 * time.Millisecond

// wait waits until n bytes may be sent.
func (p *pace) wait(ctx context.Context, n int) error {
	if p.rate == 0 {
		return nil
	}
	d := p.grant(time.Now(), n)
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// grant returns how long n bytes have to wait.
func (p *pace) grant(now time.Time, n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if earliest := now.Add(-paceBurst); p.free.Before(earliest) {
		p.free = earliest
	}
	wait := p.free.Sub(now)
	p.free = p.free.Add(time.Duration(int64(n) * int64(time.Second) / p.rate))
	return wait
}
