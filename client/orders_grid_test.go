package client_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/shown"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestGridReadsOrders: a book is read order by order in pages and changes, at each copy in turn; places of any bytes are
// answered and harm nothing; books beyond those that a partition keeps changes of are refused at once.
func TestGridReadsOrders(t *testing.T) {
	var list strings.Builder
	for i := range 34 {
		fmt.Fprintf(&list, "- {symbol: S%d, tick: \"0.05\", lot: \"1\", low: \"0\", high: \"1000\"}\n", i)
	}
	file := filepath.Join(t.TempDir(), "instruments.yaml")
	if err := os.WriteFile(file, []byte(list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	g := testgrid.Start(t, testgrid.Options{Args: []string{"--partitions=1", "--", "--execution=match", "--instruments=" + file}})
	c := dial(t, g, func(c *client.Config) { c.BySymbol = true })
	waitForRedundancy(t, c)
	n := 0
	submit := func(fields string) {
		t.Helper()
		n++
		if _, err := c.Submit(t.Context(), message(fmt.Sprintf(fields, n))); err != nil {
			t.Fatal(err)
		}
	}
	const orders = 600 // more than two pages
	for i := range orders {
		submit(fmt.Sprintf("35=D 11=o%%d 55=S0 54=1 38=%d 40=2 44=%d", 1+i%7, 100+i%3))
	}
	var b client.OrderBook
	replicas := []string{""}
	for _, m := range c.Table()[0].Members {
		replicas = append(replicas, m.Address)
	}
	read := func() {
		t.Helper()
		for turn, more := 0, true; more || !b.Complete; turn++ {
			r, err := c.ReadOrders(t.Context(), "S0", &b, replicas[turn%len(replicas)])
			if errors.Is(err, client.ErrOverloaded) {
				continue // the copy is behind
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Apply(&b, nil); err != nil {
				t.Fatal(err)
			}
			more = r.More
		}
	}
	read()
	submit("35=D 11=t%d 55=S0 54=2 38=3 40=2 44=102")
	submit("35=F 11=c%d 41=o1 55=S0 54=1 38=1")
	traded := b.Orders(shown.Buy)[0]
	read()
	levels, err := c.ReadBook(t.Context(), "S0", 3, "")
	if err != nil || levels.Bids[0].Orders+levels.Bids[1].Orders+levels.Bids[2].Orders != uint32(b.Len()) || b.Len() >= orders || traded.Price != 10200 {
		t.Errorf("%d orders are read, the ladder is %+v, %v", b.Len(), levels.Bids, err)
	}

	garbagePlaces(t, g.Endpoints[0], &b)
	before := b.Len()
	read()
	if b.Len() != before {
		t.Errorf("%d orders, want %d: nothing has happened to the book", b.Len(), before)
	}

	var other client.OrderBook
	var refused *client.RejectError
	for i := 1; err == nil && i < 34; i++ {
		other.Forget()
		if _, err = c.ReadOrders(t.Context(), fmt.Sprint("S", i), &other, ""); err != nil && i < 32 {
			t.Fatalf("book %d of those that are kept: %v", i+1, err)
		}
	}
	if !errors.As(err, &refused) || refused.Code != wire.CodeCapacity || !strings.Contains(refused.Text, "32 books of p0") {
		t.Errorf("a book more than are kept: %v, want Capacity", err)
	}
	if other.Forget(); b.Complete {
		read() // those of before go on
	}
	if _, err := c.ReadOrders(t.Context(), "XYZ", &other, ""); !errors.As(err, &refused) || refused.Code != wire.CodeUnknownInstrument {
		t.Errorf("a symbol that is not traded: %v", err)
	}
}

// garbagePlaces asks for what is behind places of any bytes.
func garbagePlaces(t *testing.T, addr string, b *client.OrderBook) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test ends
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(98, 1))
	some := func(values ...uint64) uint64 {
		if random.IntN(4) == 0 {
			return random.Uint64()
		}
		return values[random.IntN(len(values))]
	}
	const questions = 2000
	out := wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient})
	go func() {
		for i := range uint64(questions) {
			m := wire.ReadOrders{ReqID: 1 + i, Most: uint16(1 + random.IntN(wire.MostShown)), Symbol: []byte("S0"),
				Since: wire.OrdersAt{Seq: some(0, 1, 2, 300, b.Through.Seq, math.MaxUint64), Index: uint32(some(0, 1, math.MaxUint32))},
				From:  wire.OrdersPlace{Side: uint8(1 + random.IntN(3)), Price: int64(some(0, 10000, 10100, 10200, 1<<63, math.MaxInt64)), Prio: some(0, 1, 100, 599, math.MaxUint64), Order: some(0, 1, 300, 601, math.MaxUint64)}}
			out = wire.AppendReadOrders(out, 0, &m)
			if _, err := conn.Write(out); err != nil {
				return // the reader says so
			}
			out = out[:0]
		}
	}()
	var in []byte
	chunk := make([]byte, 64<<10)
	answers, rejected := 0, 0
	for answers < questions {
		frame, rest, err := wire.Split(in)
		if err == nil && frame == nil {
			var k int
			if k, err = conn.Read(chunk); err == nil {
				in = append(in, chunk[:k]...)
				continue
			}
		}
		if err != nil {
			t.Fatalf("after %d answers: %v, closed: %v", answers, err, errors.Is(err, io.EOF))
		}
		switch wire.FrameType(frame) {
		case wire.TypeWelcome:
			answers--
		case wire.TypeReject:
			rejected++
		case wire.TypeOrdersShown:
			var m wire.OrdersShown
			if err := wire.DecodeOrdersShown(frame, &m); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("a question is answered by %s", wire.FrameType(frame))
		}
		answers++
		in = rest
	}
	if rejected == 0 || rejected == questions {
		t.Errorf("%d of %d questions were refused, want those about entries that are not there yet", rejected, questions)
	}
}
