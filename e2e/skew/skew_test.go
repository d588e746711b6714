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
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A rolling update, its rollback, and a kill of each node while the two speak
// different versions, all under load. With a partition each, the older node is the
// primary of the newer one and its backup at the same time.
func TestNeighbouringVersionsMix(t *testing.T) {
	if wire.Version-wire.MinVersion != 1 {
		t.Fatalf("this build speaks %d..%d, want two neighbouring versions", wire.MinVersion, wire.Version)
	}
	for name, before := range map[string]func(*testing.T) string{"compat": compat, "history": before} {
		t.Run(name, func(t *testing.T) { mix(t, before(t), present(t)) })
	}
}

func mix(t *testing.T, before, now string) {
	p := newPair(t)
	web := nodestatus.NewClient(5*time.Second, nil)
	p.start(0, before)
	p.start(1, before)
	p.whole(web)
	c, err := client.Dial(t.Context(), client.Config{Endpoints: p.data[:], Grid: "g", DialTimeout: time.Minute, RequestTimeout: time.Minute, IO: client.IONet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	orders := p.load(c)
	defer orders.stop()
	extra := int64(0) // orders of the programs' own clients
	checkpoint := func(what string, version int) {
		t.Helper()
		p.whole(web)
		orders.more(p, 500)
		p.speaks(web, version)
		for _, exe := range []string{before, now} { // each version's client, through whatever node answers
			id := fmt.Sprintf("%s-%d", strings.ReplaceAll(what, " ", "-"), extra)
			run(t, exe, "submit", "--endpoint", strings.Join(p.data[:], ","), "--clordid", id, "--timeout", "30s")
			extra++
			if got := run(t, exe, "get", "--endpoint", strings.Join(p.data[:], ","), "--clordid", id, "--timeout", "30s"); !strings.Contains(got, id) {
				t.Errorf("%s: get prints\n%s", what, got)
			}
		}
		t.Logf("%s: version %d between the nodes, %d orders acknowledged", what, version, orders.acked.Load())
	}
	p.stop(1)
	p.start(1, now)
	checkpoint("half updated", wire.MinVersion)
	p.kill(0) // the newer takes over, and the older catches up from it
	orders.more(p, 200)
	p.start(0, before)
	checkpoint("older was killed", wire.MinVersion)
	p.kill(1)
	orders.more(p, 200)
	p.start(1, now)
	checkpoint("newer was killed", wire.MinVersion)
	p.stop(0)
	p.start(0, now)
	checkpoint("updated", wire.Version)
	p.unproved("") // the last pod of before is gone: from here on nodes prove the key
	checkpoint("proved", wire.Version)
	p.kill(0)
	orders.more(p, 200)
	p.start(0, now)
	checkpoint("proved and killed", wire.Version)
	p.unproved(arbiter.UnprovedAccept) // the way back
	p.stop(1)
	p.start(1, before)
	checkpoint("half rolled back", wire.MinVersion)
	total := uint64(orders.stop() + extra)
	p.judge(c, total)
	run(t, before, "verify", "--endpoint", strings.Join(p.data[:], ","), "--timeout", "30s")
	run(t, now, "verify", "--endpoint", strings.Join(p.data[:], ","), "--timeout", "30s", "--sink-dir", p.sinkDir, "--grid", "g")
}

// speaks looks at every connection between the nodes, where a node tells.
func (p *pair) speaks(web *http.Client, version int) {
	p.t.Helper()
	asked := 0
	for i := range p.http {
		page, err := nodestatus.GetPeers(p.t.Context(), web, p.http[i])
		if err != nil {
			continue // of a release that has no such page
		}
		for _, conn := range page.Connections {
			if conn.Version == 0 {
				continue
			}
			asked++
			if conn.Version != version {
				p.t.Errorf("node %d speaks version %d with %s on its %s connection, want %d", i, conn.Version, conn.Member, conn.Kind, version)
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
