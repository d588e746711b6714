// Package cases lists what the benchmark measures. A case has a name that stays
// the same, NETWORK/COPIES/LOAD, and is chosen by a regular expression.
package cases

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// Better is the figure that decides a case.
type Better string

// Figures.
const (
	LowP50   Better = "p50_us"       // latency: ratio of medians of p50, smaller is better
	HighRate Better = "orders_per_s" // throughput: ratio of orders/s, larger is better
)

// Case is one row of measurement for each system.
type Case struct {
	Name       string
	Title      string // what it measures, for people
	Network    string // "lo" or "ns"
	Copies     int
	Partitions int
	Size       int // bytes of an order
	Held       int64
	Shape      generator.Shape
	Judged     Better
	// ReadMode of the grid: "" is confirmed.
	ReadMode generator.ReadMode
	// GridOnly: the floors hold nothing and have no partitions.
	GridOnly bool
	// Systems to measure, by name; nil: all but those that only such lists name.
	Systems []string
	// Group is the word with which an expression asks for the case; "": every run
	// measures it.
	Group string
	// MemoryMiB is the memory limit of one node.
	MemoryMiB int
}

// heldForReads are the orders that reads find.
const heldForReads = 100_000

// Networks of the standard cases.
var networks = []struct{ name, title string }{
	{"lo", "loopback"},
	{"ns", "between network namespaces"},
}

var copies = []struct {
	name, title string
	n           int
}{
	{"repl", "two copies", 2},
	{"single", "one copy", 1},
}

// Reads of the relay are requests of the size of a read and answers of the size
// of an order, given without asking a second process: what is there can be read
// at one copy.
const (
	readRequest = 40
	readReply   = fixorder.Size
	orderReply  = 8
)

// PrefaultMiB is the memory for orders that a node of the grid has the kernel
// provide before it serves: what some seconds of the case fill. None where orders
// are held ahead, since there the growth of the process is a figure itself.
func (c *Case) PrefaultMiB() int {
	switch {
	case c.Held > 0 || c.Shape.Op == generator.Get:
		return 0
	case c.Judged == HighRate:
		return min(1536, c.MemoryMiB/4)
	}
	return 256
}

// Leased: the grid answers reads by its lease.
func (c *Case) Leased() bool { return c.ReadMode == generator.Leased }

// Request is the size of one message to the relay.
func (c *Case) Request() int {
	if c.Shape.Op == generator.Get {
		return readRequest
	}
	return c.Size
}

// Reply is the size of the relay's answer.
func (c *Case) Reply() int {
	if c.Shape.Op == generator.Get {
		return readReply
	}
	return orderReply
}

var loads = []struct {
	name, title string
	shape       generator.Shape
	judged      Better
	mode        generator.ReadMode
}{
	{"rate-1000", "open loop, 1,000 orders/s, 4 synchronous threads", open(1000), LowP50, ""},
	{"rate-6000", "open loop, 6,000 orders/s, 4 synchronous threads", open(6000), LowP50, ""},
	{"rate-12000", "open loop, 12,000 orders/s, 4 synchronous threads", open(12000), LowP50, ""},
	{"pingpong", "one synchronous client", closed(generator.Submit, 1, 1), LowP50, ""},
	{"sync-64", "64 synchronous clients", closed(generator.Submit, 64, 1), HighRate, ""},
	{"pipe-64x4", "4 clients, 64 orders unanswered each", closed(generator.Submit, 4, 64), HighRate, ""},
	{"get", "one client reads by ClOrdID", closed(generator.Get, 1, 1), LowP50, generator.Confirmed},
	{"get-64x4", "4 clients, 64 reads by ClOrdID unanswered each", closed(generator.Get, 4, 64), HighRate, generator.Confirmed},
	{"get-leased", "one client reads by ClOrdID, leased", closed(generator.Get, 1, 1), LowP50, generator.Leased},
	{"get-leased-64x4", "4 clients, 64 leased reads by ClOrdID unanswered each", closed(generator.Get, 4, 64), HighRate, generator.Leased},
}

func open(rate int) generator.Shape {
	return generator.Shape{Op: generator.Submit, Rate: rate, Threads: 4, Depth: 1}
}

func closed(op generator.Op, threads, depth int) generator.Shape {
	return generator.Shape{Op: op, Threads: threads, Depth: depth}
}

// Standard are the cases of `make bench`.
func Standard() []Case {
	var all []Case
	for _, n := range networks {
		for _, k := range copies {
			for _, l := range loads {
				if l.mode == generator.Leased && k.n == 1 {
					continue // a single copy has no peer to ask
				}
				c := Case{Name: n.name + "/" + k.name + "/" + l.name, Title: fmt.Sprintf("%s, %s, %s", l.title, k.title, n.title),
					Network: n.name, Copies: k.n, Partitions: 1, Size: fixorder.Size, Shape: l.shape, Judged: l.judged, ReadMode: l.mode, MemoryMiB: 8 << 10}
				if l.shape.Op == generator.Get {
					c.Held = heldForReads
				}
				all = append(all, c)
			}
		}
	}
	return all
}

