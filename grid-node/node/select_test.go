package node

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// chooser is a follower that wants something else all the time.
type chooser struct {
	mu    sync.Mutex
	said  []client.Selection // by number, from 1
	from  []chosenFrom
	got   map[uint64]uint64 // hash by entry
	after client.Position
	at    map[string]bool
	err   error
}

// chosenFrom is from where on a selection holds.
type chosenFrom struct {
	seq    uint64
	number uint32
}

var choices = []client.Selection{
	{},
	{Selectors: []client.Selector{{Kinds: client.KindOrders}}},
	{Selectors: []client.Selector{{Kinds: client.KindOrders, Account: "ACCT", Symbol: "INTC"}, {Kinds: client.KindOrders, Account: "ACC"}}},
	{Selectors: []client.Selector{{Kinds: client.KindOther}}},
	{Selectors: []client.Selector{{Kinds: client.KindOrders | client.KindOther}}},
	{Selectors: []client.Selector{{Kinds: client.KindOrders, Symbol: "INT"}, {Kinds: client.KindExecutions}}},
}

// takes reports whether a selection of choices takes an entry.
func takes(s *client.Selection, entry []byte) bool {
	for _, k := range s.Selectors {
		if order.Kind(entry[4]).IsOrder() {
			if k.Kinds&client.KindOrders != 0 && (k.Account == "" || k.Account == "ACCT") && (k.Symbol == "" || k.Symbol == "INTC") {
				return true
			}
		} else if k.Kinds&client.KindOther != 0 {
			return true
		}
	}
	return false
}

func (x *chooser) run(ctx context.Context, f *client.Follower) {
	defer f.Close() //nolint:errcheck // it never fails
	for {
		b, err := f.Next(ctx)
		x.mu.Lock()
		if err != nil {
			if ctx.Err() == nil {
				x.err = err
			}
			x.mu.Unlock()
			return
		}
		if n := len(x.from); b.Selection != 0 && (n == 0 || x.from[n-1].number != b.Selection) {
			x.from = append(x.from, chosenFrom{b.SelectedFrom, b.Selection})
		}
		for _, e := range b.Entries {
			x.got[e.Seq] = order.Hash(e.Bytes)
		}
		x.after, x.at[b.Address] = b.Through, true
		x.mu.Unlock()
	}
}

// What a stream sends changes at the entry that the node tells, while orders flow and primaries are killed: each entry is
// there if, and only if, what was said for it takes it.
func TestSelectionsHoldFromTheEntryThatIsTold(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	c := g.client()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var list []*chooser
	for i := range 3 {
		rng := rand.New(rand.NewPCG(22, uint64(i)))
		x := &chooser{got: map[uint64]uint64{}, at: map[string]bool{}, said: []client.Selection{choices[0]}}
		list = append(list, x)
		f, err := g.client().Follow(ctx, client.FollowOptions{Window: 32 << 10, Selection: &choices[0]})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { x.run(ctx, f) })
		all.Go(func() {
			for ctx.Err() == nil {
				s := choices[rng.IntN(len(choices))]
				s.Quiet = time.Millisecond
				x.mu.Lock()
				n, err := f.Select(s)
				if x.said = append(x.said, s); err != nil || int(n) != len(x.said) {
					x.err = fmt.Errorf("selection %d has number %d, %w", len(x.said), n, err)
				}
				x.mu.Unlock()
				time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
			}
		})
	}
	acked, stop := g.load(c)
	for round := range 2 {
		before := acked.Load()
		g.until(func() bool { return acked.Load() > before+1000 }, "no orders flow")
		g.kill(round % 2)
		g.until(func() bool { return acked.Load() > before+1500 }, "no orders flow")
		g.start(round % 2)
		g.ready()
	}
	stop()
	g.settled()
	log := g.logHashes(0)
	for i, x := range list {
		g.until(func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			return x.after.Seq >= uint64(len(log)) || x.err != nil
		}, "follower %d is not at the end", i)
	}
	cancel()
	all.Wait()
	var entries [][]byte
	g.onLoop(0, func() {
		st := g.nodes[0].data.parts.list[0].store
		for seq := uint64(1); seq <= uint64(len(log)); seq++ {
			entries = append(entries, append([]byte(nil), st.Read(seq)...))
		}
	})
	for i, x := range list {
		if x.err != nil {
			t.Errorf("follower %d: %v", i, x.err)
			continue
		}
		if len(x.from) < 5 || len(x.got) == 0 || len(x.got) == len(log) || len(x.at) != 2 {
			t.Errorf("follower %d had %d selections, %d entries of %d, at %d replicas: the test shows nothing", i, len(x.from), len(x.got), len(log), len(x.at))
		}
		k := -1
		for seq := uint64(1); seq <= uint64(len(log)); seq++ {
			for k+1 < len(x.from) && x.from[k+1].seq <= seq {
				k++
			}
			hash, got := x.got[seq]
			if want := k >= 0 && takes(&x.said[x.from[k].number-1], entries[seq-1]); got != want || got && hash != log[seq-1] {
				t.Fatalf("follower %d: entry %d is there: %v, want %v by selection %+v", i, seq, got, want, x.from[max(k, 0)])
			}
		}
	}
}

