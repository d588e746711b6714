package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	ogclient "github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// viewGrid is a grid of real processes with views, and its orders: 30 of two desks, of which the first was replaced, and
// what replaced it cancelled.
func viewGrid(t *testing.T) (g *testgrid.Grid, endpoint string) {
	t.Helper()
	g = testgrid.Start(t, testgrid.Options{MemoryMiB: 512, Args: []string{"--partitions=2", "--views=64Mi", "--view-rows=65536", "--view-values=2048", "--order-index=5001:text:Desk"}})
	c, err := ogclient.Dial(t.Context(), ogclient.Config{Endpoints: g.Endpoints, Grid: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it only submitted
	send := func(kind, id, orig string, desk, price int) {
		body := fmt.Sprintf("35=%s\x0149=P\x0156=G\x0134=1\x0152=20261123-14:30:00.123\x0111=%s\x01", kind, id)
		if orig != "" {
			body += "41=" + orig + "\x01"
		}
		body += fmt.Sprintf("55=IBM\x0154=1\x0160=20261123-14:30:00.123\x0138=100\x0140=2\x0144=%d.25\x015001=d%d\x01", price, desk)
		b := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s10=000\x01", len(body), body)
		order.Seal(b)
		if _, err := c.Submit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		send("D", fmt.Sprintf("o%d", i), "", i%2, 100+i)
	}
	send("G", "o0-r", "o0", 0, 90)
	send("F", "o0-c", "o0-r", 0, 90)
	return g, "--endpoint=" + strings.Join(g.Endpoints, ",")
}

func TestQueryOfARealGrid(t *testing.T) {
	_, endpoint := viewGrid(t)
	desk := "--column=5001:text:Desk"
	ask := func(args ...string) string {
		t.Helper()
		out, err := run(append([]string{"query", "dev", endpoint, desk, "--linearizable"}, args...)...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return out
	}
	t.Run("table", func(t *testing.T) {
		out := ask("select ClOrdID, Price, Account, Desk from orders where Price > 128.5 order by Price desc")
		if !strings.Contains(out, "CLORDID  PRICE   ACCOUNT  DESK\no29      129.25  -        d1\n") || !strings.Contains(out, "1 rows, ") || !strings.Contains(out, "p0 up to ") {
			t.Error(out)
		}
	})
	t.Run("json", func(t *testing.T) {
		lines := strings.Split(strings.TrimSpace(ask("select count(*) as n, Desk, sum(OrderQty) from orders group by Desk order by n desc", "-o", "json")), "\n")
		var row struct {
			N   int
			Sum json.Number `json:"sum_OrderQty"`
		}
		if err := json.Unmarshal([]byte(lines[0]), &row); err != nil || len(lines) != 2 || row.N != 17 || row.Sum != "1700" || !strings.HasPrefix(lines[0], `{"n":17,"Desk":"d0"`) {
			t.Errorf("%v, %+v\n%s", err, row, lines)
		}
	})
	t.Run("csv", func(t *testing.T) {
		rows, err := csv.NewReader(strings.NewReader(ask("select ClOrdID, OrigClOrdID from orders where MsgType <> 'D' order by Received", "-o", "csv"))).ReadAll()
		if err != nil || fmt.Sprint(rows) != "[[ClOrdID OrigClOrdID] [o0-r o0] [o0-c o0-r]]" {
			t.Errorf("%v, %v", rows, err)
		}
	})
	t.Run("explain", func(t *testing.T) {
		out := ask("select count(*) from orders where Symbol = 'IBM' and Price > 3", "--explain")
		if !strings.Contains(out, "p0:\nrows ") || !strings.Contains(out, "p1:\nrows ") || !strings.Contains(out, "Price range") {
			t.Error(out)
		}
	})
	t.Run("chain", func(t *testing.T) {
		out, err := run("get", "dev", "o0-r", endpoint, "--chain")
		i, j, k := strings.Index(out, " o0, order\n"), strings.Index(out, " o0-r, replaces o0\n"), strings.Index(out, " o0-c, cancels o0-r\n")
		if err != nil || i < 0 || j < i || k < j {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("wrong", func(t *testing.T) {
		for text, want := range map[string]string{
			"select Nothing from orders":                 `at character 8: "Nothing", allowed: Seq, ClOrdID`,
			"drop table orders":                          `at character 1: "drop", allowed: select`,
			"select Seq from orders, orders":             `at character 23: ",", allowed: where`,
			"select Seq from orders where Price = 'one'": "a number for Price",
		} {
			if _, err := run("query", "dev", text, endpoint); !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
		}
		if _, err := run("query", "dev", "select Tag7777 from orders", endpoint); err == nil || !strings.Contains(err.Error(), "others with orderIndex") {
			t.Errorf("a column that no view has: %v", err)
		}
		if _, err := run("query", "dev", "select Seq from orders", endpoint, "-o", "xml"); !errors.As(err, new(usageError)) {
			t.Errorf("a format that there is not: %v", err)
		}
	})
}

// TestWatchedQuery runs the program: it asks again and again, through the loss of a primary, and ends when interrupted.
func TestWatchedQuery(t *testing.T) {
	g, endpoint := viewGrid(t)
	program := testgrid.Program(t, "./cmd/kubectl-ordergrid")
	var out lockedBuffer
	cmd := exec.CommandContext(t.Context(), program, "query", "dev", "select count(*) from orders", endpoint, "--watch=100ms", "-o", "csv", "--linearizable")
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := func(n int) {
		t.Helper()
		for have := strings.Count(out.String(), "\n32\n"); strings.Count(out.String(), "\n32\n") < have+n; {
			if t.Context().Err() != nil {
				t.Fatal(out.String())
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	answers(3)
	pid, err := g.PIDOf(g.Endpoints[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	answers(3)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	for line := range strings.Lines(out.String()) {
		if line != "count\n" && line != "32\n" && line != "\n" {
			t.Errorf("%q", line)
		}
	}
}
