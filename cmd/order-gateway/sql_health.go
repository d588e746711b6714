package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sql/server"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/internal/reread"
)

// sqlListener is the listener for PostgreSQL's protocol, with what keeps it from answering.
type sqlListener struct {
	*server.Server
	grid  server.Grid
	rules *access.File           // nil: no client is judged by them
	users *reread.File[sqlUsers] // nil: there are none
	log   *slog.Logger
	lacks atomic.Pointer[string]
}

const (
	sqlAskEvery = 10 * time.Second
	sqlAskSoon  = time.Second
	sqlAskTime  = 5 * time.Second
	// sqlFailures in a row keep the listener from being ready: one partition that moves does not.
	sqlFailures = 3
)

// Run serves, and asks the grid for one row now and then, so that a grid without views, or one that is away, is told before
// a client asks.
func (l *sqlListener) Run(ctx context.Context) error {
	asking, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { l.look(asking) })
	err := l.Server.Run(ctx)
	stop()
	all.Wait()
	return err
}

func (l *sqlListener) look(ctx context.Context) {
	for failed := 0; ; {
		wait := sqlAskEvery
		switch err := l.ask(ctx); {
		case ctx.Err() != nil:
			return
		case err == nil:
			failed = 0
			l.lacks.Store(nil)
		default:
			wait = sqlAskSoon
			if failed++; failed >= sqlFailures {
				text := fmt.Sprintf("SQL: the grid does not answer questions: %v", err)
				if l.lacks.Swap(&text) == nil {
					l.log.Warn("the grid does not answer questions", "error", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// ask asks for a row. The gateway itself need not be permitted to: clients may have tokens of their own.
func (l *sqlListener) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sqlAskTime)
	defer cancel()
	_, err := l.grid.Query(ctx, client.Query{Query: query.Query{Select: []view.Field{view.Seq}, Limit: 1}})
	if errors.Is(err, client.ErrNotPermitted) {
		return nil
	}
	return err
}

// NotReady names what keeps clients from being served.
func (l *sqlListener) NotReady() []string {
	if text := l.lacks.Load(); text != nil {
		return []string{*text}
	}
	return nil
}

// Status is the listener's part of /status.
func (l *sqlListener) Status() any {
	s := struct {
		server.Stats
		FileError string   `json:"fileError,omitempty"`
		NotReady  []string `json:"notReady,omitempty"`
	}{Stats: l.Server.Stats(), NotReady: l.NotReady()}
	if l.users != nil && l.users.Err() != nil {
		s.FileError = l.users.Err().Error()
	}
	if l.rules != nil && l.rules.Err() != nil && s.FileError == "" {
		s.FileError = l.rules.Err().Error()
	}
	return s
}
