package rounds

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/system"
)

// Garbage is what holding many orders does to the garbage collector, and the
// collector to the orders.
type Garbage struct {
	Natural, Forced generator.Result // the same load, with collections as they come, and with many
	Nodes           []NodeGarbage    // the primary's first
}

// NodeGarbage is one node's own account, from its /metrics.
type NodeGarbage struct {
	Name                 string
	Held                 uint64
	Resident, Heap, Live uint64 // bytes; Live as of the last collection
	// Natural are the collections while the orders came and during the natural
	// load, Forced those of the second load.
	Natural, Forced Collections
	LoopFaults      uint64  // minor page faults of the data loop
	LoopStalls      uint64  // of the data loop
	AllocsPerOrder  float64 // while the orders came
}

// Collections of one node in some time. Each stops the world twice.
type Collections struct {
	Count, Pauses uint64
	Long          uint64  // pauses of more than 1 ms
	Longest       float64 // seconds, the upper bound of its bucket: at most twice the pause; 0 without one
}

// collectEvery is how often the second load has every node collect.
const collectEvery = time.Second

// Garbage fills a grid by the case, loads it, and loads it again while each
// node is made to collect over and over.
func (r *Runner) Garbage(ctx context.Context, at system.Place, c *cases.Case, s system.System) (g Garbage, err error) {
	run, err := s.Start(ctx, at, system.Topology{Copies: c.Copies, Partitions: c.Partitions, MemoryMiB: min(c.MemoryMiB, affordable(c.Copies)), Profile: true})
	if err != nil {
		return g, fmt.Errorf("start %s: %w", s.Name(), err)
	}
	defer func() { err = errors.Join(err, run.Stop()) }()
	nodes := &scraper{client: &http.Client{Transport: &http.Transport{DialContext: at.Dial}}, urls: run.HTTP}
	defer nodes.client.CloseIdleConnections()
	before, err := nodes.scrape(ctx)
	if err != nil {
		return g, err
	}
	spec := r.spec(c)
	spec.Driver, spec.Addresses, spec.PIDs = run.Driver, run.Addresses, run.PIDs
	if g.Natural, err = r.generate(ctx, at, &spec); err != nil {
		return g, err
	}
	natural, err := nodes.scrape(ctx)
	if err != nil {
		return g, err
	}
	spec.Held = 0 // they are there
	if g.Forced, err = r.whileCollecting(ctx, at, &spec, nodes); err != nil {
		return g, err
	}
	after, err := nodes.scrape(ctx)
	for i := range after {
		g.Nodes = append(g.Nodes, account(serverNames[i], before[i], natural[i], after[i]))
	}
	return g, err
}

// whileCollecting loads the grid while every node collects once in a while. The
// heap profile with gc=1 is the way to have a process collect from outside.
func (r *Runner) whileCollecting(ctx context.Context, at system.Place, spec *generator.Spec, nodes *scraper) (res generator.Result, err error) {
	collecting, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() {
		for collecting.Err() == nil {
			for i := range nodes.urls {
				if _, err := nodes.get(collecting, i, "/debug/pprof/heap?gc=1"); err != nil && collecting.Err() == nil {
					failed = err
				}
			}
			select {
			case <-collecting.Done():
			case <-time.After(collectEvery):
			}
		}
	})
	res, err = r.generate(ctx, at, spec)
	stop()
	wg.Wait()
	return res, errors.Join(err, failed)
}

const (
	gcPauses   = "ordergrid_node_runtime_gc_pause_seconds_count"
	gcPausesTo = `ordergrid_node_runtime_gc_pause_seconds_bucket{le="%v"}`
	mallocs    = "go_memstats_mallocs_total"
	automatic  = "go_gc_cycles_automatic_gc_cycles_total"
	forced     = "go_gc_cycles_forced_gc_cycles_total"
	ordersHeld = `ordergrid_node_orders_held{partition="p0"}`
	oneMilli   = 1.0 / (1 << 10) // the bound of a bucket next to 1 ms
)

func account(name string, before, filled, after samples) NodeGarbage {
	n := NodeGarbage{Name: name, Held: uint64(after[ordersHeld]), Resident: uint64(after["process_resident_memory_bytes"]),
		Heap: uint64(after["go_memstats_heap_alloc_bytes"]), Live: uint64(after["go_gc_heap_live_bytes"]),
		Natural: collections(before, filled), Forced: collections(filled, after),
		LoopFaults: uint64(after[`ordergrid_node_loop_page_faults_total{kind="minor",loop="data"}`]),
		LoopStalls: uint64(after[`ordergrid_node_loop_stalls_total{loop="data"}`])}
	if orders := filled[ordersHeld] - before[ordersHeld]; orders > 0 {
		n.AllocsPerOrder = (filled[mallocs] - before[mallocs]) / orders
	}
	return n
}

func collections(before, after samples) (c Collections) {
	more := func(name string) uint64 { return uint64(after[name] - before[name]) }
	c.Count, c.Pauses = more(automatic)+more(forced), more(gcPauses)
	c.Long = c.Pauses - more(fmt.Sprintf(gcPausesTo, oneMilli))
	for bound := oneMilli / (1 << 10); c.Pauses > 0 && bound <= 4; bound *= 2 {
		if c.Longest = bound; more(fmt.Sprintf(gcPausesTo, bound)) == c.Pauses {
			break
		}
	}
	return c
}
