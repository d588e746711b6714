package memory_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/arbitertest"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
)

const name = "g-p0"

func newStore() *memory.Store {
	return memory.NewStore(map[string]arbiter.Spec{name: {Grid: "g", Replicas: 2, MinInSync: 1, PreferredPod: "g-s0-0"}})
}

// both runs a test on the store itself and through HTTP.
func both(t *testing.T, f func(t *testing.T, a arbiter.Arbiter, s *memory.Store)) {
	t.Run("direct", func(t *testing.T) { s := newStore(); f(t, s, s) })
	t.Run("http", func(t *testing.T) {
		s := newStore()
		srv := httptest.NewServer(s.Handler())
		t.Cleanup(srv.Close)
		c, err := memory.NewClient(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		f(t, c, s)
	})
}

func claim(t *testing.T, a arbiter.Arbiter) arbiter.Record {
	t.Helper()
	r, err := a.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	next := arbitertest.Rec(r.Epoch+1, 1, "claim", arbitertest.A, arbitertest.A)
	next.Name, next.Version = name, r.Version
	now, err := a.CompareAndSwap(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func TestCompareAndSwap(t *testing.T) {
	both(t, func(t *testing.T, a arbiter.Arbiter, _ *memory.Store) {
		now := claim(t, a)
		if now.Epoch != 1 || now.Primary != arbitertest.A || now.Spec.Grid != "g" || now.Observed.IsZero() {
			t.Fatalf("after the claim: %+v", now)
		}
		again := now
		if same, err := a.CompareAndSwap(t.Context(), again); err != nil || same.Version != now.Version {
			t.Fatalf("a change of nothing: %+v, %v", same, err)
		}
		stale := arbitertest.Rec(2, 1, "stale", arbitertest.A, arbitertest.A, arbitertest.B)
		stale.Name, stale.Version = name, "1"
		if standing, err := a.CompareAndSwap(t.Context(), stale); !errors.Is(err, arbiter.ErrConflict) || standing.ChangeID != "claim" {
			t.Fatalf("stale version: %v, standing %+v", err, standing)
		}
		bad := arbitertest.Rec(3, 1, "bad", arbitertest.A, arbitertest.A)
		bad.Name, bad.Version = name, now.Version
		if _, err := a.CompareAndSwap(t.Context(), bad); !errors.Is(err, arbiter.ErrRefused) || !strings.Contains(err.Error(), "epoch 3 does not follow 1") {
			t.Fatalf("skipped epoch: %v", err)
		}
		if _, err := a.Get(t.Context(), "missing"); !errors.Is(err, arbiter.ErrNotFound) {
			t.Fatalf("unknown name: %v", err)
		}
	})
}

// Of many proposers at the same version exactly one wins.
func TestOneWinner(t *testing.T) {
	both(t, func(t *testing.T, a arbiter.Arbiter, _ *memory.Store) {
		now := claim(t, a)
		var won, lost atomic.Int32
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				r := arbitertest.Rec(2, 1, "race"+string(rune('a'+i)), arbitertest.A, arbitertest.A, arbitertest.B)
				r.Name, r.Version = name, now.Version
				switch _, err := a.CompareAndSwap(t.Context(), r); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, arbiter.ErrConflict):
					lost.Add(1)
				default:
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || lost.Load() != 15 {
			t.Fatalf("%d won, %d lost", won.Load(), lost.Load())
		}
	})
}

func TestWatchSeesNowAndLater(t *testing.T) {
	both(t, func(t *testing.T, a arbiter.Arbiter, s *memory.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		seen := make(chan arbiter.News, 16)
		done := make(chan error, 1)
		go func() {
			done <- a.Watch(ctx, "g", func(n arbiter.News, err error) {
				if err == nil {
					seen <- n
				}
			})
		}()
		if n := <-seen; !n.All || len(n.Records) != 1 || n.Records[0].Epoch != 0 || len(n.Gone) != 0 {
			t.Fatalf("first: %+v", n)
		}
		claim(t, s)
		if n := <-seen; n.All || len(n.Records) != 1 || n.Records[0].Epoch != 1 || n.Records[0].ChangeID != "claim" {
			t.Fatalf("second: %+v", n)
		}
		for other, grid := range map[string]string{"h-p0": "h", "g-p1": "g"} { // no change of the other grid is reported
			if err := s.Create(other, arbiter.Spec{Grid: grid, Replicas: 1, MinInSync: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if n := <-seen; n.All || len(n.Records) != 1 || n.Records[0].Name != "g-p1" {
			t.Fatalf("third: %+v", n)
		}
		if err := s.Delete("g-p1"); err != nil {
			t.Fatal(err)
		}
		if n := <-seen; n.All || len(n.Records) != 0 || !slices.Equal(n.Gone, []string{"g-p1"}) {
			t.Fatalf("fourth: %+v", n)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("ended with %v", err)
		}
	})
}

func TestWatchSurvivesTheServer(t *testing.T) {
	s := newStore()
	var down atomic.Bool
	h := s.Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	c, err := memory.NewClient(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	down.Store(true)
	errs, news := make(chan error, 1024), make(chan arbiter.News, 1024)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_ = c.Watch(ctx, "g", func(n arbiter.News, err error) {
			if err != nil {
				errs <- err
			} else {
				news <- n
			}
		})
	}()
	<-errs
	down.Store(false)
	if n := <-news; !n.All || n.Records[0].Name != name {
		t.Fatalf("got %+v", n)
	}
}

// A server with another store, at a lower version than the watcher has seen, sends
// everything again.
func TestWatchSurvivesAnotherStore(t *testing.T) {
	var now atomic.Pointer[memory.Store]
	first := newStore()
	claim(t, first)
	now.Store(first)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().Handler().ServeHTTP(w, r) }))
	defer srv.Close()
	c, err := memory.NewClient(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	news := make(chan arbiter.News, 16)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_ = c.Watch(ctx, "g", func(n arbiter.News, err error) {
			if err == nil {
				news <- n
			}
		})
	}()
	<-news
	now.Store(newStore())
	srv.CloseClientConnections()
	if n := <-news; !n.All || len(n.Records) != 1 || n.Records[0].Epoch != 0 {
		t.Fatalf("after the store was replaced: %+v", n)
	}
}

// A watch of 1,024 partitions fits into one answer.
func TestWatchOfTheLargestGrid(t *testing.T) {
	specs := map[string]arbiter.Spec{}
	for i := range 1024 {
		specs[fmt.Sprintf("g-p%d", i)] = arbiter.Spec{Grid: "g", Partition: i, Replicas: 3, MinInSync: 2, PreferredPod: strings.Repeat("p", 63)}
	}
	srv := httptest.NewServer(memory.NewStore(specs).Handler())
	defer srv.Close()
	c, err := memory.NewClient(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_ = c.Watch(ctx, "g", func(n arbiter.News, err error) {
		if err != nil || !n.All || len(n.Records) != 1024 {
			t.Errorf("%d records, %v", len(n.Records), err)
		}
		cancel()
	})
}

// Only the arbiter's own answer about a change is conclusive.
func TestUnknownOutcome(t *testing.T) {
	for what, h := range map[string]http.HandlerFunc{
		"server error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"not JSON":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"reset":        func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"too late": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices a client's end only behind the body
			<-r.Context().Done()
		},
	} {
		t.Run(what, func(t *testing.T) {
			srv := httptest.NewServer(h)
			defer srv.Close()
			c, err := memory.NewClient(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := c.CompareAndSwap(ctx, arbiter.Record{Name: name}); !errors.Is(err, arbiter.ErrUnknown) {
				t.Fatalf("got %v, want ErrUnknown", err)
			}
		})
	}
}

func TestHostileBodies(t *testing.T) {
	srv := httptest.NewServer(newStore().Handler())
	defer srv.Close()
	for _, body := range []string{"", "[]", `{"epoch":-1}`, `{"epoch":1e99}`, `{"unknown":1}`, `{"name":"` + strings.Repeat("x", 1<<20) + `"}`, "\x00"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, srv.URL+"/v1/partitions/"+name, strings.NewReader(body))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%.40q: status %d, want 400", body, resp.StatusCode)
		}
	}
	if _, err := memory.NewClient("ftp://x"); err == nil {
		t.Error("ftp:// was accepted as an arbiter")
	}
}