// All are the standard cases and those measured on request only.
func All() []Case {
	return slices.Concat(Standard(), Growth(), TLS(), Scrape(), Views(), Peers(), Journal(), Sinks(), Functions(), FIX(), Match())
}

// Names of systems that are measured where a case asks for them only.
const (
	Grid    = "grid"
	GridTLS = "grid-tls" // the grid with TLS
	// GridScraped has its metrics read every second.
	GridScraped = "grid-scraped"
	// GridViews keeps views of the orders with every copy, GridViewsBackup with backups only.
	GridViews       = "grid-views"
	GridViewsBackup = "grid-views-backup"
	// GridInsecure is without the peer key, so that nothing between nodes is sealed.
	GridInsecure = "grid-insecure"
	// GridJournal acknowledges what is on the disk of every copy.
	GridJournal = "grid-journal"
	// GridSinks has a sink of each kind outside, which follows it.
	GridSinks = "grid-sinks"
)

// variants are measured where a case names them.
var variants = []string{GridTLS, GridScraped, GridViews, GridViewsBackup, GridInsecure, GridJournal, GridSinks, GridMatch, GridMatchTold}

// Names of peers that speak Java. They are measured with submits on loopback.
const (
	Hazelcast = "hazelcast"
	Coherence = "coherence"
	Geode     = "geode"
	Ignite    = "ignite"
)

// Instead chooses the cases that compare what one would use in place of the grid.
const Instead = "^lo/repl/(rate-6000|pingpong|sync-64|pipe-64x4)$"

// Uses reports whether a system is measured in the case.
func (c *Case) Uses(system string) bool {
	switch {
	case slices.Contains([]string{Hazelcast, Coherence, Geode, Ignite}, system) && (c.Network != "lo" || c.Shape.Op != generator.Submit):
		return false
	case c.Systems != nil:
		return slices.Contains(c.Systems, system)
	case slices.Contains(calling, system) || slices.Contains(speaking, system):
		return false
	case c.GridOnly: // the floors hold nothing
		return system == Grid
	}
	return !slices.Contains(variants, system)
}

// TLS are the cases that show what TLS costs. On request only: CASES=tls.
func TLS() []Case { return besides("tls", Grid, GridTLS) }

// Scrape are the cases that show what being observed costs. On request only:
// CASES=scrape.
func Scrape() []Case { return besides("scrape", Grid, GridScraped) }

// Views are the cases that show what views of the orders cost orders, beside the grid without them. On request only:
// CASES=views.
func Views() []Case { return besides("views", Grid, GridViews, GridViewsBackup) }

// Peers are the cases that show what it costs that nodes prove themselves and seal what they say. On request only:
// CASES=peers.
func Peers() []Case { return besides("peers", Grid, GridInsecure) }

// Journal are the cases that show what a journal costs: every order is on the disks of both copies when it is
// acknowledged. On request only: CASES=journal.
func Journal() []Case { return besides("journal", Grid, GridJournal) }

// Sinks is the case that shows what orders pay while sinks write them to Kafka, PostgreSQL and an archive: p99 at 6,000
// orders/s. On request only: CASES=sinks.
func Sinks() []Case {
	return slices.DeleteFunc(besides("sinks", Grid, GridSinks), func(c Case) bool { return c.Shape.Rate == 0 })
}

// besides are cases that compare variants of the grid, as a group of their own.
func besides(group string, systems ...string) (all []Case) {
	for _, l := range loads {
		switch l.name {
		case "rate-6000", "pingpong", "sync-64", "pipe-64x4":
			all = append(all, Case{Name: group + "/" + l.name, Title: l.title + ", two copies, loopback", Network: "lo", Copies: 2, Partitions: 1,
				Size: fixorder.Size, Shape: l.shape, Judged: l.judged, MemoryMiB: 8 << 10, Group: group, Systems: systems})
		}
	}
	return all
}

// Select returns the cases whose names an expression matches. "" and "." are the
// standard cases; those of a group are included only if the expression names it.
func Select(expr string) ([]Case, error) {
	if expr == "" {
		expr = "."
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("CASES: value %q, allowed: a regular expression: %w", expr, err)
	}
	var chosen []Case
	for _, c := range All() {
		if !strings.Contains(expr, c.Group) {
			continue
		}
		if re.MatchString(c.Name) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("CASES: value %q matches no case; `go run ./hack/bench list` lists them", expr)
	}
	return chosen, nil
}
