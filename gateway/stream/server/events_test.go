package server

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// reader reads events over Go's own HTTP client.
type reader struct {
	t      *testing.T
	resp   *http.Response
	lines  *bufio.Scanner
	lastID string
}

// event is one as a browser would give it to a page.
type event struct{ name, id, data string }

func get(t *testing.T, addr, query string, header ...string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/events?"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Transport{}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func readEvents(t *testing.T, addr, query string, header ...string) *reader {
	t.Helper()
	resp := get(t, addr, query, append([]string{"X-Topics", ">"}, header...)...)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s %s %s", resp.Status, resp.Header, b)
	}
	r := &reader{t: t, resp: resp, lines: bufio.NewScanner(resp.Body)}
	r.lines.Buffer(nil, 1<<20)
	return r
}

// next is by the rules of the HTML standard, section 9.2.6: an id without data is kept, and is no event.
func (r *reader) next() (e event, ok bool) {
	r.t.Helper()
	for r.lines.Scan() {
		name, value, _ := strings.Cut(r.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case r.lines.Text() == "" && e.data == "":
			e = event{}
		case r.lines.Text() == "":
			e.id = r.lastID
			return e, true
		case name == "id":
			r.lastID = value
		case name == "event":
			e.name = value
		case name == "data":
			e.data += value
		case name != "retry":
			r.t.Fatalf("line %q is of no event", r.lines.Text())
		}
	}
	return e, false
}

func (r *reader) want(name, id, data string) {
	r.t.Helper()
	e, ok := r.next()
	if !ok || e.name != name || e.id != id || !strings.Contains(e.data, data) {
		r.t.Fatalf("got %+v %t, want %s %s with %s", e, ok, name, id, data)
	}
	if !json.Valid([]byte(e.data)) {
		r.t.Errorf("%s is not JSON", e.data)
	}
}

// Each event has the position of all partitions; a client that comes back with it gets what follows, once.
func TestEvents(t *testing.T) {
	kinds(t, func(t *testing.T, kind transport.Kind) {
		s, addr := start(t, kind, func(c *Config) { c.Ping = 100 * time.Millisecond; c.Origins = []string{"https://desk.example.com"} })
		query := "topics=orders.*.ACME.%3E&filter=" + url.QueryEscape(`[{"field":"price","min":"100"}]`)
		a := readEvents(t, addr, query, "Origin", "https://desk.example.com")
		if h := a.resp.Header; h.Get("Access-Control-Allow-Origin") != "https://desk.example.com" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("headers %v", h)
		}
		a.want("subscribed", "3.p0:0,p1:0", `{"position":"3.p0:0,p1:0"}`)
		publish(t, s, 0, 7, "orders.A17.ACME.buy", "A17", "101.5")
		publish(t, s, 0, 8, "orders.A17.ACME.buy", "A17", "99.5")
		publish(t, s, 1, 3, "orders.B.ACME.sell", "B", "100.0")
		a.want("", "3.p0:7,p1:0", `{"partition":0,"at":"7","topic":"orders.A17.ACME.buy","data":{"price":"101.5"}}`)
		a.want("", "3.p0:7,p1:3", `{"partition":1,"at":"3","topic":"orders.B.ACME.sell","data":{"price":"100.0"}}`)
		// Without a message its position goes on all the same, as no event.
		for a.lastID != "3.p0:8,p1:3" && a.lines.Scan() {
			if id, is := strings.CutPrefix(a.lines.Text(), "id: "); is {
				a.lastID = id
			} else if a.lines.Text() != "" {
				t.Fatalf("%q, want ids only", a.lines.Text())
			}
		}
		if a.lastID != "3.p0:8,p1:3" {
			t.Fatalf("the last id is %s", a.lastID)
		}
		_ = a.resp.Body.Close()

		publish(t, s, 0, 10, "orders.A17.ACME.buy", "A17", "200")
		publish(t, s, 1, 4, "orders.A17.ACME.buy", "A17", "201")
		b := readEvents(t, addr, query+"&resume=3.p0:0,p1:0&last=7", "Last-Event-ID", a.lastID)
		b.want("subscribed", "3.p0:8,p1:3", "")
		seen := map[string]bool{}
		for range 2 {
			e, ok := b.next()
			if !ok || seen[e.data] {
				t.Fatalf("%+v %t", e, ok)
			}
			seen[e.data] = true
		}
		if b.lastID != "3.p0:10,p1:4" || !strings.Contains(fmt.Sprint(seen), `"price":"200"`) || !strings.Contains(fmt.Sprint(seen), `"price":"201"`) {
			t.Errorf("%s %v", b.lastID, seen)
		}
		c := readEvents(t, addr, query+"&last=2")
		for e, ok := c.next(); e.name != "live"; e, ok = c.next() {
			if !ok {
				t.Fatal("it ended")
			}
		}
		if c.lastID != b.lastID {
			t.Errorf("after the last ones the id is %s, want %s", c.lastID, b.lastID)
		}
		s.Stop("the test ends")
		for {
			e, ok := b.next()
			if e.name == "end" && strings.Contains(e.data, "the test ends") {
				break
			}
			if !ok {
				t.Fatal("the end was not told")
			}
		}
	})
}

