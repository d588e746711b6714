package server

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/gateway/sql"
)

// linger is how long a connection to the grid is kept that no client uses: clients reconnect.
const linger = 30 * time.Second

// pool has the connections to the grid of clients with tokens.
type pool struct {
	dial func(ctx context.Context, token string) (Connected, error)
	most int
	mu   sync.Mutex
	by   map[[32]byte]*pooled
}

type pooled struct {
	grid Connected
	uses int
	end  *time.Timer
}

func newPool(dial func(ctx context.Context, token string) (Connected, error), most int) *pool {
	return &pool{dial: dial, most: most, by: map[[32]byte]*pooled{}}
}

// get connects in the name of a token; release gives it back.
func (p *pool) get(ctx context.Context, token string) (Grid, func(), error) {
	key := sha256.Sum256([]byte(token))
	p.mu.Lock()
	if e := p.by[key]; e != nil {
		e.uses++
		p.mu.Unlock()
		return e.grid, func() { p.release(key, e) }, nil
	}
	full := len(p.by) >= p.most
	p.mu.Unlock()
	if full {
		return nil, nil, sql.Refuse(sql.StateConnections, "clients with %d tokens are connected, allowed: %d", p.most, p.most)
	}
	grid, err := p.dial(ctx, token)
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	e := p.by[key]
	if e == nil {
		e = &pooled{grid: grid}
		p.by[key], grid = e, nil
	}
	e.uses++
	p.mu.Unlock()
	if grid != nil { // another connection with the token was as fast
		_ = grid.Close()
	}
	return e.grid, func() { p.release(key, e) }, nil
}

func (p *pool) release(key [32]byte, e *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.uses--; e.uses > 0 {
		return
	}
	if e.end != nil {
		e.end.Stop()
	}
	e.end = time.AfterFunc(linger, func() {
		p.mu.Lock()
		idle := e.uses == 0 && p.by[key] == e
		if idle {
			delete(p.by, key)
		}
		p.mu.Unlock()
		if idle {
			_ = e.grid.Close()
		}
	})
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, e := range p.by {
		delete(p.by, key)
		_ = e.grid.Close()
	}
}
