package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	ogclient "github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// realGrid is a grid of real processes, with the flags to reach it.
type realGrid struct {
	t                 *testing.T
	client            *ogclient.Client
	maker             *fixorder.Maker
	id                fixorder.ID
	endpoint, metrics string
	index             int64
}

func startGrid(t *testing.T) *realGrid {
	t.Helper()
	g := testgrid.Start(t, testgrid.Options{MemoryMiB: 256})
	r := &realGrid{t: t, id: fixorder.ID{Run: 7}, endpoint: "--endpoint=" + strings.Join(g.Endpoints, ",")}
	var hosts []string
	for _, base := range g.HTTP {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, u.Host)
	}
	r.metrics = "--metrics=" + strings.Join(hosts, ",")
	var err error
	if r.maker, err = fixorder.NewMaker(fixorder.FIX42, r.id); err != nil {
		t.Fatal(err)
	}
	if r.client, err = ogclient.Dial(t.Context(), ogclient.Config{Endpoints: g.Endpoints, Grid: "dev"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.client.Close() })
	return r
}

func (r *realGrid) submit(n int) (receipts []ogclient.Receipt) {
	r.t.Helper()
	for range n {
		receipt, err := r.client.Submit(r.t.Context(), r.maker.Make(r.index, r.index+1, time.Now(), time.Now()))
		if err != nil {
			r.t.Fatal(err)
		}
		receipts = append(receipts, receipt)
		r.index++
	}
	return receipts
}

func TestOrdersOfARealGrid(t *testing.T) {
	r := startGrid(t)
	receipts := r.submit(40)

	t.Run("get", func(t *testing.T) {
		out, err := run("get", "dev", r.id.ClOrdID(3), receipts[4].ID().String(), r.endpoint)
		if err != nil || !strings.Contains(out, "ClOrdID   "+r.id.ClOrdID(3)) || !strings.Contains(out, "id        "+receipts[4].ID().String()) {
			t.Errorf("error %v\n%s", err, out)
		}
		out, err = run("get", "dev", r.id.ClOrdID(3), "unknown", r.endpoint, "-o", "json")
		var code exitError
		if !errors.As(err, &code) || int(code) != exitNotFound || !strings.Contains(out, "unknown: ") {
			t.Errorf("error %v\n%s", err, out)
		}
		out, err = run("get", "dev", "clordid:"+r.id.ClOrdID(3), r.endpoint, "-o", "fix")
		if err != nil || fixorder.Check([]byte(out)) != nil {
			t.Errorf("error %v, the message is %q", err, out)
		}
	})

	t.Run("get by the name of a receipt", func(t *testing.T) {
		name := receipts[4].Name()
		if out, err := run("get", "dev", name, r.endpoint); err != nil || !strings.Contains(out, name[len(name)-16:]) {
			t.Fatalf("%s: error %v\n%s", name, err, out)
		}
		former := name[:len(name)-16] + "00000000000000ff" // an earlier grid's
		var code exitError
		if out, err := run("get", "dev", former, r.endpoint); !errors.As(err, &code) || !strings.Contains(out, "another order, "+name) {
			t.Fatalf("%s: error %v\n%s", former, err, out)
		}
		if _, err := run("get", "dev", "p1/17@3-ff", r.endpoint); !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), "16 hex digits") {
			t.Fatalf("error %v, want a usage error with the allowed values", err)
		}
	})

	t.Run("tail", func(t *testing.T) {
		out, err := run("tail", "dev", r.endpoint, "-o", "json", "--lines", "1000")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for line := range strings.Lines(out) {
			var o struct{ ClOrdID string }
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			seen[o.ClOrdID] = true
		}
		if len(seen) != 40 || !seen[r.id.ClOrdID(0)] || !seen[r.id.ClOrdID(39)] {
			t.Errorf("%d orders, want all 40", len(seen))
		}
		out, err = run("tail", "dev", r.endpoint, "-l", "3", "--partition", receipts[39].Partition.String())
		if lines := strings.Split(strings.TrimSpace(out), "\n"); err != nil || len(lines) != 3 || !strings.Contains(lines[2], r.id.ClOrdID(39)) {
			t.Errorf("error %v, want the last 3 orders of that partition:\n%s", err, out)
		}
	})

	t.Run("top", func(t *testing.T) {
		stop := make(chan struct{})
		go func() {
			time.Sleep(50 * time.Millisecond) // after the first poll; more follow until the second
			for i := int64(1000); ; i++ {
				select {
				case <-stop:
					return
				default:
					_, _ = r.client.Submit(t.Context(), r.maker.Make(i, i, time.Now(), time.Now()))
				}
			}
		}()
		defer close(stop)
		out, err := run("top", "dev", r.metrics, "--interval", "300ms", "-o", "json")
		var rows []usage
		if err != nil || json.Unmarshal([]byte(out), &rows) != nil || len(rows) != 1 {
			t.Fatalf("error %v\n%s", err, out)
		}
		if u := rows[0]; u.Shard != "all" || u.Orders <= 0 || u.P50Seconds <= 0 || u.P99Seconds < u.P50Seconds || u.MemoryUsed <= 0 || u.MemoryLimit <= u.MemoryUsed {
			t.Errorf("%+v", u)
		}
		out, err = run("top", "dev", r.metrics, "--interval", "100ms", "--pods")
		if err != nil || strings.Count(out, "127.0.0.1:") != 2 || !strings.Contains(out, "ORDERS/S") || !strings.Contains(out, "FULL IN") {
			t.Errorf("error %v\n%s", err, out)
		}
	})

	t.Run("no node", func(t *testing.T) {
		if out, err := run("top", "dev", "--metrics", "127.0.0.1:1", "--interval", "100ms"); err == nil || !strings.Contains(err.Error(), "no node of dev could be read") {
			t.Errorf("error %v\n%s", err, out)
		}
	})
}

func TestOrderCommandsRefuse(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"get g", "1 arguments, allowed: an OrderGrid and one order or more"},
		{"get g id --mode fast", `--mode: value "fast", allowed: confirmed, leased, backup`},
		{"get g id -o yaml", `--output: value "yaml", allowed: text, json, fix`},
		{"tail g --lines -1", "--lines: value -1, allowed: 0 to 1000000"},
		{"tail g --partition p", `partition is "p", allowed: p<number>`},
		{"top g --interval 1ms", "--interval: value 1ms, allowed: 100ms or more"},
		{"top g --count -2", "--count: value -2, allowed: 0 or more"},
		{"top g -o wide", `--output: value "wide", allowed: text, json`},
	} {
		_, err := run(strings.Fields(tc.args)...)
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(fmt.Sprint(err), tc.want) {
			t.Errorf("%s: error %v, want a usage error with %q", tc.args, err, tc.want)
		}
	}
}
