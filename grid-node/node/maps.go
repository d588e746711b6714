package node

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Clients may have a function of kind Compute called for the entries of a region, or with
// arguments alone: a Map, docs/adr/0073. Each has a goroutine, half as many as there are cores
// compute at once, each with an instance of its own; the loop takes part where a page of
// entries is read and where the answer leaves.

const (
	maxMaps    = 256 // of a node, waiting or computing
	clientMaps = 64  // of one client
	maxMapTime = time.Minute
	maxMapFuel = 1 << 36 // of all calls of a Map
	// mapKept is how much of what is changed beside a Map may be kept for it, of those that compute.
	mapKept = 4 << 20
	// mapPage bytes of entries, or mapVisits of them, are read at a time on the loop, which then has
	// mapRest times as long for others.
	mapPage   = 64 << 10
	mapVisits = 1024
	mapRest   = 3
)

// mapsOpen are those of all clients. Of the data loop, but for slots.
type mapsOpen struct {
	clients  *clients
	open     int
	ofClient map[uint64]int // by link.client
	slots    chan struct{}  // of those that compute
	begun    uint64         // over orders, since the node started
}

// slotsBeside is how many Maps compute at once, and how many streams pass over what they do not send: the other cores are
// left to orders, and memory is set aside for each Map.
func slotsBeside() int { return max(1, min(runtime.NumCPU()/2, runtime.GOMAXPROCS(0)/2, 16)) }

// mapMemory is what those take.
func mapMemory(list []ComputeFunction) int64 {
	pages := uint32(0)
	for i := range list {
		pages = max(pages, computeOptions(&list[i]).Pages)
	}
	if len(list) == 0 {
		return 0
	}
	return int64(slotsBeside()) * (mapKept + 2*pageBytes*int64(pages))
}

// mapper has Maps of a partition. It implements replica.Mapper.
type mapper struct {
	fs *computeFunctions
	p  *partition
}

// Begin implements replica.Mapper.
func (x mapper) Begin(conn uint64, m *wire.Map) *wire.Reject {
	return x.begin(conn, wire.TypeMap, m, nil)
}

// BeginOrders implements replica.Mapper.
func (x mapper) BeginOrders(conn uint64, m *wire.MapOrders, of replica.Prefix) *wire.Reject {
	first, behind := m.Part(of.From, of.Through)
	return x.begin(conn, wire.TypeMapOrders, &wire.Map{ReqID: m.ReqID, TimeoutMs: m.TimeoutMs, Slice: m.Slice, Slices: m.Slices, Function: m.Function, Args: m.Args},
		&orderRows{of: of, next: first, behind: behind})
}

// begin begins a Map, over orders if there are some.
func (x mapper) begin(conn uint64, t wire.Type, m *wire.Map, orders *orderRows) *wire.Reject {
	ms, l, f := &x.fs.maps, x.fs.maps.clients.byID[conn], x.fs.find(m.Function)
	no := &wire.Reject{RequestID: m.ReqID, ForType: t}
	switch {
	case l == nil: // it is closing
		no.Code = wire.CodeOverloaded
		return no
	case f == nil:
		no.Code, no.Text = wire.CodeFunctionUnknown, fmt.Appendf(nil, "function is %.40q, allowed: one of the grid's functions of kind Compute", m.Function)
		return no
	case l.mapOf(m.ReqID) != nil:
		no.Code, no.Detail, no.Text = wire.CodeUnsupported, m.ReqID, fmt.Appendf(nil, "reqID is %d, allowed: one that no Map of the connection has", m.ReqID)
		return no
	}
	for _, bound := range []struct {
		what        string
		have, limit int
	}{{"of this client", ms.ofClient[l.client], clientMaps}, {"of all clients", ms.open, maxMaps}} {
		if bound.have >= bound.limit {
			no.Code, no.Detail, no.Limit = wire.CodeOverloaded, uint64(bound.have), uint64(bound.limit)
			no.Text = fmt.Appendf(nil, "Maps %s on the node: %d, allowed: %d; wait for an answer", bound.what, bound.have, bound.limit)
			return no
		}
	}
	g := &mapping{p: x.p, inc: x.p.inc, l: l, client: l.client, fs: x.fs, f: f, m: *m, forType: t, orders: orders}
	g.m.Region, g.m.Function, g.m.Args = slices.Clone(m.Region), nil, slices.Clone(m.Args)
	if orders != nil {
		ms.begun++
		log, err := x.p.inc.feed.Reader("map " + strconv.FormatUint(ms.begun, 10))
		if err != nil {
			no.Code, no.Text = wire.CodeOverloaded, []byte(err.Error())
			return no
		}
		orders.log = log
		orders.time = x.p.timeAt(orders.of.Through)
	}
	g.patience = min(time.Duration(m.TimeoutMs)*time.Millisecond, maxMapTime)
	g.ctx, g.cancel = context.WithTimeout(g.inc.ctx, g.patience)
	l.maps = append(l.maps, g)
	ms.open++
	ms.ofClient[g.client]++
	g.inc.wg.Go(func() { g.run(ms.slots) })
	return nil
}

