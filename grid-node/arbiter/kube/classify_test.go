package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/arbitertest"
)

const object = `{"apiVersion":"ordergrid.dev/v1alpha1","kind":"GridPartition","metadata":{"name":"g-p0","namespace":"ns","uid":"u1","resourceVersion":"42"},
"spec":{"gridRef":{"name":"g"},"shard":0,"index":0,"replicas":2,"minInSync":1,"preferredPod":"g-s0-0"},"status":{"epoch":0}}`

func status(code int, reason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}

// against returns an arbiter that talks to h.
func against(t *testing.T, h http.HandlerFunc) *Arbiter {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	a, err := New(&rest.Config{Host: srv.URL}, "ns")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func answer(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// Only the API server's response to this very PUT is conclusive; otherwise the change may
// have happened.
func TestOutcomeOfAPut(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want error // nil: done
		text string
	}{
		"done":                {answer(200, object), nil, ""},
		"conflict":            {answer(409, status(409, "Conflict", "the object has been modified")), arbiter.ErrConflict, "modified"},
		"invalid":             {answer(422, status(422, "Invalid", "epoch 4 does not follow 2")), arbiter.ErrRefused, "epoch 4 does not follow 2"},
		"forbidden":           {answer(403, status(403, "Forbidden", "cannot update")), arbiter.ErrRefused, "cannot update"},
		"unauthorized":        {answer(401, status(401, "Unauthorized", "token expired")), arbiter.ErrRefused, ""},
		"gone":                {answer(404, status(404, "NotFound", "not found")), arbiter.ErrNotFound, ""},
		"internal error":      {answer(500, status(500, "InternalError", "etcd leader changed")), arbiter.ErrUnknown, "leader changed"},
		"unavailable":         {answer(503, "upstream connect error"), arbiter.ErrUnknown, ""},
		"gateway timed out":   {answer(504, status(504, "Timeout", "request did not complete in time")), arbiter.ErrUnknown, ""},
		"request timed out":   {answer(408, status(408, "Timeout", "request timed out")), arbiter.ErrUnknown, ""},
		"too many requests":   {answer(429, status(429, "TooManyRequests", "slow down")), arbiter.ErrUnknown, ""},
		"not an API server":   {answer(200, "<html>hello</html>"), arbiter.ErrUnknown, ""},
		"half an answer":      {answer(200, object[:40]), arbiter.ErrUnknown, ""},
		"no answer in time":   {hang, arbiter.ErrUnknown, ""},
		"connection lost":     {abort, arbiter.ErrUnknown, ""},
		"redirected in a way": {answer(302, ""), arbiter.ErrUnknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := against(t, c.h)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			r := arbitertest.Rec(1, 1, "c", arbitertest.A, arbitertest.A)
			r.Name, r.Version = "g-p0", "41"
			now, err := a.CompareAndSwap(ctx, r)
			switch {
			case c.want == nil && (err != nil || now.Version != "42"):
				t.Fatalf("got %+v, %v", now, err)
			case c.want != nil && (!errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text)):
				t.Fatalf("got %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}

// A PUT is sent once: only the proposer may retry it.
func TestPutIsNotRetried(t *testing.T) {
	n := 0
	a := against(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		w.Header().Set("Retry-After", "0")
		answer(429, status(429, "TooManyRequests", "slow down"))(w, r)
	})
	_, _ = a.CompareAndSwap(t.Context(), arbiter.Record{Name: "g-p0"})
	if n != 1 {
		t.Fatalf("%d requests, want 1", n)
	}
}

func TestPutIsOnStatusWithTheVersion(t *testing.T) {
	a := against(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPut || r.URL.Path != "/apis/ordergrid.dev/v1alpha1/namespaces/ns/gridpartitions/g-p0/status" ||
			!strings.Contains(string(body), `"resourceVersion":"41"`) {
			t.Errorf("%s %s %s", r.Method, r.URL, body)
		}
		answer(200, object)(w, r)
	})
	r := arbitertest.Rec(1, 1, "c", arbitertest.A, arbitertest.A)
	r.Name, r.Version = "g-p0", "41"
	if _, err := a.CompareAndSwap(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// Reading is a quorum read: no resourceVersion, which would allow the cache.
func TestGetIsAQuorumRead(t *testing.T) {
	a := against(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			t.Errorf("query %q", r.URL.RawQuery)
		}
		answer(200, object)(w, r)
	})
	r, err := a.Get(t.Context(), "g-p0")
	if err != nil || r.Version != "42" || r.Spec.PreferredPod != "g-s0-0" || r.Epoch != 0 {
		t.Fatalf("got %+v, %v", r, err)
	}
}

func TestNamespaceIsNeeded(t *testing.T) {
	if _, err := New(&rest.Config{Host: "http://x"}, ""); err == nil || !strings.Contains(err.Error(), "--namespace") {
		t.Fatalf("got %v", err)
	}
}
