package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
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

// reader is a client of books that comes back with the position it has.
type reader struct {
	name     string
	topics   []string
	gateways []*atomic.Pointer[process]
	pause    time.Duration // after each message: a slow one
	seen     []sight
	last     map[string]sight // by topic
	at       map[int]uint64   // by partition
	lineage  string
	sessions int
	fault    error
}

func (r *reader) run(ctx context.Context, done func(*reader) bool) {
	ended := func() bool { return r.fault != nil || done(r) }
	err := subscriber.Again(ctx, ended, func(n int) error {
		var commands []string
		for i, topics := range r.topics {
			resume := ""
			if r.lineage != "" {
				resume = fmt.Sprintf(`,"resume":%q`, subscriber.Position(r.lineage, r.at))
			}
			commands = append(commands, fmt.Sprintf(`{"op":"subscribe","id":%d,"topics":%q%s}`, i, topics, resume))
		}
		r.sessions++
		from, first := maps.Clone(r.at), map[string]bool{}
		return r.gateways[n%len(r.gateways)].Load().client().Talk(ctx, commands, ended, func(b []byte) error {
			err := r.take(b, from, first)
			time.Sleep(r.pause)
			return err
		})
	})
	if err != nil && r.fault == nil {
		r.fault = fmt.Errorf("it is at %v: %w", r.at, err)
	}
}

func (r *reader) take(b []byte, from map[int]uint64, first map[string]bool) error {
	var m struct {
		Op, Topic, Position, Code, Error string
		At                               json.Number
		Partition                        int
		Data                             json.RawMessage
	}
	err := json.Unmarshal(b, &m)
	if err != nil {
		r.fault = fmt.Errorf("%s: %w", b, err)
		return r.fault
	}
	switch {
	case m.Op == "message":
		var at uint64
		_, _ = fmt.Sscan(m.At.String(), &at)
		s, err := sightOf(m.Topic, at, m.Data)
		if before := r.last[m.Topic]; err == nil && first[m.Topic] && at <= before.at {
			err = fmt.Errorf("%s is at %d behind %d", m.Topic, at, before.at)
		}
		if r.fault = err; err != nil {
			return err
		}
		if !first[m.Topic] {
			first[m.Topic], s.from = true, from[m.Partition]
		}
		r.seen, r.last[m.Topic] = append(r.seen, s), s
		r.at[m.Partition] = max(r.at[m.Partition], at)
	case m.Op == "subscribed" && r.lineage == "":
		var list string
		r.lineage, list, _ = strings.Cut(m.Position, ".")
		for p, part := range strings.Split(list, ",") {
			_, text, _ := strings.Cut(part, ":")
			var at uint64
			_, r.fault = fmt.Sscan(strings.Split(text, ".")[0], &at)
			r.at[p], from[p] = at, at
		}
	case m.Op == "error" && m.Code == "ahead":
		return fmt.Errorf("the gateway is behind: %s", m.Error)
	case m.Op != "welcome" && m.Op != "subscribed":
		r.fault = fmt.Errorf("unexpected: %s", b)
	}
	return r.fault
}

// trader sends orders of all sorts for two books, one after the other.
type trader struct {
	c    *client.Client
	n    int
	open map[string][]string // ids that may rest, by symbol
	r    *rand.Rand
}

func fixMessage(fields string) []byte {
	body := strings.ReplaceAll(fields, "|", "\x01") + "\x0149=P\x0156=G\x0134=1\x0152=20261123-09:30:00\x0160=20261123-09:30:00\x01"
	m := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
	order.Seal(m)
	return m
}

func (d *trader) next() (symbol string, msg []byte) {
	d.n++
	symbol = []string{"IBM", "OIL"}[d.r.IntN(2)]
	id, side, qty := fmt.Sprintf("B-%d", d.n), 1+d.r.IntN(2), 1+d.r.IntN(50)
	price := fmt.Sprintf("%d", d.r.IntN(60)-30+10*(2*side-3))
	if symbol == "IBM" {
		price = fmt.Sprintf("%.2f", 125+0.05*float64(d.r.IntN(60)-30+10*(2*side-3)))
	}
	form := fmt.Sprintf("11=%s|55=%s|54=%d|38=%d", id, symbol, side, qty)
	if list := d.open[symbol]; len(list) > 40 && d.r.IntN(2) == 0 || len(list) > 0 && d.r.IntN(4) == 0 {
		i := d.r.IntN(len(list))
		orig := list[i]
		if d.r.IntN(3) == 0 {
			list[i] = id
			return symbol, fixMessage(fmt.Sprintf("35=G|41=%s|%s|40=2|44=%s", orig, form, price))
		}
		d.open[symbol] = slices.Delete(list, i, i+1)
		return symbol, fixMessage(fmt.Sprintf("35=F|41=%s|%s", orig, form))
	}
	switch d.r.IntN(8) {
	case 0:
		return symbol, fixMessage("35=D|" + form + "|40=1")
	case 1:
		return symbol, fixMessage("35=D|" + form + "|40=2|59=3|44=" + price)
	case 2:
		form += fmt.Sprintf("|111=%d", 1+d.r.IntN(qty))
	}
	d.open[symbol] = append(d.open[symbol], id)
	return symbol, fixMessage("35=D|" + form + "|40=2|44=" + price)
}

