//go:build e2e

package drills

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

const (
	// lead is from the creation of the grid to the opening, trading from there to the close.
	lead, trading = 3 * time.Minute, 2 * time.Minute
	// notice is from the kill of a primary to the opening, which the next one does.
	notice = 5 * time.Second
	// pairs of orders of each book cross in the call.
	pairs = 50
)

// crossing are a lot of each book of testdata/exchange.yaml, what a buyer pays at most and a seller takes at least, and the
// price of the auction: at all prices between the same volume trades, so it is the closest to the reference.
var crossing = map[string]struct{ lot, most, least, auction string }{
	"IBM":  {"1", "126", "124", "125.00"},
	"OIL":  {"1", "2", "-2", "-2"}, // its reference is the lowest of its band
	"CORN": {"10", "402", "398", "400.00"},
}

// calendar has the books of a grid collect orders, open and close by the calendar of its InstrumentSet, and kills a primary
// before the opening: every copy has each phase once and none before its time, and trades what the log says, at the opening at
// one price a book.
func calendar(ctx context.Context, f *field) {
	began := time.Now().UTC().Truncate(time.Minute)
	opens := began.Add(lead)
	closes := opens.Add(trading)
	day := []due{{began, client.BookCall}, {opens, client.BookOpen}, {closes, client.BookClosed}}
	f.plant(ctx, "testdata/exchange.yaml", "  instruments:\n", calendarOf(day)+"  instruments:\n")
	f.inPhase(ctx, day[0])
	f.load(ctx, "called")
	if trades := f.trades(ctx); len(trades) > 0 {
		f.Fatalf("%d trades in a call, the first is %+v", len(trades), trades[0])
	}
	if left := time.Until(opens); left < 2*notice {
		f.Fatalf("the opening was in %s when the grid was ready, want %s or more: the machine has too much other work", left, 2*notice)
	}
	p := &api.GridPartition{}
	if err := f.Kube.Get(ctx, p, "gridpartition", grid+"-p0", "-n", namespace); err != nil {
		f.Fatal(err)
	}
	time.Sleep(time.Until(opens.Add(-notice)))
	f.Must(f.Kube.Run(ctx, "delete", "pod", p.Status.Primary.PodName, "-n", namespace, "--grace-period=0", "--force"))
	f.Logf("%s, the primary of p0, was killed by %s; the opening was due at %s",
		p.Status.Primary.PodName, time.Now().UTC().Format(time.StampMilli), opens.Format(time.TimeOnly))
	f.inPhase(ctx, day[1])
	f.auctioned(ctx)
	f.load(ctx, "traded")
	before := len(f.trades(ctx))
	if want := 2 * pairs * len(crossing); before != want {
		f.Errorf("%d trades when the books were open, want %d", before, want)
	}
	time.Sleep(time.Until(closes))
	f.inPhase(ctx, day[2])
	f.load(ctx, "late")
	if after := len(f.trades(ctx)); after != before {
		f.Errorf("%d trades in books that are closed", after-before)
	}
	f.Must(f.Kube.Run(ctx, "wait", "ordergrid/"+grid, "-n", namespace, "--for=condition=Redundant", "--timeout=3m"))
	f.phases(ctx, day)
	f.must(ctx, "verify", grid, "--replay", "-n", namespace)
}

// due is a phase: the state of books from when on.
type due struct {
	at    time.Time
	state client.BookState
}

func (d due) String() string {
	return fmt.Sprintf("%s at %s", d.state, d.at.UTC().Format(time.RFC3339))
}

// calendarOf is the field of an InstrumentSet, of all days: a day may end while the part goes on.
func calendarOf(day []due) string {
	text := "  calendar:\n    days: [Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday]\n    phases:\n"
	for _, d := range day {
		s := d.state.String()
		text += fmt.Sprintf("    - {at: %q, state: %s}\n", d.at.Format("15:04"), strings.ToUpper(s[:1])+s[1:])
	}
	return text
}

// inPhase waits until all books are in a phase, by the condition of the grid and by the pages of the nodes.
func (f *field) inPhase(ctx context.Context, want due) {
	f.Helper()
	type shown struct{ Symbol, State, Phase, PhaseSince string }
	f.Eventually(ctx, "books in phase "+want.String(), 3*time.Minute, func(ctx context.Context) error {
		text, code, err := f.ordergrid(ctx, "market", grid, "-n", namespace, "-o", "json")
		if err != nil || code != 0 {
			return fmt.Errorf("%v, exit code %d: %s", err, code, text)
		}
		var books []shown
		if err := json.Unmarshal([]byte(text), &books); err != nil {
			return err
		}
		for _, b := range books {
			if b.State != want.state.String() || b.Phase != want.state.String() || b.PhaseSince != want.at.Format(time.RFC3339) {
				return fmt.Errorf("%+v", b)
			}
		}
		if len(books) != len(crossing) {
			return fmt.Errorf("%d books: %s", len(books), text)
		}
		return nil
	})
	f.Eventually(ctx, "the condition that says so", 3*time.Minute, func(ctx context.Context) error {
		g := &api.OrderGrid{}
		if err := f.Kube.Get(ctx, g, "ordergrid", grid, "-n", namespace); err != nil {
			return err
		}
		c := meta.FindStatusCondition(g.Status.Conditions, api.ConditionCalendarFollowed)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, fmt.Sprintf("%d books are in phase %s", len(crossing), want.state)) {
			return fmt.Errorf("%+v", c)
		}
		f.Log(c.Message)
		return nil
	})
}

