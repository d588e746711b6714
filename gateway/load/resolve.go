package load

import (
	"context"
	"fmt"
	"time"
)

const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// resolve settles a row whose outcome is unknown, in whose place the grid has something, or which it cannot take for now.
func (l *Loader) resolve(ctx context.Context, r *row, err error) {
	end, pause := time.Now().Add(l.o.Patience), firstRetry
	for {
		done := false
		if l.to.open(err) {
			done, err = l.compare(ctx, r, err)
		}
		switch {
		case done || l.ends(r, err):
			return
		case ctx.Err() != nil:
			return
		case time.Now().After(end):
			l.fail(fmt.Errorf("load: %s was tried for %v: %w; resume when the grid takes rows again", r.where, l.o.Patience, err))
			return
		case err != nil:
			l.note(err)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, lastRetry)
		}
		if err = l.to.send(ctx, r); err == nil {
			l.settle(r, Accepted, nil)
			return
		}
		if l.to.final(err) {
			l.refused(r, err)
			return
		}
	}
}

// compare settles a row by what the grid has in its place. With false the row is to be sent: at once if the error is nil,
// later otherwise.
func (l *Loader) compare(ctx context.Context, r *row, why error) (bool, error) {
	switch found, err := l.to.look(ctx, r, why); found {
	case same:
		l.settle(r, Present, nil)
		return true, nil
	case other:
		l.refused(r, err)
		return true, nil
	default:
		return false, err
	}
}

// note keeps why rows are tried again, for Progress.
func (l *Loader) note(err error) {
	l.mu.Lock()
	l.trouble = err.Error()
	l.mu.Unlock()
}
