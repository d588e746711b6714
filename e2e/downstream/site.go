package downstream

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// Roads are a WAN to every node of a grid, for client.Config.Dial.
type Roads struct {
	ctx   context.Context
	delay time.Duration
	rate  int

	mu  sync.Mutex
	all map[string]*WAN // by the address at their end
	cut bool
}

// NewRoads makes roads, each with this delay one way and rate in bytes a second of a connection, 0 for no limit.
func NewRoads(ctx context.Context, delay time.Duration, rate int) *Roads {
	return &Roads{ctx: ctx, delay: delay, rate: rate, all: map[string]*WAN{}}
}

// Dial connects to a node over its road.
func (r *Roads) Dial(ctx context.Context, address string) (net.Conn, error) {
	w, err := r.to(address)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", w.Addr)
}

func (r *Roads) to(address string) (*WAN, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.all[address]; w != nil {
		return w, nil
	}
	w, err := NewWAN(r.ctx, address, r.delay, r.rate)
	if err != nil {
		return nil, err
	}
	if r.cut {
		w.Cut()
	}
	r.all[address] = w
	return w, nil
}

// Cut ends all connections and takes no new ones until Mend.
func (r *Roads) Cut() { r.each(true, (*WAN).Cut) }

// Mend ends a Cut.
func (r *Roads) Mend() { r.each(false, (*WAN).Mend) }

func (r *Roads) each(cut bool, do func(*WAN)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
	for _, w := range r.all {
		do(w)
	}
}

// DialOver connects to a grid over roads, nil for none, for the time of the test.
func DialOver(t testing.TB, g *testgrid.Grid, roads *Roads) *client.Client {
	t.Helper()
	cfg := client.Config{Endpoints: g.Endpoints, Grid: "dev", DialTimeout: time.Minute, RequestTimeout: time.Minute}
	if roads != nil {
		cfg.Dial = roads.Dial
	}
	c, err := client.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// StartLink starts grid-link run from one grid to another, by the reader "link".
func StartLink(t testing.TB, from, to *testgrid.Grid, args ...string) *Sink {
	t.Helper()
	address := proc.PortForTest(t)
	s := Run(t, "grid-link", append(append([]string{"run"}, LinkArgs(from, to)...), append([]string{"--http", address}, args...)...)...)
	s.http = address
	return s
}

// LinkArgs are the flags of grid-link that name two grids.
func LinkArgs(from, to *testgrid.Grid) []string {
	return []string{"--source-grid", "dev", "--source-endpoint", strings.Join(from.Endpoints, ","), "--target-grid", "dev", "--target-endpoint", strings.Join(to.Endpoints, ",")}
}
