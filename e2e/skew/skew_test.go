package skew

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/client/verify"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A rolling update, its rollback, and a kill of each node while the two are of different
// releases, all under load. With a partition each, the older node is the primary of the
// newer one and its backup at the same time.
func TestNeighbouringReleasesMix(t *testing.T) {
	for name, before := range map[string]func(*testing.T) string{"same": same, "history": before} {
		t.Run(name, func(t *testing.T) { mix(t, before(t), present(t)) })
	}
}

// begun is a pair of a program, with both copies in sync, and a client.
func begun(t *testing.T, exe string, web *http.Client) (*pair, *client.Client) {
	t.Helper()
	p := newPair(t)
	p.start(0, exe)
	p.start(1, exe)
	p.whole(web)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: p.data[:], Grid: "g", DialTimeout: time.Minute, RequestTimeout: time.Minute, IO: client.IONet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return p, c
}

func mix(t *testing.T, before, now string) {
	web := nodestatus.NewClient(5*time.Second, nil)
	p, c := begun(t, before, web)
	orders := p.load(c)
	defer orders.stop()
	extra := int64(0) // orders of the programs' own clients
	checkpoint := func(what string) {
		t.Helper()
		p.whole(web)
		orders.more(p, 500)
		p.speaks(web)
		for _, exe := range []string{before, now} { // each version's client, through whatever node answers
			id := fmt.Sprintf("%s-%d", strings.ReplaceAll(what, " ", "-"), extra)
			run(t, exe, "submit", "--endpoint", strings.Join(p.data[:], ","), "--clordid", id, "--timeout", "30s")
			extra++
			if got := run(t, exe, "get", "--endpoint", strings.Join(p.data[:], ","), "--clordid", id, "--timeout", "30s"); !strings.Contains(got, id) {
				t.Errorf("%s: get prints\n%s", what, got)
			}
		}
		t.Logf("%s: %d orders acknowledged", what, orders.acked.Load())
	}
	p.stop(1)
	p.start(1, now)
	checkpoint("half updated")
	p.kill(0) // the newer takes over, and the older catches up from it
	orders.more(p, 200)
	p.start(0, before)
	checkpoint("older was killed")
	p.kill(1)
	orders.more(p, 200)
	p.start(1, now)
	checkpoint("newer was killed")
	p.stop(0)
	p.start(0, now)
	checkpoint("updated")
	p.stop(1)
	p.start(1, before)
	checkpoint("half rolled back")
	total := uint64(orders.stop() + extra)
	p.judge(c, total)
	run(t, before, "verify", "--endpoint", strings.Join(p.data[:], ","), "--timeout", "30s")
	run(t, now, "verify", "--endpoint", strings.Join(p.data[:], ","), "--timeout", "30s", "--sink-dir", p.sinkDir, "--grid", "g")
}

// speaks looks at every connection between the nodes.
func (p *pair) speaks(web *http.Client) {
	p.t.Helper()
	asked := 0
	for i := range p.http {
		page, err := nodestatus.GetPeers(p.t.Context(), web, p.http[i])
		if err != nil {
			p.t.Fatal(err)
		}
		for _, conn := range page.Connections {
			if conn.Version == 0 {
				continue
			}
			asked++
			if conn.Version != wire.Version {
				p.t.Errorf("node %d speaks version %d with %s on its %s connection, want %d", i, conn.Version, conn.Member, conn.Kind, wire.Version)
			}
		}
	}
	if asked == 0 {
		p.t.Errorf("no node tells which version it speaks")
	}
}

// judge compares both copies of both logs: every order acknowledged is there once.
func (p *pair) judge(c *client.Client, orders uint64) {
	p.t.Helper()
	var r *verify.Result
	p.until("both copies hold everything", func() bool {
		if err := c.Refresh(p.t.Context()); err != nil {
			return false
		}
		var err error
		r, err = verify.Run(p.t.Context(), verify.FromClient(c), verify.Options{SinkDir: p.sinkDir, Grid: "g"})
		return err == nil && r.ExitCode() != verify.ExitIncomplete && (r.Problems > 0 || r.Orders >= orders)
	})
	if r.ExitCode() != verify.ExitEqual || r.Orders != orders {
		_ = r.WriteText(os.Stderr)
		p.t.Fatalf("%d orders were acknowledged, %d are in the logs; %d problems", orders, r.Orders, r.Problems)
	}
	for _, part := range r.Partitions {
		if len(part.Replicas) != 2 {
			p.t.Errorf("%s has %d copies", part.ID, len(part.Replicas))
		}
	}
}
