package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// mapping is one Map. Of its goroutine until finish, but for what read does on the loop.
type mapping struct {
	p        *partition
	inc      *incarnation
	l        *link
	client   uint64
	fs       *computeFunctions
	f        *computeFunction // its module is for every thread, its counts are the loop's
	m        wire.Map         // its bytes are a copy
	ctx      context.Context
	cancel   context.CancelFunc
	patience time.Duration
	forType  wire.Type

	orders *orderRows    // of a Map over orders
	rows   *replica.Rows // of a region, once they were opened
	page   []byte        // of them, as in a RegionPage
	done   bool          // page is the last one
	gone   bool          // the replica has them no more
	busy   time.Duration // that reading the page took of the loop

	part   wire.MapPart
	no     *wire.Reject // why there is no answer
	fault  function.Fault
	detail error // of it
	key    []byte
}

// refuse ends the Map without an answer.
func (g *mapping) refuse(code wire.Code, detail, limit uint64, text string) {
	g.no = &wire.Reject{Code: code, Detail: detail, Limit: limit, Text: []byte(text)}
}

// run computes the answer, on a goroutine of its own, and hands it to the loop.
func (g *mapping) run(slots chan struct{}) {
	select {
	case slots <- struct{}{}:
		g.compute()
		<-slots
	case <-g.ctx.Done():
		g.interrupted()
	}
	g.p.loop.Post(g.finish)
}

// interrupted says why the context has ended.
func (g *mapping) interrupted() {
	switch {
	case g.inc.ctx.Err() != nil:
		g.gone = true
		g.refuse(wire.CodeDraining, 0, 0, "the replica stops serving here: ask another")
	case errors.Is(g.ctx.Err(), context.DeadlineExceeded):
		ms := uint64(g.patience / time.Millisecond)
		g.refuse(wire.CodeMapBound, ms, uint64(maxMapTime/time.Millisecond), fmt.Sprintf("time: the Map took more than %d ms, after %d entries and %d fuel; allowed: as much as was asked for, at most %d ms: ask for more slices", ms, g.part.Rows, g.part.Fuel, maxMapTime/time.Millisecond))
	default:
		g.refuse(wire.CodeNotPermitted, 0, 0, "the client asked for it, or lost its permission")
	}
}

// compute calls the function for all that is to be seen.
func (g *mapping) compute() {
	inst, err := g.f.module.Instance(context.Background())
	if err != nil {
		g.refuse(wire.CodeFunctionFailed, 0, 0, fmt.Sprintf("function: %.100s", err))
		return
	}
	defer inst.Close(context.Background()) //nolint:errcheck // of memory only
	c := function.KeyCall{Region: g.m.Region, Args: g.m.Args, Slice: uint32(g.m.Slice), Slices: uint32(g.m.Slices)}
	switch {
	case g.orders != nil:
		c.OfOrders, c.Time = true, g.orders.time
		if !g.scanOrders(inst, &c) {
			return
		}
	case len(g.m.Region) > 0 && !g.scan(inst, &c):
		return
	}
	c.Step, c.Key, c.Value, c.Version = function.StepEnd, nil, nil, g.part.Seq
	for {
		r, ok := g.call(inst, &c)
		if !ok {
			return
		}
		if r.Action != function.Again {
			g.part.Reply = slices.Clone(r.Out)
			return
		}
	}
}

// call makes one call, and reports whether the Map goes on.
func (g *mapping) call(inst *function.Instance, c *function.KeyCall) (function.Result, bool) {
	r := inst.Invoke(context.Background(), c)
	return r, g.goesOn(inst, c, &r)
}

// goesOn reports whether the Map goes on after a call.
func (g *mapping) goesOn(inst *function.Instance, c *function.KeyCall, r *function.Result) bool {
	g.part.Fuel += uint64(inst.Used())
	switch {
	case r.Room != 0:
		g.refuse(wire.CodeTooLarge, uint64(r.Room), 0, fmt.Sprintf("an entry, its region and the arguments have %d bytes, allowed: %d, what the function takes", len(c.Region)+len(c.Key)+len(c.Value)+len(c.Args), r.Room))
	case r.Fault != function.None:
		g.fault, g.detail, g.key = r.Fault, inst.Err(r.Fault), slices.Clone(c.Key)
		g.refuse(wire.CodeFunctionFailed, 0, 0, "function: "+r.Fault.String())
	case r.Code != 0:
		g.refuse(wire.CodeFunctionFailed, uint64(uint32(r.Code)), 0, string(appendPrintable(nil, r.Out)))
	case g.part.Fuel > maxMapFuel:
		g.refuse(wire.CodeMapBound, g.part.Fuel, maxMapFuel, fmt.Sprintf("fuel: the Map took %d after %d entries, allowed: %d; ask for more slices", g.part.Fuel, g.part.Rows, int64(maxMapFuel)))
	case g.ctx.Err() != nil:
		g.interrupted()
	default:
		return true
	}
	return false
}

// scan calls the function for each entry of the slice, and reports whether that was all of them.
func (g *mapping) scan(inst *function.Instance, c *function.KeyCall) bool {
	c.Step = function.StepRow
	for {
		if err := g.p.onLoop(g.read); err != nil {
			g.refuse(wire.CodeOverloaded, 0, 0, err.Error())
		}
		if g.no != nil {
			return false
		}
		g.part.Seq, c.Time = g.rows.At()
		for rest := g.page; len(rest) > 0; {
			var row wire.RegionRow
			rest, _ = wire.NextRegionRow(rest, &row) // of our own making
			c.Key, c.Value, c.Version = row.Key, row.Value, row.Version
			g.part.Rows++
			if _, ok := g.call(inst, c); !ok {
				return false
			}
		}
		if g.done {
			return true
		}
		select {
		case <-time.After(mapRest * g.busy):
		case <-g.ctx.Done():
			g.interrupted()
			return false
		}
	}
}

// read reads the next page; on the loop.
func (g *mapping) read() {
	g.page = g.page[:0]
	if !g.p.closed && !g.p.ended && g.p.inc == g.inc && g.rows == nil {
		g.rows = g.p.replica.OpenRows(g.m.Region, mapKept)
	}
	if g.p.inc != g.inc || g.rows == nil || !g.rows.Of(g.p.replica.Regions()) {
		g.gone = true
		g.refuse(wire.CodeDraining, 0, 0, "the replica is no primary any more: ask another")
		return
	}
	begun := time.Now()
	g.part.Epoch = g.rows.Epoch
	var err error
	g.done, err = g.rows.Next(mapVisits, func(v *region.Value) bool {
		if xxhash.Sum64(v.Key)>>32%uint64(g.m.Slices) == uint64(g.m.Slice) {
			g.page = wire.AppendRegionRow(g.page, &wire.RegionRow{Version: v.Version, Key: v.Key, Value: v.Value})
		}
		return len(g.page) < mapPage
	})
	var kept *region.KeptError
	switch {
	case errors.As(err, &kept):
		g.refuse(wire.CodeMapBound, uint64(kept.Bytes), uint64(kept.Limit), kept.Error())
	case err != nil:
		g.refuse(wire.CodeOverloaded, 0, 0, err.Error())
	}
	if c := g.l.conn; c.Open() {
		c.Spend(requestWork + len(g.page))
	}
	g.busy = time.Since(begun)
}
