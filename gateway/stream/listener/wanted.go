package listener

import (
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
)

// wanted is what subscriptions are for, all together: the gateway follows that, and nothing else. It is of the loop.
//
// What is wanted changes while the logs are followed. A node says from which entry on it selects by what it was told, so
// that of each partition is known what was published since when. A subscription that is for more than was asked for waits
// until it is, and gets what lies between from the log.
type wanted struct {
	g       *generation
	claims  map[of]map[client.Kinds]int // how many subscriptions, and books, want what
	present *selected
	// What is wanted is not in present, or less may be: the nodes are told soon.
	widens, narrows bool
	waiting         []*server.Held
}

const (
	// widenPause and narrowPause are how long it is waited for other changes, before the nodes are told of one.
	widenPause  = 20 * time.Millisecond
	narrowPause = 5 * time.Second
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
	w := &wanted{g: g, claims: map[of]map[client.Kinds]int{}, present: newSelected()}
	w.present.seal()
	return w
}

// claim implements fanout.Claim.
type claim struct {
	w    *wanted
	list []client.Selector
}

// join is fanout.Config.Join.
func (w *wanted) join(p topics.Pattern, f topics.Filter) fanout.Claim {
	return w.claim(interestOf(p, f, w.g.matches()))
}

func (w *wanted) claim(list []client.Selector) *claim {
	for i := range list {
		k := &list[i]
		at := of{k.Account, k.Symbol}
		if w.claims[at] == nil {
			w.claims[at] = map[client.Kinds]int{}
		}
		w.claims[at][k.Kinds]++
	}
	if !w.widens && !w.present.covers(list) {
		w.widens = true
		w.askIn(widenPause)
	}
	return &claim{w, list}
}

// Leave implements fanout.Claim.
func (c *claim) Leave() {
	w := c.w
	for i := range c.list {
		k := &c.list[i]
		at := of{k.Account, k.Symbol}
		if w.claims[at][k.Kinds]--; w.claims[at][k.Kinds] > 0 {
			continue
		}
		if delete(w.claims[at], k.Kinds); len(w.claims[at]) == 0 {
			delete(w.claims, at)
		}
		if !w.narrows {
			w.narrows = true
			w.askIn(narrowPause)
		}
	}
}

// Since implements fanout.Claim.
func (c *claim) Since(partition int) (at fanout.Position, known bool) {
	for _, e := range slices.Backward(c.w.g.parts[partition].eras) {
		if !e.by.covers(c.list) {
			break
		}
		at, known = e.after, true
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
	next := newSelected()
	for at, list := range w.claims {
		for kinds := range list {
			next.add(&client.Selector{Kinds: kinds, Account: at.account, Symbol: at.symbol})
		}
	}
	// Who has asked for everything goes on so until there is room to spare.
	if whole := len(w.present.kinds) == 1 && w.present.kinds[of{}] == w.g.everything(); !next.fits(1, 1) || whole && !next.fits(3, 4) {
		next = newSelected()
		next.add(&client.Selector{Kinds: w.g.everything()})
	}
	if next.same(w.present) {
		return
	}
	next.seal()
	w.present = next
	w.g.l.metrics.selectors.Store(uint64(len(next.list)))
	w.g.l.metrics.selections.Add(1)
	for _, p := range w.g.parts {
		p.ask(next)
	}
}

// everything is what the whole log has for a gateway.
func (g *generation) everything() client.Kinds {
	if g.matches() {
		return client.KindOrders | client.KindExecutions | client.KindOther
	}
	return client.KindOrders
}

func (g *generation) matches() bool { return g.l.cfg.Client.BySymbol() }

// hold takes in a subscription that lacks something. It is on the loop.
func (w *wanted) hold(h *server.Held) bool {
	waits := false
	h.Here(func(s *fanout.Sub) { waits = s.Waits() })
	if waits {
		w.waiting = append(w.waiting, h)
		return true
	}
	return w.g.history(h)
}

// began has those go on that have waited. It is on the loop.
func (w *wanted) began() {
	list := w.waiting
	w.waiting = nil
	for _, h := range list {
		h.Here(func(s *fanout.Sub) {
			switch {
			case s.Waits():
				w.waiting = append(w.waiting, h)
			case s.Back() == 0 && len(s.Missing()) == 0, !w.g.history(h):
				s.Release()
			}
		})
	}
}
