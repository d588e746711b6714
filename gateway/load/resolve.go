package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

// final reports whether the grid refuses the message whenever it is submitted.
func final(err error) bool {
	return errors.Is(err, client.ErrBadFIX) || errors.Is(err, client.ErrTooLarge)
}

const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// resolve settles a row whose outcome is unknown, whose ClOrdID the grid has, or which the grid cannot take for now.
func (l *Loader) resolve(ctx context.Context, r *row, err error) {
	end, pause := time.Now().Add(l.o.Patience), firstRetry
	for {
		done := false
		if errors.Is(err, client.ErrDuplicateClOrdID) || client.FateOf(err) == client.FateUnknown {
			done, err = l.compare(ctx, r, err)
		}
		switch {
		case done:
			return
		case ctx.Err() != nil:
			return
		case time.Now().After(end):
			l.fail(fmt.Errorf("load: %s was tried for %v: %w; resume when the grid takes orders again", r.where, l.o.Patience, err))
			return
		case err != nil:
			l.note(err)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, lastRetry)
		}
		if _, err = l.client.Submit(ctx, r.message); err == nil {
			l.settle(r, Accepted, nil)
			return
		}
		if final(err) {
			l.refused(r, err)
			return
		}
	}
}

// compare looks up the order that has the row's ClOrdID, and settles the row by it. With false the row is to be
// submitted: at once if the error is nil, later otherwise.
func (l *Loader) compare(ctx context.Context, r *row, why error) (bool, error) {
	o, err := l.client.GetByClOrdID(ctx, r.clOrdID)
	duplicate := errors.Is(why, client.ErrDuplicateClOrdID)
	switch {
	case err == nil && bytes.Equal(o.FIX, r.message):
		l.settle(r, Present, nil)
	case err == nil:
		l.refused(r, fmt.Errorf("order %s has this ClOrdID, and is another message: %w", o.ID, why))
	case errors.Is(err, client.ErrFreed):
		l.refused(r, fmt.Errorf("an order of this ClOrdID may be freed, so it cannot be compared: look downstream: %w", why))
	case errors.Is(err, client.ErrNotFound) && !duplicate:
		return false, nil
	default:
		return false, err
	}
	return true, nil
}

// note keeps why rows are tried again, for Progress.
func (l *Loader) note(err error) {
	l.mu.Lock()
	l.trouble = err.Error()
	l.mu.Unlock()
}
