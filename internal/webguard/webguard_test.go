package webguard

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serve starts a guarded server.
func serve(t *testing.T, h http.Handler, l Limits) (*Listener, string) {
	t.Helper()
	ln, err := Listen(t.Context(), "127.0.0.1:0", l)
	if err != nil {
		t.Fatal(err)
	}
	s := Server(h, l, nil)
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = s.Close() })
	return ln, ln.Addr().String()
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

func get(t *testing.T, addr string) {
	t.Helper()
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get("http://" + addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("status %s", r.Status)
	}
}

// Silent connections, and those that request pages without end and read none, are limited in
// number, and a client beside them is answered each time.
func TestScrapeBesideStrangers(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 200<<10)
	var made atomic.Int64
	h := Page(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { made.Add(1); _, _ = w.Write(large) }), func(*http.Request) string { return "" })
	ln, addr := serve(t, h, Limits{Conns: 40, AddrConns: 30})
	const strangers = 120
	for i := range strangers {
		c := dial(t, addr)
		if i%2 == 0 {
			continue // idle
		}
		_ = c.SetReadBuffer(4 << 10)
		go func() { _, _ = io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200)) }()
	}
	for range 10 {
		get(t, addr)
	}
	conns, ended := ln.Stats()
	t.Logf("%d connections of strangers: %d are open, %d were ended for others; the page was rendered %d times", strangers, conns, ended, made.Load())
	if conns > 30 || ended < strangers-30 {
		t.Errorf("%d connections of one address are open, allowed: 30; %d were ended", conns, ended)
	}
}

// An idle connection is ended before one whose request is under way.
func TestIdleConnectionsGoFirst(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-end
		_, _ = io.WriteString(w, "ok")
	})
	_, addr := serve(t, h, Limits{Conns: 3})
	busy := dial(t, addr)
	if _, err := io.WriteString(busy, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-begun
	for range 10 {
		dial(t, addr)
	}
	time.Sleep(50 * time.Millisecond)
	close(end)
	if b, err := io.ReadAll(busy); err != nil || !bytes.HasSuffix(b, []byte("ok")) {
		t.Fatalf("%q, %v", b, err)
	}
}

// Each request gets a page that was begun after it, and concurrent ones share one.
func TestPageIsNeverOlderThanTheQuestion(t *testing.T) {
	var state, made atomic.Int64
	h := Page(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		made.Add(1)
		_, _ = fmt.Fprint(w, state.Load())
	}), func(r *http.Request) string { return r.Header.Get("Accept") })
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				want := state.Add(1)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				var got int64
				if _, err := fmt.Sscan(w.Body.String(), &got); err != nil || got < want {
					t.Errorf("page of %d for a request at %d: %v", got, want, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d pages rendered for %d requests", made.Load(), 50*20)
	if made.Load() >= 50*20 {
		t.Error("no page was shared")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)) // does not wait
}

// Requests that browsers send for a web page are refused, those of programs are not.
func TestWebPagesGiveNoOrders(t *testing.T) {
	h := Local(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, c := range map[string]struct {
		method, host string
		header       http.Header
		want         int
	}{
		"program":                           {"POST", "127.0.0.1:8080", http.Header{"Content-Type": {"application/json"}}, 200},
		"program reads":                     {"GET", "localhost:8080", nil, 200},
		"IPv6":                              {"PUT", "[::1]:8080", http.Header{"Content-Type": {"application/json; charset=utf-8"}}, 200},
		"a form of another site":            {"POST", "127.0.0.1:8080", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, 415},
		"plain text, no preflight":          {"POST", "127.0.0.1:8080", http.Header{"Content-Type": {"text/plain"}, "Origin": {"http://evil.example"}}, 403},
		"no content type":                   {"POST", "127.0.0.1:8080", nil, 415},
		"another site, in JSON":             {"POST", "127.0.0.1:8080", http.Header{"Content-Type": {"application/json"}, "Sec-Fetch-Site": {"cross-site"}}, 403},
		"another port of this machine":      {"PUT", "127.0.0.1:8080", http.Header{"Content-Type": {"application/json"}, "Origin": {"http://127.0.0.1:3000"}}, 403},
		"a name that resolves to this host": {"GET", "rebound.example:8080", nil, 403},
	} {
		r := httptest.NewRequest(c.method, "http://"+c.host+"/v1/faults", nil)
		for k, v := range c.header {
			r.Header[k] = v
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: status %d %q, want %d", name, w.Code, w.Body, c.want)
		}
	}
}
