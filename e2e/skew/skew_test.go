package skew

import (
	"errors"
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
	checkpoint := func(what string, versions ...int) {
		t.Helper()
		p.whole(web)
		orders.more(p, 500)
		p.speaks(web, versions)
		for _, exe := range []string{before, now} { // each version's client, through whatever node answers
			id := fmt.Sprintf("%s-%d", strings.ReplaceAll(what, " ", "-"), extra)
			run(t, exe, "submit", "--endpoint", strings.Join(p.data[:], ","), "--clordid", id, "--timeout", "30s")
			extra++
			if got := run(t, exe, "get", "--endpoint", strings.Join(p.data[:], ","), "--clordid", id, "--timeout", "30s"); !strings.Contains(got, id) {
				t.Errorf("%s: get prints\n%s", what, got)
			}
		}
		t.Logf("%s: versions %v between the nodes, %d orders acknowledged", what, versions, orders.acked.Load())
	}
	p.stop(1)
	p.start(1, now)
	checkpoint("half updated", 1)
	p.kill(0) // the newer takes over, and the older catches up from it
	orders.more(p, 200)
	p.start(0, before)
	checkpoint("older was killed", 1)
	p.kill(1)
	orders.more(p, 200)
	p.start(1, now)
	checkpoint("newer was killed", 1)
	p.sinks(c)
	p.stop(0)
	p.start(0, now)
	checkpoint("updated", wire.Version)
	p.stop(1)
	p.start(1, before)
	checkpoint("half rolled back", 1)
	total := uint64(orders.stop() + extra)
	p.judge(c, total)
	run(t, before, "verify", "--endpoint", strings.Join(p.data[:], ","), "--timeout", "30s")
	run(t, now, "verify", "--endpoint", strings.Join(p.data[:], ","), "--timeout", "30s", "--sink-dir", p.sinkDir, "--grid", "g")
}

// speaks looks at every connection between the nodes, where a node tells.
func (p *pair) speaks(web *http.Client, versions []int) {
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
			if conn.Version != versions[0] {
				p.t.Errorf("node %d speaks version %d with %s on its %s connection, want %d", i, conn.Version, conn.Member, conn.Kind, versions[0])
			}
		}
	}
	if asked == 0 {
		p.t.Errorf("no node tells which version it speaks")
	}
}

// sinks: what only the newer version has is refused by the older one in words, and
// the connection goes on.
func (p *pair) sinks(c *client.Client) {
	p.t.Helper()
	if _, err := c.SinkFiles(p.t.Context(), 0, p.data[0]); !errors.Is(err, client.ErrUnsupported) || !strings.Contains(err.Error(), "version 1") {
		p.t.Errorf("the older node's sink files: %v", err)
	}
	if files, err := c.SinkFiles(p.t.Context(), 0, p.data[1]); err != nil || len(files) == 0 {
		p.t.Errorf("the newer node's sink files: %v, %v", files, err)
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
