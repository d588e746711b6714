package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/subscriber"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// watcher is a client of executions that comes back with the last position it got.
type watcher struct {
	name, token, topics string
	gateways            []*atomic.Pointer[process]
	from                string // position before the first
	at                  map[int]string
	lineage             string
	got                 map[int][]string // id, by partition
	account             map[string]bool
	text                strings.Builder // of all messages
	resumed             int
	fault               error
}

func (w *watcher) run(ctx context.Context, done func(*watcher) bool) {
	ended := func() bool { return w.fault != nil || done(w) }
	err := subscriber.Again(ctx, ended, func(n int) error {
		w.resumed++
		command := fmt.Sprintf(`{"op":"subscribe","id":7,"topics":%q,"resume":%q}`, w.topics, subscriber.Position(w.lineage, w.at))
		return subscriber.Gateway{Address: w.gateways[n%len(w.gateways)].Load().addr, Token: w.token}.Talk(ctx, []string{command}, ended, w.take)
	})
	if err != nil && w.fault == nil {
		w.fault = fmt.Errorf("it is at %v: %w", w.at, err)
	}
}

func (w *watcher) take(b []byte) error {
	var m struct {
		Op, At, Code, Error string
		Partition           int
		Data                struct{ ID, Account string }
	}
	if w.fault = json.Unmarshal(b, &m); w.fault != nil {
		return w.fault
	}
	switch {
	case m.Op == "message":
		if want := fmt.Sprintf("p%d/%s", m.Partition, m.At); m.Data.ID != want {
			w.fault = fmt.Errorf("execution %s is at %s", m.Data.ID, want)
		}
		w.at[m.Partition] = m.At
		w.got[m.Partition] = append(w.got[m.Partition], m.Data.ID)
		w.account[m.Data.Account] = true
		w.text.Write(b)
	case m.Op == "error" && m.Code == "ahead":
		return fmt.Errorf("the gateway is behind: %s", m.Error)
	case m.Op != "welcome" && m.Op != "subscribed":
		w.fault = fmt.Errorf("unexpected: %s", b)
	}
	return w.fault
}

// trade is a FIX message of an order for IBM.
func trade(id, account string, side int, price string) []byte {
	body := fmt.Sprintf("35=D\x0149=P\x0156=G\x0134=1\x0152=20261123-09:30:00\x0160=20261123-09:30:00\x0111=%s\x011=%s\x0155=IBM\x0154=%d\x0138=10\x0140=2\x0144=%s\x01", id, account, side, price)
	m := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
	order.Seal(m)
	return m
}

