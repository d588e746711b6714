package webguard

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"
)

// Page serves what a handler answers to GET, rendered once for all concurrent requests, in memory:
// a slow reader holds the page and delays no other. Each gets a page that was begun after its
// request. Rendering uses at most a fifth of one processor, however many ask. variant is the part
// of a request that the page depends on; it has few values.
func Page(h http.Handler, variant func(*http.Request) string) http.Handler {
	return &page{h: h, variant: variant, next: map[string]*edition{}}
}

type page struct {
	h       http.Handler
	variant func(*http.Request) string

	mu      sync.Mutex
	next    map[string]*edition // that will be begun, by variant
	making  bool
	restEnd time.Time // when the next may begin
}

// edition is one rendering of the page.
type edition struct {
	asked  *http.Request // the first that asked for it
	done   chan struct{}
	status int
	header http.Header
	body   bytes.Buffer
}

func (e *edition) Header() http.Header         { return e.header }
func (e *edition) WriteHeader(status int)      { e.status = status }
func (e *edition) Write(b []byte) (int, error) { return e.body.Write(b) }

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := p.variant(r)
	p.mu.Lock()
	e := p.next[kind]
	if e == nil {
		e = &edition{asked: r.Clone(context.Background()), done: make(chan struct{}), status: http.StatusOK, header: http.Header{}}
		p.next[kind] = e
	}
	if !p.making {
		p.making = true
		go p.make()
	}
	p.mu.Unlock()
	select {
	case <-e.done:
	case <-r.Context().Done():
		return
	}
	for name, values := range e.header {
		w.Header()[name] = values
	}
	w.WriteHeader(e.status)
	_, _ = w.Write(e.body.Bytes()) // the client may be gone
}

// make renders editions as long as requests wait for one.
func (p *page) make() {
	for {
		p.mu.Lock()
		if len(p.next) == 0 {
			p.making = false
			p.mu.Unlock()
			return
		}
		rest := time.Until(p.restEnd)
		p.mu.Unlock()
		if rest > 0 {
			time.Sleep(rest)
		}
		begun := time.Now()
		p.mu.Lock()
		editions := p.next
		p.next = map[string]*edition{}
		p.mu.Unlock()
		for _, e := range editions {
			p.h.ServeHTTP(e, e.asked)
			close(e.done)
		}
		p.mu.Lock()
		p.restEnd = time.Now().Add(4 * time.Since(begun))
		p.mu.Unlock()
	}
}
