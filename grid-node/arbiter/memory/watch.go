package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

// WaitLimit is how long a GET of /v1/watch waits for a change.
const WaitLimit = 20 * time.Second

// changes is the answer to a GET of /v1/watch.
type changes struct {
	Version uint64           `json:"version"` // of the store; the next request's "after"
	All     bool             `json:"all,omitempty"`
	Records []arbiter.Record `json:"records,omitempty"`
	Gone    []string         `json:"gone,omitempty"`
}

func (c *changes) news() arbiter.News {
	return arbiter.News{All: c.All, Records: c.Records, Gone: c.Gone}
}

// next waits until records of a grid have changed since a version of the store, 0 for all
// records at once. A version above the store's belongs to a previous store.
func (s *Store) next(ctx context.Context, grid string, after uint64) (changes, error) {
	for {
		s.mu.Lock()
		c, changed := s.since(grid, after), s.changed
		s.mu.Unlock()
		if c.All || len(c.Records)+len(c.Gone) > 0 {
			return c, nil
		}
		after = c.Version // skip changes of other grids
		select {
		case <-changed:
		case <-ctx.Done():
			return c, ctx.Err()
		}
	}
}

func (s *Store) since(grid string, after uint64) changes {
	c := changes{Version: s.version, All: after == 0 || after > s.version}
	for name, r := range s.records {
		if v, _ := strconv.ParseUint(r.Version, 10, 64); r.Spec.Grid == grid && (c.All || v > after) {
			r, _ := s.get(name)
			c.Records = append(c.Records, r)
		}
	}
	slices.SortFunc(c.Records, func(a, b arbiter.Record) int { return cmp.Compare(a.Name, b.Name) })
	if !c.All {
		for name, v := range s.gone {
			if v > after {
				c.Gone = append(c.Gone, name)
			}
		}
		slices.Sort(c.Gone)
	}
	return c
}

// Watch implements arbiter.Arbiter.
func (s *Store) Watch(ctx context.Context, grid string, f func(arbiter.News, error)) error {
	for after := uint64(0); ; {
		c, err := s.next(ctx, grid, after)
		if err != nil {
			return err
		}
		f(c.news(), nil)
		after = c.Version
	}
}

// serveWatch answers all records of a grid, or those changed since a version.
func (s *Store) serveWatch(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	var after uint64
	if text := q.Get("after"); text != "" {
		var err error
		if after, err = strconv.ParseUint(text, 10, 64); err != nil {
			answer(w, http.StatusBadRequest, problem{Message: fmt.Sprintf("after: value %.40q, allowed: the version of an answer before", text)})
			return
		}
	}
	ctx, cancel := context.WithTimeout(req.Context(), WaitLimit)
	defer cancel()
	c, err := s.next(ctx, q.Get("grid"), after)
	if errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler) // a fault began, or the watcher is gone
	}
	answer(w, http.StatusOK, &c) // empty after WaitLimit
}

// Watch implements arbiter.Arbiter.
func (c *Client) Watch(ctx context.Context, grid string, f func(arbiter.News, error)) error {
	for after := uint64(0); ctx.Err() == nil; {
		wait, cancel := context.WithTimeout(ctx, WaitLimit+5*time.Second)
		var got changes
		target := c.base + "/v1/watch?" + url.Values{"grid": {grid}, "after": {strconv.FormatUint(after, 10)}}.Encode()
		err := c.do(wait, http.MethodGet, target, nil, &got)
		cancel()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			f(arbiter.News{}, err)
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
		default:
			if after = got.Version; got.All || len(got.Records)+len(got.Gone) > 0 {
				f(got.news(), nil)
			}
		}
	}
	return ctx.Err()
}
