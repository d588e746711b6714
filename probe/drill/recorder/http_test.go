package recorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/internal/golden"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

func config() Config {
	return Config{Endpoints: []string{"127.0.0.1:1"}, Replicas: 2, Probes: 2, Rate: 100, Sessions: 2, FIX: fixorder.FIX42, Timeout: time.Second, Patience: time.Second, GapLimit: time.Second,
		MaxOrders: 1000, Token: "secret", Dir: "drill", NodePort: 9400}
}

// preparing is a recorder that has reached no grid.
func preparing(t *testing.T) (*Recorder, *httptest.Server) {
	t.Helper()
	r, err := New(config())
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(r.Handler())
	t.Cleanup(s.Close)
	return r, s
}

func TestHTTPRefuses(t *testing.T) {
	_, s := preparing(t)
	big := strings.Repeat("x", api.MaxBody+1)
	for name, c := range map[string]struct {
		method, path, body, token string
		code                      int
		want                      string
	}{
		"no token":              {"GET", api.PathState, "", "", 401, "token of the drill"},
		"another token":         {"GET", api.PathState, "", "Bearer secre", 401, "token of the drill"},
		"token without Bearer":  {"GET", api.PathState, "", "secret", 401, "token of the drill"},
		"finish without token":  {"POST", api.PathFinish, "{}", "", 401, "token of the drill"},
		"metrics without token": {"GET", "/metrics", "", "", 401, "the metrics of a drill are for"},
		"metrics":               {"GET", "/metrics", "", "-", 200, "ordergrid_drill_recorder_phase"},
		"body too large":        {"PUT", api.PathSteps + "0", `{"what":"` + big + `"}`, "-", 413, "too large"},
		"not JSON":              {"PUT", api.PathSteps + "0", "{", "-", 400, "body: "},
		"another kind of JSON":  {"PUT", api.PathSteps + "0", `["a"]`, "-", 400, "body: "},
		"number too large":      {"PUT", api.PathSteps + "0", `{"type":"PodKill","repetition":1e99}`, "-", 400, "body: "},
		"deep JSON":             {"PUT", api.PathSteps + "0", strings.Repeat(`{"expect":`, 20000), "-", 400, "body: "},
		"no type":               {"PUT", api.PathSteps + "0", "", "-", 400, `type "": name the type`},
		"long text":             {"PUT", api.PathSteps + "0", `{"type":"PodKill","what":"` + strings.Repeat("x", maxText+1) + `"}`, "-", 400, "what: 4097 bytes, must be at most 4096"},
		"negative repetition":   {"PUT", api.PathSteps + "0", `{"type":"PodKill","repetition":-1}`, "-", 400, "repetition -1"},
		"odd expectation":       {"PUT", api.PathSteps + "0", `{"type":"PodKill","expect":{"loss":"Often"}}`, "-", 400, "must be Never or Warned"},
		"odd failed orders":     {"PUT", api.PathSteps + "0", `{"type":"PodKill","expect":{"failedOrders":"Some"}}`, "-", 400, "must be None or Allowed"},
		"index not a number":    {"PUT", api.PathSteps + "one", "{}", "-", 400, `index "one": must be 0 to 65535`},
		"negative index":        {"PUT", api.PathSteps + "-1", "{}", "-", 400, `index "-1"`},
		"index too large":       {"GET", api.PathSteps + "65536", "", "-", 400, "must be 0 to 65535"},
		"index beyond int":      {"GET", api.PathSteps + "99999999999999999999", "", "-", 400, "must be 0 to 65535"},
		"unknown step":          {"GET", api.PathSteps + "3", "", "-", 404, "no step of this index"},
		"event of no step":      {"POST", api.PathSteps + "3/injected", "", "-", 404, "no step of this index"},
		"odd witness":           {"POST", api.PathSteps + "3/injected", `{"witness":{"state":"Maybe"}}`, "-", 400, "must be Pending, Seen or NotSeen"},
		"step too early":        {"PUT", api.PathSteps + "0", `{"type":"PodKill"}`, "-", 409, "it is Preparing"},
		"finish too early":      {"POST", api.PathFinish, "{}", "-", 409, "it is Preparing"},
		"no certificate yet":    {"GET", api.PathCertificate, "", "-", 404, "there is no certificate yet: the recorder is Preparing"},
		"no text yet":           {"GET", api.PathText, "", "-", 404, "no certificate yet"},
		"no history yet":        {"GET", api.PathHistory, "", "-", 404, "no certificate yet"},
		"no sums yet":           {"GET", api.PathDigests, "", "-", 404, "no certificate yet"},
		"unknown path":          {"GET", "/v1/secrets", "", "-", 404, ""},
		"path upwards":          {"GET", "/v1/../../etc/passwd", "", "-", 404, ""},
		"other method":          {"DELETE", api.PathState, "", "-", 405, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest(c.method, s.URL+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.token == "-" {
				c.token = "Bearer secret"
			}
			req.Header.Set("Authorization", c.token)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			b, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
			if resp.StatusCode != c.code || !strings.Contains(string(b), c.want) {
				t.Fatalf("%d %s, want %d %q", resp.StatusCode, b, c.code, c.want)
			}
		})
	}
}