// What was missed is told with the event's place behind it, and a payload of several lines is one event.
func TestEventsOfGapsAndLines(t *testing.T) {
	s, addr := start(t, transport.KindAuto, func(c *Config) { c.Hub.RingBytes = 4 << 20 })
	s.Do(func(h *fanout.Hub) { h.Begin(0, fanout.Position{Seq: 100}) })
	a := readEvents(t, addr, "topics=orders.%3E&resume=3.p0:50,p1:0")
	a.want("subscribed", "3.p0:50,p1:0", "")
	a.want("gap", "3.p0:100,p1:0", `{"ranges":[{"partition":0,"after":"50","through":"100"}]}`)
	s.Do(func(h *fanout.Hub) {
		if err := h.Publish(&fanout.Message{Partition: 1, At: fanout.Position{Seq: 2, Index: 1}, Topic: []byte("orders.A"), Payload: []byte("{\n\"a\":\r\n" + strings.Repeat(" ", 70_000) + "1}")}); err != nil {
			t.Error(err)
		}
	})
	a.want("", "3.p0:100,p1:2.1", `"at":"2.1","topic":"orders.A","data":{`)
}

// What is refused, and a browser that is ahead of this gateway is told to retry.
func TestEventsThatAreRefused(t *testing.T) {
	_, addr := start(t, transport.KindAuto, func(c *Config) {
		login := c.Admit
		c.Login = func(string, *x509.Certificate) (*Grant, error) { return nil, nil }
		c.Admit = func(r *http.Request, x *x509.Certificate) (*Grant, error) {
			if r.Header.Get("X-Topics") == "" {
				return nil, nil
			}
			return login(r, x)
		}
	})
	const own = "orders.A17.>"
	for _, c := range []struct {
		query, topics string
		header        []string
		status        int
		want          string
	}{
		{"topics=orders.A17.%3E", "", nil, 401, "Authorization: Bearer TOKEN"},
		{"topics=orders.%3E", own, nil, 403, "not permitted"},
		{"topics=orders..x", own, nil, 400, "token 2 of pattern"},
		{"topics=orders.A17.%3E&topics=a", own, nil, 400, `query has "topics" 2 times`},
		{"topics=orders.A17.%3E&token=secret", own, nil, 400, `query has "token" 1 times`},
		{"topics=orders.A17.%3E&last=x", own, nil, 400, "allowed: a number"},
		{"topics=orders.A17.%3E&flush_ms=-1", own, nil, 400, "flush_ms is -1"},
		{"topics=orders.A17.%3E&filter=x", own, nil, 400, "filter is not valid"},
		{"topics=orders.A17.%3E&policy=conflate", own, nil, 400, "policy is conflate"},
		{"topics=orders.A17.%3E&resume=x", own, nil, 400, "resume token"},
		{"topics=orders.A17.%3E&resume=4.p0:0", own, nil, 409, "another history"},
		{"topics=orders.A17.%3E&resume=3.p0:9", own, nil, 200, `"code":"ahead"`},
		{"topics=orders.A17.%3E", own, []string{"Origin", "https://evil.example.com"}, 403, "Origin is"},
		{"topics=orders.A17.%3E", own, []string{"Last-Event-ID", strings.Repeat("9", 9000)}, 431, "longer than"},
	} {
		header := c.header
		if c.topics != "" {
			header = append(header, "X-Topics", c.topics)
		}
		resp := get(t, addr, c.query, header...)
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != c.status || !strings.Contains(string(b), c.want) {
			t.Errorf("%s %v: %s %s, %v; want %d %s", c.query, c.header, resp.Status, b, err, c.status, c.want)
		}
	}
	resp, err := http.Post("http://"+addr+"/events?topics=orders.A17.%3E", "text/plain", http.NoBody)
	if err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %v %v", resp.Status, err)
	}
	_ = resp.Body.Close()
	_, many := start(t, transport.KindAuto, func(c *Config) { c.Hub.Partitions = maxEventPartitions + 1 })
	if resp := get(t, many, "topics=orders.A17.%3E", "X-Topics", own); resp.StatusCode != http.StatusNotImplemented {
		t.Errorf("a grid of many partitions: %s", resp.Status)
	}
}
