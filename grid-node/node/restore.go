package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Archive has the log of a grid that was lost.
type Archive interface {
	// Entries calls f for each entry of a partition from number from on, by number. The
	// bytes are valid during the call. An error of f is returned as it is.
	Entries(ctx context.Context, p wire.PartitionID, from uint64, f func(entry []byte) error) error
}

const (
	loadPart  = 64 << 10        // bytes of entries that the loop stores in one turn, as of a feed
	loadRetry = 2 * time.Second // after a try that failed
)

var (
	errLoaded    = errors.New("the recovery point is loaded")
	errLoadEnded = errors.New("the replica loads no more")
)

// load loads the archive for an incarnation whose record is to be restored. It is called
// when the record was seen; on the data loop.
func (p *partition) load() {
	point, ok := p.replica.Loads()
	if !ok || p.inc.loading {
		return
	}
	if p.cfg.Archive == nil {
		p.loadError = "this node has no archive; give every node --restore-from"
		p.limited(p.id.String()+"/restore", func() {
			p.log.Error("the partition is to be restored and this node has no archive; it does not claim it", "partition", p.id.String(),
				"throughSeq", point.Seq, "remedy", "give every node --restore-from")
		})
		return
	}
	inc := p.inc
	inc.loading = true
	inc.wg.Go(func() {
		for inc.ctx.Err() == nil && p.tryLoad(inc, point) {
			waitFor(inc.ctx, loadRetry)
		}
	})
}

// tryLoad loads what is missing, and reports whether to try again with what is there then.
func (p *partition) tryLoad(inc *incarnation, point replica.Restore) (again bool) {
	err := p.loadFrom(inc, point)
	var refused *replica.LoadError
	switch {
	case errors.Is(err, errLoaded), errors.Is(err, errLoadEnded), inc.ctx.Err() != nil:
		p.loop.Post(func() { p.loadError = "" })
		return false
	case errors.As(err, &refused): // what is stored may be wrong already: with an empty store
		p.loadFailed("the archive cannot be restored", err)
		if waitFor(inc.ctx, loadRetry) {
			p.loop.Post(func() { p.loadAnew(inc, err) })
		}
		return false
	}
	p.loadFailed("the archive cannot be read", err)
	return true
}

// loadFailed reports why the archive is not loaded, in the log, in /status and by a metric.
func (p *partition) loadFailed(what string, err error) {
	p.log.Error(what+"; the partition is not claimed by this node", "partition", p.id.String(), "reason", err, "retry", loadRetry.String())
	p.loop.Post(func() {
		p.loadError = fmt.Sprintf("%s: %v", what, err)
		p.loadFailures++
	})
}

// waitFor reports whether ctx lasts for so long.
func waitFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *partition) loadAnew(inc *incarnation, err error) {
	if p.inc == inc && !p.closed && !p.ended {
		p.ended = true
		p.discard("the archive was not loaded: " + err.Error())
	}
}

// loadFrom reads the archive from the end of the store on, and hands it to the loop part by
// part. It waits for each: there is one in memory.
func (p *partition) loadFrom(inc *incarnation, point replica.Restore) error {
	part := make([]byte, 0, 2*loadPart)
	last, _, err := p.loadEntries(inc, nil)
	if err != nil {
		return err
	}
	began, first := time.Now(), last
	err = p.cfg.Archive.Entries(inc.ctx, p.id, last+1, func(entry []byte) error {
		n := len(part)
		part = append(part, entry...)
		part = append(part, make([]byte, order.Padded(len(entry))-len(entry))...)
		if len(part) < loadPart && order.Seq(part[n:]) != point.Seq {
			return nil
		}
		var more bool
		var err error
		if last, more, err = p.loadEntries(inc, part); err == nil && !more {
			err = errLoaded
		}
		part = part[:0]
		return err
	})
	switch {
	case errors.Is(err, errLoaded):
		p.log.Info("the archive is loaded", "partition", p.id.String(), "entries", last-first, "throughSeq", last, "seconds", time.Since(began).Seconds())
		return err
	case err == nil:
		return fmt.Errorf("the archive ends before the recovery point of the record, entry %d; the last entry loaded is %d", point.Seq, last)
	}
	return err
}

// loadEntries stores a part on the loop, and returns the last entry stored and whether more are
// asked for.
func (p *partition) loadEntries(inc *incarnation, part []byte) (last uint64, more bool, err error) {
	post := p.onLoop(func() {
		if p.inc != inc || p.closed || p.ended {
			err = errLoadEnded
			return
		}
		if _, ok := p.replica.Loads(); !ok { // another node has claimed
			err = errLoadEnded
			return
		}
		if len(part) > 0 {
			p.touch()
			err = p.replica.Load(part)
		}
		last = p.replica.Status().LastSeq
		_, more = p.replica.Loads()
	})
	return last, more, errors.Join(post, err)
}
