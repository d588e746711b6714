package client_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// movePartition has a partition's copies on two pods, the primary on the last, and waits
// until they are, and no others.
func movePartition(t *testing.T, c *client.Client, g *testgrid.Grid, p wire.PartitionID, shard int, pods ...string) {
	t.Helper()
	spec := fmt.Sprintf(`{"shard":%d,"pods":[%q,%q],"preferredPod":%q}`, shard, pods[0], pods[1], pods[1])
	if err := g.SetSpec("dev-"+p.String(), spec); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		if c.Refresh(t.Context()) != nil {
			return false
		}
		info := c.Table()[p]
		var there []string
		for _, m := range info.Members {
			if m.InSync {
				there = append(there, strings.SplitN(m.ID, "/", 2)[0])
			}
		}
		slices.Sort(there)
		return slices.Equal(there, pods) && strings.HasPrefix(info.Primary.ID, pods[1]+"/")
	})
}

// TestGridPartitionMoves: a partition moves from the two pods of a shard to the two of
// another while sessions have orders on the way, and back. Each order is acknowledged
// once, and is refused when it is sent again, with the place it got.
func TestGridPartitionMoves(t *testing.T) {
	g := testgrid.Run(t, "--shards", "2", "--", "--hand-over-delay", "100ms")
	c := dial(t, g, func(c *client.Config) { c.RequestTimeout = 2 * time.Minute })
	waitForRedundancy(t, c)
	const part = wire.PartitionID(0)
	l := newLoad(t)
	for i := range 2 {
		s, err := c.Session(part)
		if err != nil {
			t.Fatal(err)
		}
		l.submitter(fmt.Sprintf("MOVE-%d", i), 200*time.Microsecond, func(fix []byte) (client.Receipt, error) { return s.Submit(t.Context(), fix) })
	}
	l.submitter("ROUTED", time.Millisecond, func(fix []byte) (client.Receipt, error) { return c.Submit(t.Context(), fix) })
	s, err := c.Session(part)
	if err != nil {
		t.Fatal(err)
	}
	l.pipeline(s)
	for range 2 {
		movePartition(t, c, g, part, 1, "dev-s1-0", "dev-s1-1")
		time.Sleep(100 * time.Millisecond) // orders go there
		movePartition(t, c, g, part, 0, "dev-s0-0", "dev-s0-1")
		time.Sleep(100 * time.Millisecond)
	}
	movePartition(t, c, g, part, 1, "dev-s1-0", "dev-s1-1")
	l.end()
	checkLog(t, c, l.acked)
	st := c.Stats()
	if st.Refused+st.Unknown+st.NotSent+st.Violations+st.Evictions != 0 {
		t.Errorf("stats %+v", st)
	}
	again := 0
	for id, r := range l.acked {
		var reject *client.RejectError
		if _, err := c.SubmitTo(t.Context(), r.Partition, testgrid.Order(id, 305)); !errors.As(err, &reject) || reject.Code != wire.CodeDuplicateClOrdID || reject.Detail != r.Seq {
			t.Fatalf("order %s was acknowledged as %s, and sent again: %v", id, r, err)
		}
		if again++; again == 500 {
			break
		}
	}
	t.Logf("%d orders through 5 moves, %d sent again and refused; %d outages, the longest %s", len(l.acked), again, st.Outages, st.LongestOutage.Duration())
}
