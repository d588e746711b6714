package sink

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

// Kinds of errors, as metrics and status name them.
const (
	kindOpen      = "open"      // the target did not open
	kindWrite     = "write"     // a batch was not written
	kindFollow    = "follow"    // the grid refused to send its log
	kindFenced    = "fenced"    // another writer of the sink took over
	kindPermanent = "permanent" // an administrator has to act
)

var kinds = []string{kindOpen, kindWrite, kindFollow, kindFenced, kindPermanent}

// kindOf classifies an error; step is the kind of what was tried.
func kindOf(err error, step string) string {
	var permanent *PermanentError
	switch {
	case errors.Is(err, ErrFenced), errors.Is(err, client.ErrReplaced):
		return kindFenced
	case errors.As(err, &permanent):
		return kindPermanent
	}
	return step
}

// pauses between attempts.
type pauses struct{ first, last, fenced, permanent time.Duration }

var usualPauses = pauses{100 * time.Millisecond, 10 * time.Second, 10 * time.Second, 30 * time.Second}

// after returns how long to wait after the nth failure in a row, from 1. random is like rand.Int64N.
func (p pauses) after(kind string, n int, random func(int64) int64) time.Duration {
	jitter := func(d time.Duration) time.Duration { return d + time.Duration(random(int64(d/2)+1)) }
	switch kind {
	case kindFenced: // the other one is to get a chance to finish what it began
		return jitter(p.fenced)
	case kindPermanent:
		return p.permanent
	}
	longest := min(p.first<<min(n, 16), p.last)
	return p.first + time.Duration(random(int64(longest-p.first)+1))
}

// wait reports whether ctx lasted as long as d.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func draw(n int64) int64 { return rand.Int64N(n) }