// A stream that begins far behind passes over entries in its turn only; one that is near the end needs none.
func TestStreamsThatBeginFarBehindWaitForTheirTurn(t *testing.T) {
	g := newGrid(t, 1, 1).up()
	c := g.client()
	if err := burst(t, c, "past", 3*passEntries); err != nil {
		t.Fatal(err)
	}
	passes := g.nodes[0].data.clients.follows.passes
	all := 0
	for passes.tryTake() {
		all++
	}
	none := client.Selection{Selectors: []client.Selector{{Kinds: client.KindOrders, Account: "NONE"}}, Quiet: time.Millisecond}
	behind := taped(t.Context(), g.client(), client.FollowOptions{Selection: &none})
	g.until(func() (begun bool) {
		g.onLoop(0, func() { begun = len(g.nodes[0].data.parts.list[0].inc.followers) == 1 })
		return begun
	}, "the stream that is behind does not begin") // so it is the first
	live := taped(t.Context(), g.client(), client.FollowOptions{Selection: &none, AtEnd: true})
	g.until(func() bool { return live.seq() > 0 }, "nothing comes")
	for range 50 {
		before := live.seq()
		submit2(t, g, 1)
		g.until(func() bool { return live.seq() > before }, "a stream at the end waits")
	}
	var w *follower
	g.onLoop(0, func() { w = g.nodes[0].data.parts.list[0].inc.followers[0] })
	if held := w.log.Held(); held != 0 {
		t.Errorf("a stream without a turn holds the log from entry %d on", held)
	}
	if behind.seq() != 0 || live.failed() != nil {
		t.Errorf("a stream without a turn is at entry %d, %v", behind.seq(), live.failed())
	}
	examined := func() (n uint64) {
		g.onLoop(0, func() { n = g.nodes[0].data.clients.follows.stats.Examined })
		return n
	}
	if n := examined(); w == nil || n > 3*passEntries {
		t.Errorf("%d entries were looked at", n)
	}
	for range all {
		passes.give()
	}
	g.until(func() bool { return behind.seq() >= live.seq() || behind.failed() != nil }, "the stream is at entry %d: %v", func() any { return behind.seq() }, func() any { return behind.failed() })
}

