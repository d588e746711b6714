package queries

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/query/statement"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/probe/devgrid"
)

// GridSQL is the name of the grid when it is asked through the listener for SQL of an order-gateway.
const GridSQL = "grid-sql"

// Grid is a primary and a backup with views of the orders, as scenario bar-query has them, and then one with a region whose
// values are the orders, as bar-update and bar-drop have them.
type Grid struct {
	// Dir is where the file of its regions is.
	Dir string

	node, gateway string
	orders        *Orders
	grid          *devgrid.Grid
	c             *client.Client
	door          *devgrid.Gateway
	sql           *pgconn.PgConn
	after         []client.Receipt // of the orders
	sessions      []*client.Session
	region        *client.Region // nil: the grid has none
}

// Name implements System.
func (g *Grid) Name() string { return cases.Grid }

// Missing implements System.
func (g *Grid) Missing() string { return "" }

const (
	// partitions of the grid: one for each node.
	partitions = 2
	// orderBytes is what an order takes in a node with its indexes, to spare; entryBytes what the changes of a value do.
	orderBytes, entryBytes = 576, 640
	// valueBytes is the memory of a value in a region that is there twice, in blocks of 128 bytes.
	valueBytes = 2 * 384
	nodeMiB    = 512
	mib        = 1 << 20
)

// viewOptions are of the view of a partition that has its share of the orders, and an eighth more: they are spread by hash.
func viewOptions(orders int) view.Options {
	const rows = 1 << 16
	return view.Options{Rows: (orders/partitions*9/8/rows + 1) * rows, Postings: []view.Field{view.Symbol, view.Account}, Ordered: []view.Field{view.Price}}
}

// viewMiB is the memory for the views of a node.
func viewMiB(orders int) int64 {
	each, err := view.Bytes(viewOptions(orders))
	if err != nil {
		return 0 // more orders than a view has rows: the node says so
	}
	return max(128, partitions*each*9/8/mib+1)
}

// ordersMiB and changesMiB are what a node may use of the first grid and of the second, regionMiB what regions may of that.
func ordersMiB(n int) int64 { return nodeMiB + int64(n)*orderBytes/mib + viewMiB(n) }
func regionMiB(n int) int64 { return 64 + int64(n)*valueBytes*5/4/mib }
func changesMiB(n int) int64 {
	return max(2*regionMiB(n), regionMiB(n)+nodeMiB+int64(n)*entryBytes/mib) + 64
}

// MemoryMiB implements System.
func (g *Grid) MemoryMiB(orders int, changes bool) int64 {
	n := ordersMiB(orders)
	if changes {
		n = max(n, changesMiB(orders))
	}
	return 2 * n
}

// Prepare implements System.
func (g *Grid) Prepare(ctx context.Context) (err error) {
	if g.node, err = testgrid.Build(ctx, "grid-node"); err != nil {
		return err
	}
	g.gateway, err = testgrid.Build(ctx, "order-gateway")
	return err
}

// Start implements System.
func (g *Grid) Start(ctx context.Context, o *Orders) error {
	g.orders = o
	return g.start(ctx, ordersMiB(o.N), "--views", fmt.Sprintf("%dMi", viewMiB(o.N)), "--view-rows", strconv.Itoa(viewOptions(o.N).Rows))
}

func (g *Grid) start(ctx context.Context, memoryMiB int64, args ...string) (err error) {
	if g.grid, err = devgrid.Start(ctx, devgrid.Options{Program: g.node, Shards: 1, Replicas: 2, MemoryMiB: memoryMiB, Args: args}); err != nil {
		return err
	}
	g.c, err = client.Dial(ctx, client.Config{Endpoints: g.grid.Endpoints, RequestTimeout: time.Minute})
	return err
}

// together is how many orders, or changes of a region, of a partition are under way at most: the window of a session.
const together = 512

// Load implements System: a session for each partition, whose orders leave in large writes.
func (g *Grid) Load(ctx context.Context, batch []Order) (time.Duration, error) {
	if err := g.open(ctx); err != nil {
		return 0, err
	}
	push := func() {
		for _, s := range g.sessions {
			s.Push()
		}
	}
	f := newFlight(partitions, together, g.seen)
	begun := time.Now()
	for i := range batch {
		p, err := g.c.Route(batch[i].FIX)
		if err != nil {
			return 0, err
		}
		if err := f.begin(int(p), push); err != nil {
			return 0, err
		}
		if err := g.sessions[p].Enqueue(batch[i].FIX, func(r client.Receipt, err error) { f.ended(int(p), r, err) }); err != nil {
			return 0, err
		}
	}
	push()
	err := f.land()
	return time.Since(begun), err
}

// open opens the sessions that load orders.
func (g *Grid) open(ctx context.Context) error {
	for i := len(g.sessions); i < partitions; i++ {
		s, err := g.c.OpenSession(ctx, wire.PartitionID(i))
		if err != nil {
			return err
		}
		g.sessions = append(g.sessions, s)
	}
	return nil
}

