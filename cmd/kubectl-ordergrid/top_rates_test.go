package main

import (
	"testing"

	"github.com/ordergrid/ordergrid/internal/histogram"
)

// TestSinkAges: of several sinks the one with the largest lag is named, of all nodes of a shard.
func TestSinkAges(t *testing.T) {
	nodes := []usage{
		{Shard: "s0", SinkAges: sinkAges{"audit": 0.5, "file": 3}},
		{Shard: "s0", SinkAges: sinkAges{"audit": 12}},
		{Shard: "s0"},
		{Shard: "s1", SinkAges: sinkAges{"file": 0.25}},
		{Shard: "s2"},
	}
	for i := range nodes {
		nodes[i].ordersLatency = &histogram.Native{}
	}
	rows := byShard(nodes)
	for i, want := range []string{"audit 12s", "250ms", "-"} {
		if got := rows[i].SinkAges.String(); got != want {
			t.Errorf("shard %s: %q, want %q", rows[i].Shard, got, want)
		}
	}
}