// End implements replica.Mapper.
func (x mapper) End(conn, reqID uint64) {
	if l := x.fs.maps.clients.byID[conn]; l != nil {
		if g := l.mapOf(reqID); g != nil {
			g.cancel()
		}
	}
}

func (l *link) mapOf(reqID uint64) *mapping {
	for _, g := range l.maps {
		if g.m.ReqID == reqID {
			return g
		}
	}
	return nil
}

// endMaps ends all Maps of a client.
func (l *link) endMaps() {
	for _, g := range l.maps {
		g.cancel()
	}
}

// finish takes a Map back from its goroutine and has the replica answer it; on the loop.
func (g *mapping) finish() {
	g.cancel()
	g.l.maps = slices.DeleteFunc(g.l.maps, func(o *mapping) bool { return o == g })
	ms := &g.fs.maps
	ms.open--
	if ms.ofClient[g.client]--; ms.ofClient[g.client] == 0 {
		delete(ms.ofClient, g.client)
	}
	g.count()
	if g.rows != nil {
		defer g.rows.Close() // also where the replica is another one
	}
	answer := replica.Mapped{Conn: g.l.conn.ID(), ReqID: g.m.ReqID, OfRegion: g.orders == nil && (g.rows != nil || g.gone), Rows: g.rows}
	if g.orders != nil {
		g.orders.log.Close()
		answer.Orders = &g.orders.of
	}
	switch {
	case g.no != nil:
		g.no.RequestID, g.no.ForType = g.m.ReqID, g.forType
		answer.Frame = wire.AppendReject(nil, g.p.id, g.no)
	case g.orders != nil:
		answer.Frame = g.orders.part(g)
	default:
		g.part.ReqID = g.m.ReqID
		answer.Frame = wire.AppendMapPart(nil, g.p.id, &g.part)
	}
	switch c := g.l.conn; {
	case !c.Open():
	case g.p.closed || g.p.ended || g.p.inc != g.inc:
		c.SetOut(wire.AppendReject(c.Out(), g.p.id, &wire.Reject{RequestID: g.m.ReqID, Code: wire.CodeOverloaded, ForType: g.forType, Text: []byte("the replica was replaced meanwhile: ask again")}))
	default:
		g.p.step(&replica.Event{Kind: replica.EventMapped, Mapped: &answer})
	}
}

// count counts the Map as a call of its function.
func (g *mapping) count() {
	f := g.f
	f.counts.Fuel += g.part.Fuel
	switch {
	case g.no == nil:
		f.counts.Decided++
	case g.fault != 0:
		f.counts.Failed[g.fault]++
		g.fs.failed(f, g.fault, g.key, g.detail)
	case g.no.Code == wire.CodeTooLarge:
		f.counts.TooLarge++
	case g.no.Code == wire.CodeFunctionFailed:
		f.counts.Error++
	}
}