// seen keeps the last receipt of each partition.
func (g *Grid) seen(r client.Receipt) {
	i := slices.IndexFunc(g.after, func(other client.Receipt) bool { return other.Partition == r.Partition })
	switch {
	case i < 0:
		g.after = append(g.after, r)
	case r.Seq > g.after[i].Seq:
		g.after[i] = r
	}
}

// Askers implements System.
func (g *Grid) Askers(ctx context.Context) (_ []Asker, err error) {
	if g.door, err = g.grid.StartGateway(ctx, g.gateway, "--postgresql", "127.0.0.1:0", "--postgresql-insecure-plain"); err != nil {
		return nil, err
	}
	if g.sql, err = pgconn.Connect(ctx, fmt.Sprintf("postgres://me@%s/grid?sslmode=disable", g.door.Address)); err != nil {
		return nil, err
	}
	sql := &sqlAsker{name: GridSQL, conn: g.sql}
	all := counted(int64(g.orders.N))
	native := &nativeAsker{g: g, questions: map[Op]*statement.Statement{}}
	for _, a := range []Asker{native, sql} {
		if err := sees(ctx, a, Question{Op: Left, Want: func(int) Answer { return all }}); err != nil {
			return nil, err
		}
	}
	return []Asker{native, sql}, nil
}

// viewPatience is how long views may take to have orders that are acknowledged.
const viewPatience = 10 * time.Second

// sees returns when all orders are seen: a copy applies them to its view after it has acknowledged them.
func sees(ctx context.Context, a Asker, all Question) error {
	for end := time.Now().Add(viewPatience); ; time.Sleep(time.Millisecond) {
		wrong, err := differs(ctx, a, all)
		if err != nil || wrong == "" {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s, %v after the load: %s", a.Name(), viewPatience, wrong)
		}
	}
}

// nativeAsker is the grid's own client.
type nativeAsker struct {
	g         *Grid
	questions map[Op]*statement.Statement
}

func (n *nativeAsker) Name() string { return cases.Grid }

// Ask implements Asker.
func (n *nativeAsker) Ask(ctx context.Context, q *Question, first, times int) ([]Took, error) {
	if q.Op == Get {
		return repeat(first, times, func(i int) (func() (Answer, error), error) {
			x, err := n.g.c.GetByClOrdID(ctx, q.key(i))
			return func() (a Answer, err error) { return a, a.addFIX(x.FIX) }, err
		})
	}
	s := n.questions[q.Op]
	if s == nil {
		var err error
		if s, err = statement.Parse(q.SQL(), statement.Columns()); err != nil {
			return nil, err
		}
		n.questions[q.Op] = s
	}
	return repeat(first, times, func(int) (func() (Answer, error), error) {
		a, err := n.g.c.Query(ctx, client.Query{Query: s.Query, After: n.g.after})
		return func() (Answer, error) { return read(q, s, a) }, err
	})
}

// read is the answer of the grid's client. It is whole: none has more rows than a page.
func read(q *Question, s *statement.Statement, answer *client.Answer) (a Answer, err error) {
	for _, row := range answer.Rows {
		var cells []string
		for _, v := range s.Row(row) {
			cells = append(cells, cell(v))
		}
		if err := q.cells(&a, cells); err != nil {
			return a, err
		}
	}
	return a, nil
}

// cell is a value as SQL writes it.
func cell(v view.Value) string {
	switch v.Kind {
	case view.Text:
		return v.Text
	case view.Time:
		return time.Unix(0, v.Int).UTC().Format("2006-01-02 15:04:05.999999999-07")
	}
	return v.String()
}

// PIDs implements System.
func (g *Grid) PIDs() []int {
	pids := slices.Clone(g.grid.PIDs)
	if g.door != nil {
		pids = append(pids, g.door.PID)
	}
	return pids
}

// Notes implements System.
func (g *Grid) Notes() []string {
	return []string{
		fmt.Sprintf("grid: two nodes with views of the orders, each order acknowledged by both; loaded by a session for each partition, which has %d orders under way (Enqueue); its client gets the message by ClOrdID, and nine columns of orders otherwise", together),
		"grid-sql: the same grid, by prepared statements of PostgreSQL's protocol through order-gateway",
		fmt.Sprintf("grid, patch and drop: a second grid whose region has the messages under their ClOrdIDs; put one by one, %d of a partition under way; the keys are patched by batches (PatchAll); drop is Clear", together),
	}
}

// Stop implements System.
func (g *Grid) Stop() error {
	if g.sql != nil {
		_ = g.sql.Close(context.Background()) // it ends with the gateway
	}
	if g.door != nil {
		g.door.Kill()
	}
	if g.c != nil {
		_ = g.c.Close() // it never fails
	}
	var err error
	if g.grid != nil {
		err = g.grid.Stop()
	}
	*g = Grid{Dir: g.Dir, node: g.node, gateway: g.gateway, orders: g.orders}
	return err
}
