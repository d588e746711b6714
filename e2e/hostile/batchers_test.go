package hostile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/internal/race"
)

// patches changes 512 values of each partition at a time, the most that a batch takes, without pause.
func patches(t *testing.T, c *client.Client, stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-stop; cancel() }()
	r := c.Region("positions")
	var all []client.Entry
	var keys [][]byte
	for n := 0; len(keys) < 1024; n++ {
		key := fmt.Appendf(nil, "key-%d", n)
		all, keys = append(all, client.Entry{Key: key, Value: make([]byte, 300)}), append(keys, key)
	}
	if _, err := r.PutAll(ctx, all); err != nil && ctx.Err() == nil {
		t.Error(err)
		return
	}
	for n := byte(0); ctx.Err() == nil; n++ {
		got, err := r.PatchAll(ctx, keys, int(n), []byte{n})
		if ctx.Err() == nil && (err != nil || got.Changed != len(keys)) {
			t.Errorf("a patch of %d keys: %+v, %v", len(keys), got, err)
			return
		}
		if race.Enabled { // the detector would have them take the machine
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// Whatever clients that change as many keys at once as they may do, every order of another client is acknowledged and stays,
// and its quiet session too; what it does to latency is reported beside the same at another grid.
func TestBatchersDenyNothing(t *testing.T) {
	exe := program(t)
	args := []string{"--memory-limit", "2Gi", "--", "--regions=" + fileOf(t, "regions.yaml", "memory: 64Mi\nregions: [{name: positions}]\n")}
	n := neighbour{name: "4 patch 512 keys of each partition at a time", conns: 4, call: patches, busy: true, seen: "ordergrid_node_region_operations_total"}
	n.beside(t, start(t, exe, args...), start(t, exe, args...))
}
