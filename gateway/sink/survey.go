package sink

import (
	"context"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

const (
	surveyEvery = 2 * time.Second
	surveyLimit = 5 * time.Second
	// surveyWindow is what a node may send for it.
	surveyWindow = 64 << 10
)

// survey learns where the log ends of partitions that are not read, because the target is down or slow: their lag grows
// all the same. A partition without news is not behind any further, and is not heard of.
func (r *Runner) survey(ctx context.Context) {
	for wait(ctx, surveyEvery) {
		var all sync.WaitGroup
		for _, p := range r.parts {
			if p.state.unheard(surveyEvery) {
				all.Go(func() { p.askEnd(ctx) })
			}
		}
		all.Wait()
	}
}

// askEnd follows the end of the log until something is committed, under no name: that would end the sink's follower.
func (p *partition) askEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, surveyLimit)
	defer cancel()
	f, err := p.r.cfg.Client.Follow(ctx, client.FollowOptions{Partition: p.id, AtEnd: true, Window: surveyWindow})
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // it never fails
	if b, err := f.Next(ctx); err == nil {
		p.state.heard(b.CommitSeq)
	}
}

// unheard reports whether nothing was heard of the partition's log for d, though there may be more of it.
func (s *state) unheard(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (s.pipe == nil || s.trouble != nil || s.committed > s.position.Seq) && time.Since(s.heardAt) >= d
}
