package pod

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// apiServer keeps ConfigMaps like the real one for these requests; the suites in e2e use the real
// one.
type apiServer struct {
	mu    sync.Mutex
	maps  map[string]configMap
	fail  []int // status codes of the next answers
	token string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := func(code int, v any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	if len(s.fail) > 0 {
		code := s.fail[0]
		s.fail = s.fail[1:]
		answer(code, map[string]string{"message": "as set by the test"})
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+s.token {
		answer(http.StatusUnauthorized, map[string]string{"message": "who are you"})
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/trading/configmaps/")
	switch {
	case !ok:
		answer(http.StatusNotFound, nil)
	case r.Method == http.MethodPatch:
		var m configMap
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.Metadata.Name != name || r.URL.Query().Get("fieldManager") == "" {
			answer(http.StatusBadRequest, map[string]string{"message": "bad apply"})
			return
		}
		s.maps[name] = m
		answer(http.StatusOK, m)
	default:
		m, ok := s.maps[name]
		if !ok {
			answer(http.StatusNotFound, map[string]string{"message": "configmaps not found"})
			return
		}
		answer(http.StatusOK, m)
	}
}

func (s *apiServer) get(name string) configMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.maps[name]
}

func channel(t *testing.T) (*Channel, *apiServer) {
	t.Helper()
	s := &apiServer{maps: map[string]configMap{}, token: "first"}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	for name, v := range map[string]string{"token": "first\n", "namespace": "trading"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(v), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := New(Config{Probe: "pair", ProbeUID: "u-1", Index: 1, Server: srv.URL, AccountDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func TestReadyThenResult(t *testing.T) {
	c, s := channel(t)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := s.get("pair-1")
	if m.Data[KeyReady] == "" || m.Metadata.Labels["ordergrid.dev/probe"] != "pair" || len(m.Metadata.OwnerReferences) != 1 || m.Metadata.OwnerReferences[0].UID != "u-1" {
		t.Errorf("%+v", m)
	}
	// The token is replaced while the pod runs.
	s.mu.Lock()
	s.token = "second"
	s.mu.Unlock()
	if err := os.WriteFile(filepath.Join(c.cfg.AccountDir, "token"), []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Result(t.Context(), []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	if m := s.get("pair-1"); m.Data[KeyResult] != `{"a":1}` || m.Data[KeyReady] == "" {
		t.Errorf("%+v", m)
	}
}

func TestPutRepeatsWhatMayPass(t *testing.T) {
	c, s := channel(t)
	s.fail = []int{http.StatusServiceUnavailable, http.StatusTooManyRequests}
	if err := c.Failed(t.Context(), errors.New("no grid")); err != nil {
		t.Fatal(err)
	}
	if m := s.get("pair-1"); m.Data[KeyError] != "no grid" {
		t.Errorf("%+v", m)
	}
	s.fail = []int{http.StatusForbidden}
	if err := c.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "403 as set by the test") {
		t.Errorf("got %v", err)
	}
}

func TestStartAt(t *testing.T) {
	c, s := channel(t)
	want := time.Date(2026, 5, 6, 7, 8, 9, 123456789, time.UTC)
	go func() {
		time.Sleep(50 * time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fail = []int{http.StatusInternalServerError}
		s.maps["pair-run"] = configMap{Data: map[string]string{KeyStartAt: want.Format(time.RFC3339Nano)}}
	}()
	got, err := c.StartAt(t.Context())
	if err != nil || !got.Equal(want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestStartAtGivesUp(t *testing.T) {
	c, s := channel(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.StartAt(ctx); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("got %v, want the last answer of the API server in it", err)
	}
	s.maps["pair-run"] = configMap{Data: map[string]string{KeyStartAt: "soon"}}
	if _, err := c.StartAt(t.Context()); err == nil {
		t.Error("an invalid start time was accepted")
	}
	s.fail = []int{http.StatusForbidden}
	if _, err := c.StartAt(t.Context()); err == nil {
		t.Error("waits though it is forbidden")
	}
}

func TestResultMustFit(t *testing.T) {
	c, _ := channel(t)
	if err := c.Result(t.Context(), make([]byte, MaxResult+1)); err == nil || !strings.Contains(err.Error(), "fewer rates") {
		t.Errorf("got %v", err)
	}
}

func TestNewOutsideOfACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, cfg := range []Config{{Probe: "p"}, {Probe: "p", Server: "http://x", AccountDir: "/nowhere"}, {Server: "http://x", Namespace: "n"}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v accepted", cfg)
		}
	}
}
