package server

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/internal/chromium"
)

const script = `<script>
window.got = []
const ws = new WebSocket("ws://%s/stream?topics=>", ["ordergrid.json.v1"])
ws.onmessage = e => got.push(e.data.replaceAll(" ", ""))
ws.onclose = e => got.push("closed " + e.code)
ws.onopen = () => ws.send('{"op":"subscribe","id":1,"topics":"orders.>"}')
const foreign = new WebSocket("ws://%s/stream?topics=>", ["ordergrid.json.v1"])
foreign.onopen = () => got.push("a page of another origin is connected")
foreign.onerror = () => got.push("refused")
const events = new EventSource("http://%s/events?topics=orders.%%3E")
events.onmessage = e => got.push("event " + e.lastEventId + " " + e.data)
events.addEventListener("subscribed", e => got.push("events from " + e.lastEventId))
events.addEventListener("end", e => { got.push("end of events " + e.data); events.close() })
</script>`

// The browser's own WebSocket, with its origin.
func TestBrowser(t *testing.T) {
	path, err := chromium.Find()
	if err != nil {
		if os.Getenv("ORDERGRID_REQUIRE_CHROMIUM") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	var text string
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
	defer page.Close()
	s, addr := start(t, transport.KindAuto, func(c *Config) { c.Origins = []string{page.URL} })
	_, strict := start(t, transport.KindAuto, nil)
	text = fmt.Sprintf(script, addr, strict, addr)
	browser, err := chromium.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := browser.Close(); err != nil {
			t.Error(err)
		}
	}()
	p, err := browser.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Go(page.URL); err != nil {
		t.Fatal(err)
	}
	wait := func(want string) {
		t.Helper()
		var got []string
		for range 400 {
			if err := p.Eval("window.got", &got); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(strings.Join(got, "\n"), want) {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("the page has %q, want %s", got, want)
	}
	wait(`{"op":"subscribed","id":1,"position":"3.p0:0,p1:0"}`)
	wait("refused")
	wait("events from 3.p0:0,p1:0")
	publish(t, s, 0, 1, "orders.A17.ACME.buy", "A17", "101.5")
	wait(`{"op":"message","id":1,"partition":0,"at":"1","topic":"orders.A17.ACME.buy","data":{"price":"101.5"}}`)
	wait(`event 3.p0:1,p1:0 {"partition":0,"at":"1","topic":"orders.A17.ACME.buy","data":{"price":"101.5"}}`)
	s.Stop("the test ends")
	wait("closed 1001")
	wait("end of events")
}

// Java's HttpClient.
func TestJava(t *testing.T) {
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip(err)
	}
	if modules, err := exec.Command(java, "--list-modules").Output(); err != nil || !strings.Contains(string(modules), "jdk.compiler") {
		t.Skip("this Java cannot run a source file: it has no compiler")
	}
	s, addr := start(t, transport.KindAuto, func(c *Config) { c.Hub.RingBytes = 4 << 20 })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, java, "-XX:TieredStopAtLevel=1", "testdata/Subscriber.java", "ws://"+addr+"/stream?topics=%3E", "3")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	published := false
	var got []string
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		got = append(got, lines.Text())
		if !published && strings.Contains(lines.Text(), "subscribed") {
			published = true
			topic := append(topics.AppendToken([]byte("orders.A17."), []byte("BRK.B")), ".buy"...)
			publish(t, s, 0, 1, string(topic), "A17", "1")
			long := fmt.Sprintf("%q", strings.Repeat("x", 70_000)) // a length of eight bytes
			s.Post(func(h *fanout.Hub) {
				if err := h.Publish(&fanout.Message{At: fanout.Position{Seq: 2}, Topic: topic, Payload: []byte(long)}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	want := []string{"pong 3", `{"op":"subscribed","id":1,"position":"3.p0:0,p1:0"}`,
		`{"op":"message","id":1,"partition":0,"at":"1","topic":"orders.A17.BRK%2EB.buy","data":{"price":"1"}}`,
		`{"op":"message","id":1,"partition":0,"at":"2","topic":"orders.A17.BRK%2EB.buy","data":"` + strings.Repeat("x", 70_000) + `"}`, "closed 1000"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("printed %.400q, want %.400q", got, want)
	}
}
