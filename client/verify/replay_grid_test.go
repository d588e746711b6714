package verify_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// limitOrder is a new order of IBM.
func limitOrder(id string, side, qty int, price string) []byte {
	body := fmt.Sprintf("35=D\x0149=C\x0156=G\x0134=2\x0152=20261123-09:30:00\x0160=20261123-09:30:00\x0111=%s\x011=acc\x0155=IBM\x0154=%d\x0138=%d\x0140=2\x0144=%s\x01", id, side, qty, price)
	m := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
	order.Seal(m)
	return m
}

// wrongCopy is a grid of which one copy says something else about a trade.
type wrongCopy struct {
	verify.Grid
	address string
	change  func(trade []client.Execution) []client.Execution // two executions
}

func (w *wrongCopy) ReadExecutions(ctx context.Context, p wire.PartitionID, address string, from uint64, fn func(client.Execution) error) (uint64, error) {
	var trade []client.Execution
	changed := address != w.address
	return w.Grid.(verify.Executions).ReadExecutions(ctx, p, address, from, func(e client.Execution) error {
		if changed || e.Kind != client.ExecFilled {
			return fn(e)
		}
		if trade = append(trade, e); len(trade) < 2 {
			return nil
		}
		changed = true
		for _, x := range w.change(trade) {
			if err := fn(x); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestReplayOfARealGrid: orders trade, the primary is killed; then what every copy executed is what
// its log says. A copy that lacks a trade, has one twice, or one of another owner or order, is named.
func TestReplayOfARealGrid(t *testing.T) {
	g := testgrid.Matching(t)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, Grid: "dev", BySymbol: true, RequestTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	part := c.RouteSymbol("IBM")
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		if i == 150 {
			redundant(t, c, part)
			pid, err := g.PIDOf(c.Table()[part].Primary.Address)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Submit(t.Context(), limitOrder(fmt.Sprint("r", i), 1+random.IntN(2), 1+random.IntN(50), fmt.Sprintf("125.%02d", 5*random.IntN(4)))); err != nil {
			t.Fatal(err)
		}
	}
	redundant(t, c, part)
	run := func(g verify.Grid) (*verify.Result, string) {
		t.Helper()
		r, err := verify.Run(t.Context(), g, verify.Options{Replay: true, Partitions: []wire.PartitionID{part}})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		r.WriteText(&text) //nolint:errcheck // a buffer
		return r, text.String()
	}
	r, text := run(verify.FromClient(c))
	re := r.Partitions[0].Replay
	if r.ExitCode() != verify.ExitEqual || r.Orders != 300 || re.Orders != 300 || re.Trades < 50 || len(re.Copies) != 2 || re.Copies[1].Compared != re.Records {
		t.Fatalf("exit code %d:\n%s", r.ExitCode(), text)
	}
	t.Logf("\n%s", text)
	for name, change := range map[string]func([]client.Execution) []client.Execution{
		"lost":          func([]client.Execution) []client.Execution { return nil },
		"twice":         func(x []client.Execution) []client.Execution { return append(x, x...) },
		"another order": func(x []client.Execution) []client.Execution { x[1].Order++; x[0].Other++; return x },
		"another owner": func(x []client.Execution) []client.Execution { x[0].Owner++; return x },
	} {
		address := c.Table()[part].Members[1].Address
		r, text := run(&wrongCopy{Grid: verify.FromClient(c), address: address, change: change})
		if r.ExitCode() != verify.ExitDifferent || !strings.Contains(text, address+": execution "+part.String()+"/") {
			t.Errorf("%s: exit code %d:\n%s", name, r.ExitCode(), text)
		}
	}
}

func redundant(t *testing.T, c *client.Client, part wire.PartitionID) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c.Refresh(t.Context()) != nil {
			continue
		}
		in := 0
		for _, m := range c.Table()[part].Members {
			if m.InSync {
				in++
			}
		}
		if in == 2 && c.Table()[part].Primary.ID != "" {
			return
		}
	}
	t.Fatal("never two copies in sync")
}
