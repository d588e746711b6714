package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/scrape"
)

// visit is a subscription without a position to resume from, and what it got until it left.
type visit struct {
	topics, position string
	got              []string // ids
}

// visits subscribes for a moment again and again, to what no other client of the gateway wants, so that what the gateway
// follows changes all the time.
func visits(ctx context.Context, at *atomic.Pointer[process], list []string, stop *atomic.Bool) (all []visit) {
	for n := 0; !stop.Load() && ctx.Err() == nil; n++ {
		v := visit{topics: list[n%len(list)]}
		if v.stay(ctx, at.Load()); v.position == "" {
			time.Sleep(20 * time.Millisecond) // the gateway is not there
		}
		all = append(all, v)
	}
	return all
}

func (v *visit) stay(ctx context.Context, at *process) {
	ctx, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
	defer cancel()
	command := fmt.Sprintf(`{"op":"subscribe","id":3,"topics":%q}`, v.topics)
	_ = at.client().Talk(ctx, []string{command}, func() bool { return false }, func(b []byte) error {
		var m struct {
			Op, Position string
			Data         struct{ ID string }
		}
		switch err := json.Unmarshal(b, &m); {
		case err != nil:
			return err
		case m.Op == "subscribed":
			v.position = m.Position
		case m.Op == "message":
			v.got = append(v.got, m.Data.ID)
		case m.Op != "welcome":
			v.got = append(v.got, string(b)) // neither a gap nor an error is expected
		}
		return nil
	}) // its time ends, or the gateway is killed
}

// check compares what it got with the executions of an account that are behind its position: it left some day, so it has the
// first of them.
func (v *visit) check(t *testing.T, logged []string) {
	t.Helper()
	_, at, _ := strings.Cut(v.position, ".p0:")
	var seq, index uint64
	if _, err := fmt.Sscanf(at, "%d.%d", &seq, &index); err != nil {
		if _, err := fmt.Sscanf(at, "%d", &seq); err != nil {
			t.Errorf("position %q: %v", v.position, err)
			return
		}
	}
	for len(logged) > 0 {
		var s, n uint64
		if _, err := fmt.Sscanf(logged[0], "p0/%d.%d", &s, &n); err != nil {
			t.Fatal(err)
		}
		if s > seq || s == seq && n > index {
			break
		}
		logged = logged[1:]
	}
	if len(v.got) > len(logged) || !slices.Equal(v.got, logged[:len(v.got)]) {
		t.Errorf("%s behind %s: got %.300s, the log has %.300s", v.topics, v.position, fmt.Sprint(v.got), fmt.Sprint(logged[:min(len(logged), len(v.got)+2)]))
	}
}

