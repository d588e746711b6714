package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// talk is a connection that is logged in, line by line.
type talk struct {
	t   *testing.T
	ctx context.Context
	c   *websocket.Conn
}

func talkTo(t *testing.T, ctx context.Context, at *process) *talk {
	t.Helper()
	c, _, err := websocket.Dial(ctx, "ws://"+at.addr+"/stream", &websocket.DialOptions{Subprotocols: []string{"ordergrid.json.v1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	k := &talk{t, ctx, c}
	k.says(`{"op":"login","token":"`+testToken+`"}`, `"op":"welcome"`)
	return k
}

// says sends a command, "" for none, and wants an answer with all of the parts.
func (k *talk) says(command string, parts ...string) string {
	k.t.Helper()
	if command != "" {
		if err := k.c.Write(k.ctx, websocket.MessageText, []byte(command)); err != nil {
			k.t.Fatal(err)
		}
	}
	_, b, err := k.c.Read(k.ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	text := strings.ReplaceAll(string(b), " ", "")
	for _, part := range parts {
		if !strings.Contains(text, strings.ReplaceAll(part, " ", "")) {
			k.t.Fatalf("%s is answered with %s, want %s", command, b, part)
		}
	}
	return string(b)
}

// matchingFrom is a grid that matches by a file of instruments, which write changes, with a client.
func matchingFrom(t *testing.T) (g *testgrid.Grid, c *client.Client, write func(text string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "instruments.yaml")
	write = func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(testgrid.Instruments)
	g = testgrid.Run(t, "--", "--execution", "match", "--instruments", file)
	return g, clientOf(t, g), write
}

// clientOf is a client of a grid whose partitions have all their copies.
func clientOf(t *testing.T, g *testgrid.Grid) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, RequestTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // it never fails
	waitForCopies(t, c)
	return c
}

// TestGridBooks: who may read which book, what a subscription gets first, a book that is quiet, one that is not traded,
// what is refused with the reason, events, and that nothing of an owner is in it.
func TestGridBooks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	g, c, write := matchingFrom(t)
	for i, m := range []string{"11=1|1=SECRET|55=IBM|54=1|38=10|40=2|44=125.00", "11=2|1=SECRET|55=IBM|54=1|38=30|111=5|40=2|44=125.00", "11=3|1=SECRET|55=IBM|54=2|38=7|40=2|44=125.10"} {
		if _, err := c.Submit(ctx, fixMessage("35=D|"+m)); err != nil {
			t.Fatal(i, err)
		}
	}
	at := startGateway(t, g, "127.0.0.1:0", "--websocket-backlog", "0", "--websocket-clients", booksFile(t, "book.IBM.>", "book.NONE.*"))
	k := talkTo(t, ctx, at)
	k.says(`{"op":"subscribe","id":1,"topics":"book.IBM.L2"}`, `"op":"subscribed"`)
	quiet := k.says("", `"topic":"book.IBM.L2","data":{"symbol":"IBM","state":"open","bids":[["125.00","15",2]],"asks":[["125.10","7",1]]}}`)
	k.says(`{"op":"subscribe","id":2,"topics":"book.IBM.L1"}`, `"op":"subscribed"`)
	k.says("", `"id":2`, `"topic":"book.IBM.L1","data":{"symbol":"IBM","state":"open","bid":["125.00","15",2],"ask":["125.10","7",1]}}`)
	k.says(`{"op":"subscribe","id":3,"topics":"book.NONE.L1"}`, `"op":"subscribed"`)
	k.says("", `"id":3`, `"data":{"symbol":"NONE","state":"unknown"}`)
	for command, want := range map[string][]string{
		`{"op":"subscribe","id":9,"topics":"book.OIL.L1"}`:                                          {`"code":"not-permitted"`},
		`{"op":"subscribe","id":9,"topics":"book.*.L1"}`:                                            {`"code":"not-permitted"`},
		`{"op":"subscribe","id":9,"topics":"orders.>"}`:                                             {`"code":"not-permitted"`},
		`{"op":"subscribe","id":9,"topics":"book.IBM.deep.L1"}`:                                     {`"code":"invalid"`, "book.SYMBOL.L1"},
		`{"op":"subscribe","id":9,"topics":"book.IBM.L1","last":1}`:                                 {`"code":"invalid"`, "last"},
		`{"op":"subscribe","id":9,"topics":"book.IBM.L1","policy":"disconnect"}`:                    {`"code":"invalid"`, "disconnect"},
		`{"op":"subscribe","id":9,"topics":"book.IBM.L1","resume":"1.p0:1"}`:                        {`"code":"lineage"`},
		`{"op":"subscribe","id":9,"topics":"book.IBM.L1","filter":[{"field":"price","min":"1.0"}]}`: {`"code":"invalid"`},
	} {
		k.says(command, append(want, `"op":"error"`)...)
	}
	if _, err := c.Submit(ctx, fixMessage("35=D|11=4|1=SECRET|55=IBM|54=2|38=12|40=2|44=125.00")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // 10 of the first, 2 of what the iceberg shows
		if text := k.says("", `"last":"125.00"`, `["125.00","3",1]`); strings.Contains(text, "SECRET") || strings.Contains(text, "owner") {
			t.Errorf("a book says who is in it: %s", text)
		}
	}
	readEvents(t, ctx, at, "topics=book.IBM.L1", `"topic":"book.IBM.L1","data":{"symbol":"IBM","state":"open","last":"125.00","bid":["125.00","3",1],"ask":["125.10","7",1]}`)
	write(testgrid.Instruments + `- {symbol: NONE, tick: "1", lot: "1", low: "0", high: "9"}` + "\n")
	k.says("", `"id":3`, `"data":{"symbol":"NONE","state":"open"}`)
	for _, want := range []string{fmt.Sprintf(`ordergrid_stream_books{partition="%s"} 1`, c.RouteSymbol("IBM")), "ordergrid_stream_book_failures_total 0"} {
		if text := metricsOf(t, at); !strings.Contains(text, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	if !strings.Contains(quiet, `"at":"`) {
		t.Errorf("a ladder without position: %s", quiet)
	}
}

// readEvents reads topics as Server-Sent Events, until a line has what is wanted.
func readEvents(t *testing.T, ctx context.Context, at *process, query, want string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.addr+"/events?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testToken)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is read
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), want) {
			return
		}
	}
	t.Errorf("the events of %s have no %s", query, want)
}

// TestGridWithoutBooks: a grid that stores orders has none, and says so.
func TestGridWithoutBooks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g := testgrid.Run(t)
	k := talkTo(t, ctx, startGateway(t, g, "127.0.0.1:0", "--websocket-clients", booksFile(t, "book.>")))
	k.says(fmt.Sprintf(`{"op":"subscribe","id":1,"topics":%q}`, "book.IBM.L1"), `"op":"error"`, `"code":"invalid"`, "a grid that matches")
}