// load sends pairs of orders that cross, of each book.
func (f *field) load(ctx context.Context, name string) {
	f.Helper()
	text := "ClOrdID,Symbol,Side,OrdType,OrderQty,Price,TransactTime\n"
	for n := range pairs {
		for _, symbol := range slices.Sorted(maps.Keys(crossing)) {
			c := crossing[symbol]
			text += fmt.Sprintf("%[1]s-%[2]s-%[3]d-b,%[2]s,1,2,%[4]s,%[5]s,%[7]s\n%[1]s-%[2]s-%[3]d-s,%[2]s,2,2,%[4]s,%[6]s,%[7]s\n",
				name, symbol, n, c.lot, c.most, c.least, time.Now().UTC().Format(time.RFC3339))
		}
	}
	file := filepath.Join(f.TempDir(), name+".csv")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	f.must(ctx, "load", grid, file, "-n", namespace)
}

// must runs the plugin, and is what it printed.
func (f *field) must(ctx context.Context, args ...string) string {
	f.Helper()
	text, code, err := f.ordergrid(ctx, args...)
	f.Logf("$ kubectl ordergrid %s\n%s", strings.Join(args, " "), text)
	if err != nil || code != 0 {
		f.Fatalf("%v, exit code %d", err, code)
	}
	return text
}

type trade struct {
	ID, Symbol, Price string
	Auction           bool
}

// trades are all those of the grid.
func (f *field) trades(ctx context.Context) (list []trade) {
	f.Helper()
	text, code, err := f.ordergrid(ctx, "trades", grid, "-n", namespace, "-o", "json")
	if err != nil || code != 0 {
		f.Fatalf("trades: %v, exit code %d\n%s", err, code, text)
	}
	for line := range strings.Lines(text) {
		var t trade
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			f.Fatalf("%v: %s", err, line)
		}
		list = append(list, t)
	}
	return list
}

// auctioned wants all pairs traded in an auction, at the price of their book.
func (f *field) auctioned(ctx context.Context) {
	f.Helper()
	all := f.trades(ctx)
	count := map[string]int{}
	for _, t := range all {
		if want := crossing[t.Symbol].auction; !t.Auction || t.Price != want {
			f.Errorf("%+v, want one of the auction at %s", t, want)
		}
		count[t.Symbol]++
	}
	f.Logf("trades in the auctions of the opening: %v", count)
	for symbol := range crossing {
		if count[symbol] != pairs {
			f.Errorf("%d trades of %s in the auction, want %d", count[symbol], symbol, pairs)
		}
	}
}

// phases wants those of the day in the log of each copy: each once for each book, in order, none before its time.
func (f *field) phases(ctx context.Context, day []due) {
	f.Helper()
	ip := f.Must(f.Kube.Run(ctx, "get", "service", grid+"-client", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}"))
	c, err := client.Dial(ctx, client.Config{Endpoints: []string{ip + ":7400"}, Grid: grid, RequestTimeout: time.Minute})
	if err != nil {
		f.Fatalf("%v; this part takes a cluster whose services are reachable from here", err)
	}
	defer func() { _ = c.Close() }()
	for _, p := range c.Table() {
		if len(p.Members) != 2 {
			f.Errorf("%s has %d copies, want 2", p.ID, len(p.Members))
		}
		for _, m := range p.Members {
			entered, epochs := f.entered(ctx, c, p.ID, m.Address)
			for book, got := range entered {
				if !slices.Equal(got, day) {
					f.Errorf("%s at %s: book %d entered phases %v, want %v", p.ID, m.Address, book, got, day)
				}
			}
			if len(entered) == 0 || p.ID == 0 && epochs[day[0]] >= epochs[day[1]] {
				f.Errorf("%s at %s: phases of %d books, and in which epochs %v; want one book at least, and p0 opened in a later epoch than called",
					p.ID, m.Address, len(entered), epochs)
			}
		}
	}
}

// entered are the phases of each book in the log of a copy, and the epoch that each was entered in.
func (f *field) entered(ctx context.Context, c *client.Client, p wire.PartitionID, address string) (map[uint16][]due, map[due]uint32) {
	f.Helper()
	entered, epochs := map[uint16][]due{}, map[due]uint32{}
	_, err := c.ReadLog(ctx, p, address, 1, func(e client.LogEntry) error {
		if e.Kind != order.KindMarket {
			return nil
		}
		o := order.MarketOf(e.Bytes[order.HeaderSize:])
		if o.Op != order.MarketScheduled {
			return nil
		}
		d := due{time.Unix(0, int64(o.Values[4])).UTC(), client.BookState(o.State)}
		entered[o.Book], epochs[d] = append(entered[o.Book], d), e.Epoch
		late := time.Unix(0, e.TimeNs).Sub(d.at)
		f.Logf("%s at %s: book %d: %s, entered %s later in epoch %d", p, address, o.Book, d, late, e.Epoch)
		if late < 0 {
			f.Errorf("book %d of %s entered phase %s %s before its time", o.Book, p, d, -late)
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	return entered, epochs
}
