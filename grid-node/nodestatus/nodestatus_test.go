package nodestatus_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

const good = `{"grid":"g","pod":"g-s0-0","bootID":"00000000000000aa","partitions":[{"record":"g-p0","partition":"p0",
	"member":"g-s0-0/00000000000000aa","bootID":"00000000000000aa","role":"primary","epoch":7,"lineage":1,"changeID":"c7"}],"later":1}`

const patience = time.Minute

func ask(t *testing.T, limit time.Duration, h http.HandlerFunc) (*nodestatus.Node, error) {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	return nodestatus.Get(t.Context(), nodestatus.NewClient(limit, nil), strings.TrimPrefix(srv.URL, "http://"))
}

func TestGet(t *testing.T) {
	n, err := ask(t, patience, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/status" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		_, _ = w.Write([]byte(good))
	})
	if err != nil {
		t.Fatal(err)
	}
	p := n.Find("g-p0")
	if n.Pod != "g-s0-0" || p == nil || p.Epoch != 7 || p.BootID != "00000000000000aa" || p.Role != "primary" || n.Find("g-p1") != nil {
		t.Fatalf("%+v", n)
	}
}

// The server at a pod's address may be any program.
func TestHostileAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"not found": {http.NotFound, "status 404"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, "status 302"},
		"no JSON":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "not that page of a grid node"},
		"other JSON": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"status":"ok"}`)) }, "names no pod"},
		"a negative epoch": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Replace(good, `"epoch":7`, `"epoch":-7`, 1)))
		}, "not that page of a grid node"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"pod":"` + strings.Repeat("x", 16<<20)))
		}, "longer than"},
		"never":  {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline"},
		"resets": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := patience
			if name == "never" {
				limit = 100 * time.Millisecond
			}
			if n, err := ask(t, limit, test.answer); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(test.want)) {
				t.Fatalf("got %+v, %v; want an error with %q", n, err, test.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := nodestatus.Get(ctx, nodestatus.NewClient(time.Second, nil), "127.0.0.1:1"); err == nil {
		t.Error("no error although no server listens")
	}
	if _, err := nodestatus.Get(t.Context(), nodestatus.NewClient(time.Second, nil), "bad address"); err == nil {
		t.Error("a bad address is no error")
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"partitions":[null]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := nodestatus.Get(t.Context(), &http.Client{Transport: answers(body)}, "node:9400")
		if err == nil && (n.Pod == "" || n.BootID == "") {
			t.Fatalf("%+v", n)
		}
	})
}

// answers is a transport that answers every request with itself.
type answers []byte

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	_, _ = rec.Write(a)
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

func TestPauses(t *testing.T) {
	runtime.GC()
	srv := httptest.NewServer(http.HandlerFunc(nodestatus.ServePauses))
	defer srv.Close()
	c := nodestatus.NewClient(5*time.Second, nil)
	p, err := nodestatus.GetPauses(t.Context(), c, srv.URL)
	if err != nil || p.Collections < 1 || len(p.Recent) < 1 || time.Since(time.Unix(0, p.Recent[0].EndUnixNs)) > time.Hour || p.Recent[0].Ns < 0 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, answer := range []string{`[]`, `{"collections":-1}`, `{"recent":[` + strings.Repeat(`{"ns":1},`, 256) + `{"ns":1}]}`} {
		bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		if _, err := nodestatus.GetPauses(t.Context(), c, bad.URL); err == nil {
			t.Errorf("%.40s is taken for a list of pauses", answer)
		}
		bad.Close()
	}
}