// TestGridWantedOverDeaths: gateways that follow only what clients want, whose wants change all the time. Primaries and
// gateways are killed while three accounts trade; each client gets each execution of its account once, wherever it
// resumes, and one that comes gets those behind the position that it is told.
func TestGridWantedOverDeaths(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	g := testgrid.Matching(t, "--partitions", "1")
	c := clientOf(t, g)
	executed := &executedOf{c: c}
	args := []string{"--websocket-clients", twoClients(t), "--websocket-follow", "wanted", "--websocket-ring-bytes", "1048576"}
	var a, b atomic.Pointer[process]
	a.Store(startGateway(t, g, "127.0.0.1:0", args...))
	b.Store(startGateway(t, g, "127.0.0.1:0", args...))
	lineage := lineageOf(t, ctx, a.Load())

	accounts := []string{"MINE", "THEIRS", "OTHER", "NOBODY-ASKS"}
	load, stop, ended := make(chan int), atomic.Bool{}, atomic.Bool{}
	go func() {
		n := 0
		for ; !stop.Load() && ctx.Err() == nil; n++ {
			account, side := accounts[n%len(accounts)], 1+n%2
			if _, err := c.Submit(ctx, trade(fmt.Sprintf("%s-%d", account, n), account, side, "125.00")); err != nil {
				t.Errorf("order %d: %v", n, err)
				break
			}
			time.Sleep(time.Millisecond)
		}
		load <- n
	}()
	done := func(w *watcher) bool {
		if !ended.Load() {
			return false
		}
		of := executed.of(t, ctx, strings.Split(w.topics, ".")[1], 0)
		return len(w.got[0]) > 0 && w.got[0][len(w.got[0])-1] == of[len(of)-1]
	}
	var running sync.WaitGroup
	var watchers []*watcher
	for i := range 4 {
		w := &watcher{name: fmt.Sprint("watcher ", i), token: testToken, topics: "executions." + accounts[i/2] + ".>", gateways: []*atomic.Pointer[process]{&a, &b}, lineage: lineage,
			at: map[int]string{0: "0"}, got: map[int][]string{}, account: map[string]bool{}}
		if i%2 == 1 {
			slices.Reverse(w.gateways)
		}
		watchers = append(watchers, w)
		running.Go(func() { w.run(ctx, done) })
	}
	var seen [2][]visit
	for i, at := range []*atomic.Pointer[process]{&a, &b} {
		running.Go(func() { seen[i] = visits(ctx, at, []string{"executions.OTHER.>", "executions.OTHER.IBM.*"}, &stop) })
	}
	time.Sleep(500 * time.Millisecond)
	killPrimary(t, c, g)
	time.Sleep(500 * time.Millisecond)
	for _, at := range []*atomic.Pointer[process]{&a, &b} {
		at.Load().kill()
		time.Sleep(200 * time.Millisecond)
		at.Store(startGateway(t, g, "127.0.0.1:0", args...))
	}
	waitForCopies(t, c)
	time.Sleep(500 * time.Millisecond)
	stop.Store(true)
	n := <-load
	ended.Store(true)
	running.Wait()
	for _, w := range watchers {
		if w.fault != nil {
			t.Errorf("%s: %v", w.name, w.fault)
		} else if want := executed.of(t, ctx, strings.Split(w.topics, ".")[1], 0); !slices.Equal(w.got[0], want) {
			t.Errorf("%s got %d executions of %s, the log has %d", w.name, len(w.got[0]), w.topics, len(want))
		}
	}
	came, got := 0, 0
	for _, v := range slices.Concat(seen[0], seen[1]) {
		if v.position != "" {
			came, got = came+1, got+len(v.got)
			v.check(t, executed.of(t, ctx, "OTHER", 0))
		}
	}
	if came < 10 || got < 20 {
		t.Errorf("%d came for a moment and got %d executions: the test shows nothing", came, got)
	}
	examined, sent := 0.0, 0.0
	for _, url := range g.HTTP {
		page, err := scrape.Get(ctx, http.DefaultClient, strings.TrimPrefix(url, "http://"))
		if err != nil {
			continue // it was killed
		}
		examined, sent = examined+page.Total("ordergrid_node_follow_examined_entries_total"), sent+page.Total("ordergrid_node_follow_sent_entries_total")
	}
	if examined == 0 || sent > 16 { // a gateway that begins asks where the log ends, by a stream of everything
		t.Errorf("the nodes looked at %v entries for the gateways and sent %v, want a few at most: no client asked for orders", examined, sent)
	}
	t.Logf("%d orders, %d who came for a moment got %d executions", n, came, got)
}

// TestGridWantedLast: a client that begins with its last messages gets those of the log, though no client wanted them.
func TestGridWantedLast(t *testing.T) {
	g := testgrid.Run(t)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, RequestTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it never fails
	submit(t, c, "BEFORE", 50)
	at := startGateway(t, g, "127.0.0.1:0", "--websocket-follow", "wanted")
	submit(t, c, "AFTER", 50)
	_, ends := orders(t, c)
	for p, seq := range ends { // what comes while it subscribes is new
		read := regexp.MustCompile(fmt.Sprintf(`\nordergrid_stream_read_sequence{partition="p%d"} (\d+)\n`, p))
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if m := read.FindStringSubmatch(metricsOf(t, at)); m != nil {
				if n, err := strconv.ParseUint(m[1], 10, 64); err == nil && n >= seq {
					break
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("entry %d of p%d is not looked at", seq, p)
			}
		}
	}
	w, _, err := websocket.Dial(t.Context(), "ws://"+at.addr+"/stream", &websocket.DialOptions{Subprotocols: []string{"ordergrid.json.v1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.CloseNow() //nolint:errcheck // it may be closed
	for _, text := range []string{`{"op":"login","token":"` + testToken + `"}`, `{"op":"subscribe","id":1,"topics":"orders.>","last":70}`} {
		if err := w.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for live := false; !live || len(ids) < 80; {
		_, b, err := w.Read(t.Context())
		var m struct {
			Op   string
			Data struct{ ClOrdID string }
		}
		if err != nil || json.Unmarshal(b, &m) != nil {
			t.Fatalf("%s: %v", b, err)
		}
		switch m.Op {
		case "message":
			ids = append(ids, m.Data.ClOrdID)
		case "live":
			live = true
			if len(ids) != 70 {
				t.Fatalf("live behind %d messages, want 70", len(ids))
			}
			submit(t, c, "THEN", 10)
		case "gap", "error":
			t.Fatalf("%s", b)
		}
	}
	slices.Sort(ids)
	if u := slices.Compact(slices.Clone(ids)); len(u) != 80 {
		t.Errorf("%d different orders of %d", len(u), len(ids))
	}
	for prefix, want := range map[string]int{"BEFORE": 20, "AFTER": 50, "THEN": 10} {
		n := 0
		for _, id := range ids {
			if strings.HasPrefix(id, prefix) {
				n++
			}
		}
		if n != want {
			t.Errorf("%d orders begin with %s, want %d", n, prefix, want)
		}
	}
}
