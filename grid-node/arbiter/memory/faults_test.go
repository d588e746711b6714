package memory_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/arbitertest"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
)

func send(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func serve(t *testing.T) (*memory.Store, *memory.Client, string) {
	t.Helper()
	s := newStore()
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	c, err := memory.NewClient(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s, c, srv.URL
}

func fault(t *testing.T, url, body string) {
	t.Helper()
	if code, text := send(t, http.MethodPost, url+"/v1/faults", body); code != http.StatusOK {
		t.Fatalf("fault %s: status %d: %s", body, code, text)
	}
}

// Away: reads fail, changes are unknown and not made, a pending watch ends and later
// returns the changes in between.
func TestAway(t *testing.T) {
	s, c, url := serve(t)
	seen, failed := make(chan arbiter.Record, 16), make(chan error, 64)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_ = c.Watch(ctx, "g", func(n arbiter.News, err error) {
			if err != nil {
				failed <- err
			} else {
				seen <- n.Records[0]
			}
		})
	}()
	<-seen
	fault(t, url, `{"mode":"away"}`)
	<-failed // the watch was waiting when it began
	if r, err := c.Get(t.Context(), name); err == nil || errors.Is(err, arbiter.ErrNotFound) {
		t.Fatalf("a read was answered: %+v, %v", r, err)
	}
	now, _ := s.Get(t.Context(), name)
	next := arbitertest.Rec(1, 1, "c", arbitertest.A, arbitertest.A)
	next.Name, next.Version = name, now.Version
	if _, err := c.CompareAndSwap(t.Context(), next); !errors.Is(err, arbiter.ErrUnknown) {
		t.Fatalf("a change while away: %v, want unknown", err)
	}
	if now, _ := s.Get(t.Context(), name); now.Epoch != 0 {
		t.Fatalf("it was made all the same: %+v", now)
	}
	claim(t, s)
	fault(t, url, `{"mode":"ok"}`)
	if r := <-seen; r.Epoch != 1 {
		t.Fatalf("after the fault: %+v", r)
	}
}

func TestCommitThenTimeout(t *testing.T) {
	s, c, url := serve(t)
	fault(t, url, `{"mode":"commit-then-timeout","delay":"1ms"}`)
	now, err := c.Get(t.Context(), name)
	if err != nil {
		t.Fatalf("reads are answered: %v", err)
	}
	next := arbitertest.Rec(1, 1, "c", arbitertest.A, arbitertest.A)
	next.Name, next.Version = name, now.Version
	if _, err := c.CompareAndSwap(t.Context(), next); !errors.Is(err, arbiter.ErrUnknown) {
		t.Fatalf("got %v, want unknown", err)
	}
	if now, _ := s.Get(t.Context(), name); now.Epoch != 1 || now.ChangeID != "c" {
		t.Fatalf("the change was not made: %+v", now)
	}
}

func TestSlow(t *testing.T) {
	_, c, url := serve(t)
	fault(t, url, `{"mode":"slow","delay":"30ms"}`)
	began := time.Now()
	if _, err := c.Get(t.Context(), name); err != nil || time.Since(began) < 30*time.Millisecond {
		t.Fatalf("answered %v after %s, want no error after 30 ms or more", err, time.Since(began))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.Get(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the caller's deadline", err)
	}
}

func TestSetSpec(t *testing.T) {
	s, c, url := serve(t)
	before := claim(t, s)
	code, text := send(t, http.MethodPut, url+"/v1/partitions/"+name+"/spec", `{"preferredPod":"g-s0-1","minInSync":2}`)
	r, err := c.Get(t.Context(), name)
	if code != http.StatusOK || err != nil || r.Spec.PreferredPod != "g-s0-1" || r.Spec.MinInSync != 2 || r.Spec.Grid != "g" || r.Version == before.Version {
		t.Fatalf("status %d %s, record %+v, %v", code, text, r, err)
	}
	if r.Epoch != before.Epoch || r.ChangeID != before.ChangeID {
		t.Fatalf("the configuration changed: %+v", r)
	}
	if code, _ := send(t, http.MethodPut, url+"/v1/partitions/"+name+"/spec", `{"minInSync":2}`); code != http.StatusOK {
		t.Fatalf("the same again: status %d", code)
	}
	if again, _ := s.Get(t.Context(), name); again.Version != r.Version {
		t.Fatalf("nothing changed and the version did: %s, %s", r.Version, again.Version)
	}
}

func TestControlsRefuse(t *testing.T) {
	_, _, url := serve(t)
	long := strings.Repeat("x", 1<<20)
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/v1/faults", ``, 400, "allowed: one object with mode and delay"},
		{"POST", "/v1/faults", `[]`, 400, "allowed"},
		{"POST", "/v1/faults", `{"mode":"dead"}`, 400, `mode: value \"dead\", allowed: ok, away, slow`},
		{"POST", "/v1/faults", `{"mode":"slow","delay":"-1s"}`, 400, "delay: value"},
		{"POST", "/v1/faults", `{"mode":"slow","delay":"2h"}`, 400, "allowed: 0s..1m0s"},
		{"POST", "/v1/faults", `{"mode":"slow","delay":"soon"}`, 400, "delay: value"},
		{"POST", "/v1/faults", `{"mode":"slow","unit":1}`, 400, "unknown field"},
		{"POST", "/v1/faults", `{"mode":"` + long + `"}`, 400, "too large"},
		{"DELETE", "/v1/faults", ``, 405, ""},
		{"GET", "/v1/watch?grid=g&after=soon", ``, 400, `after: value \"soon\", allowed`},
		{"PUT", "/v1/partitions/missing/spec", `{"minInSync":1}`, 404, "no such partition"},
		{"PUT", "/v1/partitions/" + name + "/spec", ``, 400, "allowed: one object"},
		{"PUT", "/v1/partitions/" + name + "/spec", `null`, 400, "not a spec"},
		{"PUT", "/v1/partitions/" + name + "/spec", `7`, 400, "not a spec"},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"minInSync":"two"}`, 400, "not a spec"},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"primary":"g-s0-1"}`, 400, "unknown field"},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"learnerRate":1}`, 422, "learnerRate: value 1, allowed: 65536 to 17179869184"},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"minInSync":0}`, 422, "minInSync: value 0, allowed: 1..2"},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"minInSync":3}`, 422, "allowed: 1..2"},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"grid":"other"}`, 422, "never change"},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"replicas":4}`, 422, "replicas: value 4, allowed: 1..3"},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"maxInSync":1}`, 422, "maxInSync: value 1, allowed: 2..3"},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"pods":["a"]}`, 422, `pods: value [\"a\"], allowed: 2..4 different names of pods`},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"pods":["a","b","a"]}`, 422, `pods: value [\"a\" \"b\" \"a\"], allowed: 2..4`},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"maxInSync":4}`, 422, "maxInSync: value 4, allowed: 2..3"},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"preferredPod":"a/b"}`, 422, "preferredPod: value"},
		{"PUT", "/v1/partitions/" + name + "/spec", `{"preferredPod":"` + long + `"}`, 400, "too large"},
	} {
		code, text := send(t, tc.method, url+tc.path, tc.body)
		if code != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s %s %.60s: status %d %.300s, want %d with %q", tc.method, tc.path, tc.body, code, text, tc.status, tc.want)
		}
	}
}

func TestFrom(t *testing.T) {
	from := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { from <- r.RemoteAddr }))
	defer srv.Close()
	c, err := memory.NewClient(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.From(netip.MustParseAddr("127.0.0.9")).Get(t.Context(), name)
	if got := <-from; !strings.HasPrefix(got, "127.0.0.9:") {
		t.Fatalf("the request came from %s", got)
	}
}