// For every body the answer is one of the statuses above.
func FuzzStep(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"type":"PodKill","pods":["a"],"partitions":["p0"],"expect":{"outageNanoseconds":5}}`, "null", "[]", "{\"type\":\"\\u0000\"}"} {
		f.Add([]byte(seed), "0", "injected")
	}
	r, err := New(config())
	if err != nil {
		f.Fatal(err)
	}
	h := r.Handler()
	f.Fuzz(func(t *testing.T, body []byte, index, event string) {
		for _, c := range []struct{ method, path string }{{"PUT", api.PathSteps + "0"}, {"POST", api.PathSteps + "0/injected"}, {"POST", api.PathFinish}} {
			req := httptest.NewRequest(c.method, c.path, bytes.NewReader(body))
			req.Header.Set("Authorization", "Bearer secret")
			req.SetPathValue("index", index)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, req); w.Code != 400 && w.Code != 404 && w.Code != 409 && w.Code != 413 {
				t.Errorf("%s %s of %q: %d", c.method, c.path, body, w.Code)
			}
		}
		if _, err := r.Tell(0, api.Event(event), api.Note{}); err == nil {
			t.Error("an event of a step that was never begun was accepted")
		}
	})
}

func TestClient(t *testing.T) {
	_, s := preparing(t)
	c := api.NewClient(s.URL+"/", "secret", nil)
	state, err := c.State(t.Context())
	if err != nil || state.Phase != api.Preparing || state.MaxOrders != 1000 {
		t.Fatalf("%+v, %v", state, err)
	}
	_, err = c.Step(t.Context(), 4)
	var status *api.StatusError
	if !api.IsNotFound(err) || !errors.As(err, &status) || status.URL != s.URL+"/v1/steps/4" || !strings.Contains(err.Error(), "GET "+s.URL+"/v1/steps/4: 404 Not Found: step 4: no step") {
		t.Errorf("%v", err)
	}
	if _, err := api.NewClient(s.URL, "other", nil).State(t.Context()); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("%v", err)
	}
	s.Close()
	if _, err := c.State(t.Context()); err == nil || !strings.Contains(err.Error(), s.URL) {
		t.Errorf("the error does not name the URL: %v", err)
	}
}

// An endless or invalid answer of a peer is rejected.
func TestClientIsBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == api.PathState {
			_, _ = io.WriteString(w, "<html>")
			return
		}
		chunk := make([]byte, 1<<20)
		for range 70 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	c := api.NewClient(s.URL, "x", nil)
	if _, err := c.State(t.Context()); err == nil || !strings.Contains(err.Error(), s.URL+api.PathState) {
		t.Errorf("%v", err)
	}
	if _, err := c.Certificate(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Errorf("%v", err)
	}
	if n, err := c.History(t.Context(), io.Discard, 1<<20); err == nil || n > 1<<20+1 || !strings.Contains(err.Error(), s.URL+api.PathHistory) {
		t.Errorf("%d, %v", n, err)
	}
}

func TestConfig(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"--endpoint":       func(c *Config) { c.Endpoints = nil },
		"--replicas 4":     func(c *Config) { c.Replicas = 4 },
		"--probes 0":       func(c *Config) { c.Probes = 0 },
		"--rate -1":        func(c *Config) { c.Rate = -1 },
		"--sessions 65":    func(c *Config) { c.Sessions = 65 },
		"--reads -1":       func(c *Config) { c.Reads = -1 },
		"--direct-orders":  func(c *Config) { c.Orders = -1 },
		"--node-port":      func(c *Config) { c.NodePort = 70000 },
		"--timeout 0s":     func(c *Config) { c.Timeout = 0 },
		"--patience":       func(c *Config) { c.Patience = 2 * time.Hour },
		"--gap-limit":      func(c *Config) { c.GapLimit = 0 },
		"--ttl":            func(c *Config) { c.TTL = -1 },
		`"5.0": there are`: func(c *Config) { c.FIX = "5.0" },
		"--max-orders -1":  func(c *Config) { c.MaxOrders = -1 },
		"not one second":   func(c *Config) { c.MaxOrders = 199 },
		"--node-http":      func(c *Config) { c.NodeHTTP = []string{"a"} },
	} {
		c := config()
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Where a session has an order every half second, a gap of that length is calm.
func TestGapLimitOfALowRate(t *testing.T) {
	for rate, want := range map[int]time.Duration{4: 2 * time.Second, 100: 250 * time.Millisecond} {
		c := config()
		c.Rate, c.GapLimit = rate, 250*time.Millisecond
		r, err := New(c)
		if err != nil || r.State().GapLimit != want {
			t.Errorf("%d orders/s over %d sessions: %v, gap limit %s, want %s", rate, c.Sessions, err, r.State().GapLimit, want)
		}
	}
}

func TestMetricsAreDocumented(t *testing.T) {
	r, _ := preparing(t)
	golden.Metrics(t, "../../../docs/metrics.md", r.Registry(), func(name string) bool { return strings.HasPrefix(name, prefix) })
}

// The JSON of a state without times has none.
func TestStateJSON(t *testing.T) {
	r, _ := preparing(t)
	b, err := json.Marshal(r.State())
	if err != nil || strings.Contains(string(b), "0001-01-01") {
		t.Errorf("%v %s", err, b)
	}
}