// twoClients is a file of a client that may watch everything, and one that may watch the executions of one account.
func twoClients(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "clients.json")
	text := fmt.Sprintf(`{"clients": [{"name": "all", "tokenFile": %q, "topics": ["orders.>", "executions.>"]}, {"name": "desk", "tokenFile": %q, "topics": ["executions.MINE.>"]}]}`,
		filepath.Join(dir, "all"), filepath.Join(dir, "desk"))
	for name, text := range map[string]string{"all": testToken, "desk": testToken + "-desk", "clients.json": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// TestGridExecutionsOverDeaths: gateways, primaries and other nodes are killed while two accounts trade. Each client gets
// each execution it may see once, in the order of its partition, wherever it resumes; one that may watch one account gets
// its side of each trade, and nothing of the other.
func TestGridExecutionsOverDeaths(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	g := testgrid.Matching(t)
	c := clientOf(t, g)
	executed := &executedOf{c: c}
	clients := []string{"--websocket-clients", twoClients(t)}
	small := append([]string{"--websocket-backlog", "0", "--websocket-ring-bytes", "1048576"}, clients...)
	var a, b atomic.Pointer[process]
	a.Store(startGateway(t, g, "127.0.0.1:0", clients...))
	b.Store(startGateway(t, g, "127.0.0.1:0", small...))
	lineage := lineageOf(t, ctx, a.Load())

	load, stop := make(chan int), atomic.Bool{}
	go func() {
		n := 0
		for ; !stop.Load() && ctx.Err() == nil; n++ {
			account, side := "MINE", 1
			if n%2 == 1 {
				account, side = "THEIRS", 2
			}
			if _, err := c.Submit(ctx, trade(fmt.Sprintf("%s-%d", account, n), account, side, "125.00")); err != nil {
				t.Errorf("order %d: %v", n, err)
				break
			}
			time.Sleep(time.Millisecond)
		}
		load <- n
	}()
	var want atomic.Pointer[map[int][]string]
	done := func(w *watcher) bool {
		all := want.Load()
		if all == nil {
			return false
		}
		for p, ids := range *all {
			of := ids
			if w.topics != "executions.>" {
				of = executed.of(t, ctx, "MINE", p)
			}
			if len(of) > 0 && (len(w.got[p]) == 0 || w.got[p][len(w.got[p])-1] != of[len(of)-1]) {
				return false
			}
		}
		return true
	}
	var running sync.WaitGroup
	var watchers []*watcher
	for i := range 6 {
		w := &watcher{name: fmt.Sprint("watcher ", i), token: testToken, topics: "executions.>", gateways: []*atomic.Pointer[process]{&a, &b}, lineage: lineage,
			at: map[int]string{}, got: map[int][]string{}, account: map[string]bool{}}
		for p := range c.Table() {
			w.at[p] = "0"
		}
		if i%2 == 1 {
			slices.Reverse(w.gateways)
		}
		if i >= 4 {
			w.token, w.topics = testToken+"-desk", "executions.MINE.>"
		}
		watchers = append(watchers, w)
		running.Go(func() { w.run(ctx, done) })
	}
	killPrimary(t, c, g)
	time.Sleep(300 * time.Millisecond)
	for at, args := range map[*atomic.Pointer[process]][]string{&a: clients, &b: small} {
		at.Load().kill()
		time.Sleep(200 * time.Millisecond)
		at.Store(startGateway(t, g, "127.0.0.1:0", args...))
	}
	waitForCopies(t, c)
	stop.Store(true)
	n := <-load
	logged := map[int][]string{}
	fills := 0
	for _, p := range c.Table() {
		_, err := c.ReadExecutions(ctx, p.ID, "", 1, func(e client.Execution) error {
			if e.Kind <= client.ExecTriggered {
				logged[int(p.ID)] = append(logged[int(p.ID)], e.ID())
			}
			if e.Kind == client.ExecFilled {
				fills++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want.Store(&logged)
	running.Wait()
	resumed := 0
	for _, w := range watchers {
		if w.fault != nil {
			t.Errorf("%s: %v", w.name, w.fault)
			continue
		}
		resumed += w.resumed
		for p, ids := range logged {
			if w.topics != "executions.>" {
				ids = executed.of(t, ctx, "MINE", p)
				if strings.Contains(w.text.String(), "THEIRS") || len(w.account) != 1 {
					t.Errorf("%s may watch MINE, and got something of THEIRS", w.name)
				}
			}
			if fmt.Sprint(w.got[p]) != fmt.Sprint(ids) {
				t.Errorf("%s got %d executions of p%d, the log has %d", w.name, len(w.got[p]), p, len(ids))
			}
		}
	}
	if fills < n/2 || resumed < 2*len(watchers) {
		t.Errorf("%d fills of %d orders, %d sessions of %d clients: the test shows nothing", fills, n, resumed, len(watchers))
	}
	t.Logf("%d orders, %d fills, %d clients, %d sessions", n, fills, len(watchers), resumed)
}

// executedOf reads the executions of accounts, by the orders themselves, once.
type executedOf struct {
	c     *client.Client
	mu    sync.Mutex
	known map[string][]string
}

// of returns the executions of an account in a partition.
func (x *executedOf) of(t *testing.T, ctx context.Context, of string, p int) []string {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	key := fmt.Sprint(of, p)
	if list, ok := x.known[key]; ok {
		return list
	}
	account := map[uint64]string{}
	part := x.c.Table()[p].ID
	if _, err := x.c.ReadLog(ctx, part, "", 1, func(e client.LogEntry) error {
		if e.Kind == order.KindExecute {
			account[e.Seq] = string(order.Account(e.Bytes))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	list, all := []string{}, 0
	if _, err := x.c.ReadExecutions(ctx, part, "", 1, func(e client.Execution) error {
		if e.Kind <= client.ExecTriggered {
			all++
			if account[e.Order] == of {
				list = append(list, e.ID())
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if all > 0 && len(list) == 0 {
		t.Errorf("no execution is of account %s", of)
	}
	if x.known == nil {
		x.known = map[string][]string{}
	}
	x.known[key] = list
	return list
}

// lineageOf asks a gateway for the number in front of its positions.
func lineageOf(t *testing.T, ctx context.Context, at *process) string {
	t.Helper()
	lineage := ""
	err := at.client().Talk(ctx, []string{`{"op":"subscribe","id":1,"topics":"executions.>"}`}, func() bool { return lineage != "" }, func(b []byte) error {
		var m struct{ Op, Position string }
		err := json.Unmarshal(b, &m)
		lineage, _, _ = strings.Cut(m.Position, ".")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lineage
}