// TestGridBooksOverDeaths: primaries, other nodes and gateways are killed while orders of all sorts come and a book is
// halted and opened. Every ladder that any client gets, wherever it resumes and however slow it is, is the book after the
// entry that it names, as a naive reader of the log has it; the first after a resumption is also the book at the position
// that was resumed from, or later; the last is the book at the end.
func TestGridBooksOverDeaths(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	g := testgrid.Matching(t)
	c := clientOf(t, g)
	clients := []string{"--websocket-clients", booksFile(t, "book.>")}
	var a, b atomic.Pointer[process]
	a.Store(startGateway(t, g, "127.0.0.1:0", clients...))
	wanted := append([]string{"--websocket-follow", "wanted"}, clients...) // the second follows what touches those books only
	b.Store(startGateway(t, g, "127.0.0.1:0", wanted...))

	load, stop := make(chan int), atomic.Bool{}
	go func() {
		d := &trader{c: c, open: map[string][]string{}, r: rand.New(rand.NewPCG(22, 86))}
		for !stop.Load() && ctx.Err() == nil {
			_, msg := d.next()
			if _, err := c.Submit(ctx, msg); err != nil {
				t.Errorf("order %d: %v", d.n, err)
				break
			}
			if d.n%200 == 0 {
				for _, state := range []client.BookState{client.BookHalted, client.BookOpen} {
					var refused *client.MarketError // it is in that state: the answer before was lost
					if _, _, err := c.Market(ctx, client.MarketOp{Symbol: "IBM", State: state, Reason: "test"}); err != nil && !errors.As(err, &refused) {
						t.Errorf("market: %v", err)
					}
					time.Sleep(20 * time.Millisecond)
				}
			}
		}
		load <- d.n
	}()
	var books atomic.Pointer[map[string]*naive]
	done := func(r *reader) bool {
		all := books.Load()
		if all == nil {
			return false
		}
		for _, s := range r.last {
			if s.at = 1 << 62; judge(*all, &s) != nil {
				return false
			}
		}
		return len(r.last) > 0
	}
	var readers []*reader
	var running sync.WaitGroup
	for i := range 6 {
		r := &reader{name: fmt.Sprint("reader ", i), topics: [][]string{{"book.IBM.*", "book.OIL.L2"}, {"book.IBM.L1"}, {"book.OIL.>"}}[i%3], gateways: []*atomic.Pointer[process]{&a, &b},
			last: map[string]sight{}, at: map[int]uint64{}}
		if i%2 == 1 {
			slices.Reverse(r.gateways)
		}
		if i == 3 {
			r.pause = 60 * time.Millisecond
		}
		readers = append(readers, r)
		running.Go(func() { r.run(ctx, done) })
	}
	time.Sleep(500 * time.Millisecond)
	killPrimary(t, c, g)
	time.Sleep(300 * time.Millisecond)
	killGateways(t, g, map[*atomic.Pointer[process]][]string{&a: clients, &b: wanted})
	waitForCopies(t, c)
	time.Sleep(300 * time.Millisecond)
	stop.Store(true)
	n := <-load
	all := naiveBooks(t, ctx, c, "IBM", "OIL")
	books.Store(&all)
	running.Wait()
	checkSights(t, all, readers)
	t.Logf("%d orders; %d and %d ladders by the log", n, len(all["IBM"].states), len(all["OIL"].states))
}

// killGateways kills one gateway after the other and starts each again with its arguments.
func killGateways(t *testing.T, g *testgrid.Grid, all map[*atomic.Pointer[process]][]string) {
	t.Helper()
	for at, args := range all {
		at.Load().kill()
		time.Sleep(300 * time.Millisecond)
		at.Store(startGateway(t, g, "127.0.0.1:0", args...))
	}
}

// checkSights judges what the clients got, and the judge.
func checkSights(t *testing.T, all map[string]*naive, readers []*reader) {
	t.Helper()
	total, sessions, moved, changed := 0, 0, 0, 0
	for _, r := range readers {
		if r.fault != nil {
			t.Errorf("%s: %v", r.name, r.fault)
		}
		sessions += r.sessions
		for i := range r.seen {
			total++
			if err := judge(all, &r.seen[i]); err != nil {
				t.Errorf("%s: %v", r.name, err)
				break
			}
			// The judge sees a ladder that is one state late or early, and a wrong quantity.
			s := r.seen[i]
			b := all[strings.Split(s.topic, ".")[1]]
			for k := range b.states {
				if b.states[k].entry == s.at && k > 0 && s.from < s.at {
					late := s
					late.at--
					if judge(all, &late) != nil {
						moved++
					}
				}
			}
			if s.shown.Bids = slices.Clone(s.shown.Bids); len(s.shown.Bids) > 0 {
				s.shown.Bids[0] += "1"
				if judge(all, &s) == nil {
					t.Errorf("the judge takes a ladder with %q", s.shown.Bids[0])
				}
				changed++
			}
		}
	}
	if total < 300 || sessions < 2*len(readers) || moved < 100 || changed < 100 {
		t.Errorf("%d ladders, %d sessions; the judge refuses %d that are one state late, %d with another quantity: the test shows nothing", total, sessions, moved, changed)
	}
	t.Logf("%d ladders of %d clients, %d sessions; %d were moved by one state and %d changed, and refused", total, len(readers), sessions, moved, changed)
}

// booksFile is a file of one client.
func booksFile(t *testing.T, topics ...string) string {
	t.Helper()
	dir := t.TempDir()
	list, _ := json.Marshal(topics)
	file := filepath.Join(dir, "clients.json")
	for name, text := range map[string]string{"all": testToken, "clients.json": fmt.Sprintf(`{"clients": [{"name": "all", "tokenFile": %q, "topics": %s}]}`, filepath.Join(dir, "all"), list)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}