// What a stream is asked to send is counted as a part of what its client may have, and a change for a stream without
// StreamBySelect ends the connection.
func TestSelectionsAreBounded(t *testing.T) {
	g := newGrid(t, 1, 1).up()
	r := g.rawClient(0)
	send := func(frame []byte) wire.Type {
		t.Helper()
		if _, err := r.Write(frame); err != nil {
			t.Fatal(err)
		}
		return wire.FrameType(r.next())
	}
	if got := send(wire.AppendStream(nil, 0, &wire.Stream{ReqID: 1, Window: 1 << 10, What: wire.StreamBySelect})); got != wire.TypeStreamPart {
		t.Fatalf("a stream begins with %s", got)
	}
	if n, used := g.streamsOf(0); n != 1 || used != 1<<10+selectBytes {
		t.Errorf("%d streams are counted with %d bytes", n, used)
	}
	if got := send(wire.AppendStreamSelect(nil, 0, &wire.StreamSelect{ReqID: 1, Version: 9, QuietMs: 1})); got != wire.TypeStreamSelected {
		t.Errorf("a selection is answered by %s", got)
	}
	_ = r.next() // the part behind
	if got := send(wire.AppendStream(nil, 0, &wire.Stream{ReqID: 2, FromSeq: 1, Window: 1 << 10, What: wire.StreamOrders, Accounts: [][]byte{[]byte("A")}})); got != wire.TypeStreamPart {
		t.Fatalf("a stream begins with %s", got)
	}
	ended := wire.AppendStreamSelect(nil, 0, &wire.StreamSelect{ReqID: 3, Version: 1, QuietMs: 1}) // of a stream that is no more
	for got := send(append(ended, wire.AppendStreamSelect(nil, 0, &wire.StreamSelect{ReqID: 2, Version: 1, QuietMs: 1})...)); got != wire.TypeGoaway; got = wire.FrameType(r.next()) {
		if got != wire.TypeStreamPart {
			t.Fatalf("got %s, want StreamPart or Goaway", got)
		}
	}
}

// What an order did that a stream does not want costs no allocation, however it is selected.
func TestPassingOverExecutionsAllocatesNothing(t *testing.T) {
	g := newGrid(t, 1, 1)
	g.base.Execution = &Execution{Instruments: []machine.Instrument{{Instrument: match.Instrument{Tick: 1, Lot: 1, High: 100_000, Ref: 2135}, Symbol: "INTC", PriceDigits: 2, State: match.Open}}}
	g.base.MemoryLimit = 1 << 30
	g.up()
	c := g.client()
	const orders = 2000
	for i := range orders {
		m := fix(fmt.Sprintf("X-%d", i))
		if i%2 == 1 {
			m = bytes.Replace(m, []byte("\x0154=1\x01"), []byte("\x0154=2\x01"), 1)
			order.Seal(m)
		}
		if _, err := c.Submit(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	w, last := &follower{}, uint64(0)
	g.onLoop(0, func() {
		p := g.nodes[0].data.parts.list[0]
		log, err := p.inc.feed.Reader("passer")
		if err != nil {
			t.Error(err)
			return
		}
		w.log, w.executed, last = log, p.newExecutedTape(1), p.store.Committed()
		w.executed.log = log
	})
	begin := *w.executed.tape
	for _, by := range []string{"account", "symbol", "all"} {
		w.sel = selectNone(300, by)
		w.next = last + 1
		pass := func() {
			if w.next > last {
				w.next, *w.executed.tape = 1, begin
			}
			if w.matches(w.log.Read(w.next)) {
				t.Fatalf("entry %d is selected", w.next)
			}
			w.pass()
		}
		for range last {
			pass()
		}
		if n := testing.AllocsPerRun(int(last), pass); n != 0 {
			t.Errorf("by %s: %v allocations", by, n)
		}
		began := time.Now()
		for range 20 * last {
			pass()
		}
		t.Logf("by %s: %d ns an entry, half of which traded", by, time.Since(began)/time.Duration(20*last))
	}
	w.sel = selectionOf(wire.AppendStreamSelect(nil, 0, &wire.StreamSelect{QuietMs: 1, Selectors: []wire.Selector{{What: 1 << match.Filled, Account: []byte("ACCT")}}}))
	filled := 0
	for w.next, *w.executed.tape = 1, begin; w.next <= last; w.pass() {
		if w.matches(w.log.Read(w.next)) {
			filled++
		}
	}
	if filled != orders/2 {
		t.Errorf("%d entries have fills of the account, want %d", filled, orders/2)
	}
}
