package listener

import (
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// wanted is what subscriptions are for, all together: the gateway follows that, and nothing else. It is of the loop.
//
// What is wanted changes while the logs are followed. A node says from which entry on it selects by what it was told, so
// that of each partition is known what was published since when. A subscription that is for more than was asked for waits
// until it is, and gets what lies between from the log.
type wanted struct {
	g       *generation
	claims  map[claimed]int // how many subscriptions, and books, want what
	present *selected
	whole   bool // everything is followed, as what is wanted is more than nodes take
	// What is wanted is not in present, or less may be: the nodes are told soon.
	widens, narrows bool
	waiting         []waiter // maxHistories at most
	looks           bool     // there is a timer for them
}

// claimed is what a claim is for.
type claimed struct {
	of
	kinds client.Kinds
}

const (
	// widenPause and narrowPause are how long it is waited for other changes, before the nodes are told of one.
	widenPause  = 20 * time.Millisecond
	narrowPause = 5 * time.Second
	// claimSize is about what a selector of a claim takes, beside its texts.
	claimSize = 192
	// eras of a partition are kept.
	eras = 64
	// quiet is how much later, at most, a gateway hears of entries that no client wants.
	quiet = 10 * time.Millisecond
)

// era is a part of a partition's log that was selected in one way.
type era struct {
	after fanout.Position // what is behind it
	by    *selected
}

func newWanted(g *generation) *wanted {
	w := &wanted{g: g, claims: map[claimed]int{}, present: newSelected()}
	w.present.seal()
	w.show()
	return w
}

// claim implements fanout.Claim.
type claim struct {
	w    *wanted
	list []client.Selector
}

// join is fanout.Config.Join.
func (w *wanted) join(p topics.Pattern, f topics.Filter) fanout.Claim {
	return w.claim(interestOf(p, f, w.g.matches(), w.g.streamsRegions()))
}

func (w *wanted) claim(list []client.Selector) *claim {
	for i := range list {
		w.claims[claimOf(&list[i])]++
	}
	if !w.widens && !w.present.covers(list) {
		w.widens = true
		w.askIn(widenPause)
	}
	return &claim{w, list}
}

func claimOf(k *client.Selector) claimed { return claimed{of{k.Account, k.Symbol}, k.Kinds} }

// Size implements fanout.Claim.
func (c *claim) Size() (n int) {
	for i := range c.list {
		n += claimSize + len(c.list[i].Account) + len(c.list[i].Symbol)
	}
	return n
}

// Leave implements fanout.Claim.
func (c *claim) Leave() {
	w := c.w
	for i := range c.list {
		k := claimOf(&c.list[i])
		if w.claims[k]--; w.claims[k] > 0 {
			continue
		}
		delete(w.claims, k)
		if !w.narrows {
			w.narrows = true
			w.askIn(narrowPause)
		}
	}
}

// Since implements fanout.Claim.
func (c *claim) Since(partition int, has fanout.Position) (at fanout.Position, known bool) {
	for _, e := range slices.Backward(c.w.g.parts[partition].eras) {
		if !e.by.covers(c.list) {
			break
		}
		if at, known = e.after, true; !has.Before(at) {
			break
		}
	}
	return at, known
}

// askIn has the nodes told what is wanted, some time from now.
func (w *wanted) askIn(pause time.Duration) {
	time.AfterFunc(pause, func() { w.g.server.Post(func(*fanout.Hub) { w.ask() }) })
}

// ask tells the nodes what is wanted, if that is something else.
func (w *wanted) ask() {
	if !w.widens && !w.narrows {
		return
	}
	w.widens, w.narrows = false, false
	next, fits := w.union()
	if !fits {
		next = newSelected()
		next.add(&client.Selector{Kinds: w.g.everything()})
	}
	if w.whole == fits {
		w.whole = !fits
		w.g.l.log.Info("what is followed has changed", "everything", w.whole, "claims", len(w.claims), "allowed", wire.MaxSelectors, "bytesAllowed", wire.MaxSelectSize)
	}
	if next.same(w.present) {
		w.show()
		return
	}
	next.seal()
	w.present = next
	w.show()
	w.g.l.metrics.selections.Add(1)
	for _, p := range w.g.parts {
		p.ask(next)
	}
}

// union makes one of all that is wanted; false: that is more than nodes take. A gateway that follows everything goes on so
// until there is room to spare.
func (w *wanted) union() (s *selected, fits bool) {
	s = newSelected()
	numerator, denominator := 1, 1
	if w.whole {
		numerator, denominator = 3, 4
	}
	for k := range w.claims {
		if s.add(&client.Selector{Kinds: k.kinds, Account: k.account, Symbol: k.symbol}); !s.fits(numerator, denominator) {
			return nil, false
		}
	}
	return s, true
}

// show sets the metrics of what is followed.
func (w *wanted) show() {
	selectors, everything := uint64(len(w.present.list)), uint64(0)
	if w.whole {
		selectors, everything = 0, 1
	}
	w.g.l.metrics.selectors.Store(selectors)
	w.g.l.metrics.everything.Store(everything)
}

// everything is what the whole log has for a gateway.
func (g *generation) everything() client.Kinds {
	switch {
	case g.matches():
		return client.KindOrders | client.KindExecutions | client.KindOther
	case g.streamsRegions():
		return client.KindOrders | client.KindOther
	}
	return client.KindOrders
}

func (g *generation) matches() bool { return g.l.cfg.Client.BySymbol() }

// several reports whether an entry may have several messages: executions, or changes of a batch.
func (g *generation) several() bool { return g.matches() || g.streamsRegions() }
