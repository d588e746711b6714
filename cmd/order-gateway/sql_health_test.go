package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// answering is a grid whose answers a test sets.
type answering struct {
	mu  sync.Mutex
	err error
}

func (a *answering) answer(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *answering) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *answering) Query(context.Context, client.Query) (*client.Answer, error) {
	return &client.Answer{}, a.failure()
}
func (a *answering) Explain(context.Context, wire.PartitionID, client.Query) (string, error) {
	return "", a.failure()
}
func (a *answering) Table() []client.PartitionInfo { return nil }

// Region is not asked for: readiness is that of questions about orders.
func (a *answering) Region(string) *client.Region { return nil }

// A listener for SQL is not ready once the grid has failed to answer three times in a row, and is again with an answer.
// That the gateway itself may not ask is an answer too.
func TestSQLIsNotReadyWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &answering{}
		l := &sqlListener{grid: g, log: slog.New(slog.DiscardHandler)}
		ctx, stop := context.WithCancel(t.Context())
		go l.look(ctx)
		for _, c := range []struct {
			err   error
			wait  time.Duration
			lacks string
		}{
			{nil, time.Millisecond, ""},
			{errors.New("this node keeps no views"), sqlAskEvery + sqlAskSoon, ""}, // twice by now
			{errors.New("this node keeps no views"), sqlAskSoon, "this node keeps no views"},
			{nil, sqlAskSoon, ""},
			{fmt.Errorf("query: %w", client.ErrNotPermitted), 5 * sqlAskEvery, ""},
		} {
			g.answer(c.err)
			time.Sleep(c.wait)
			synctest.Wait()
			if got := strings.Join(l.NotReady(), " "); c.lacks == "" && got != "" || !strings.Contains(got, c.lacks) {
				t.Errorf("%v for %s: not ready because of %q, want %q", c.err, c.wait, got, c.lacks)
			}
		}
		stop()
		synctest.Wait()
	})
}
