package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// trades is a grid with partitions on these shards, each with its two copies there.
func trades(shards int32, homes ...int32) (*api.OrderGrid, []api.GridPartition) {
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "trades"}, Spec: api.OrderGridSpec{Shards: shards, Partitions: int32(len(homes)),
		Replication: api.ReplicationSpec{LearnerRate: resource.MustParse("256Mi")}}}
	var parts []api.GridPartition
	for i, home := range homes {
		p := api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: api.PartitionName("trades", int32(i))},
			Spec: api.GridPartitionSpec{GridRef: api.GridReference{Name: "trades"}, Partition: int32(i), Shard: home, Replicas: 2}}
		for ordinal := range int32(2) {
			p.Status.InSync = append(p.Status.InSync, api.Member{PodName: api.PodName("trades", home, ordinal)})
		}
		p.Status.Primary = &p.Status.InSync[0]
		parts = append(parts, p)
	}
	return grid, parts
}

// answersOf sets the sizes reported by the primaries.
func answersOf(parts []api.GridPartition, bytes ...int64) map[string]answer {
	answers := map[string]answer{}
	for i := range parts {
		pod := primaryPod(&parts[i])
		if answers[pod].node == nil {
			answers[pod] = answer{node: &nodestatus.Node{Pod: pod}}
		}
		answers[pod].node.Partitions = append(answers[pod].node.Partitions, nodestatus.Partition{Record: parts[i].Name, Bytes: bytes[i]})
	}
	return answers
}

func (p *rebalancePlan) text() (lines []string) {
	for _, m := range p.Moves {
		lines = append(lines, fmt.Sprintf("p%d %s>%d %s %s %s", m.Partition, shardsText(m.From), m.To, sizeText(m.Bytes), secondsText(m.Seconds), m.State))
	}
	return lines
}

func TestPlanOfARebalance(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name    string
		shards  int32
		homes   []int32
		asIf    int32
		bytes   []int64
		change  func(*api.OrderGrid, []api.GridPartition)
		moves   []string
		waiting string
		counts  []int
		summary string
	}{
		{name: "nothing to do", shards: 2, homes: []int32{0, 1, 0}, counts: []int{2, 1}, summary: "trades: nothing has to move; partitions by shard: 2, 1"},
		{name: "scale out, the smallest first", shards: 1, homes: []int32{0, 0, 0, 0, 0, 0}, asIf: 2, bytes: []int64{9 * gib, 2 * gib, 3 * gib, gib, 9 * gib, 9 * gib},
			moves:  []string{"p3 0>1 1.0 GiB 8s first", "p1 0>1 2.0 GiB 16s first", "p2 0>1 3.0 GiB 24s then"},
			counts: []int{3, 3}, summary: "trades: 3 to move, 6.0 GiB, about 40s at 256.0 MiB/s for each; after that, partitions by shard: 3, 3"},
		{name: "with a bandwidth, one at a time", shards: 2, homes: []int32{0, 0, 0, 0}, bytes: []int64{gib, gib, gib, gib},
			change: func(g *api.OrderGrid, _ []api.GridPartition) {
				g.Spec.Rebalance = &api.RebalanceSpec{MaxConcurrent: 1, Bandwidth: new(resource.MustParse("64Mi"))}
			},
			moves: []string{"p0 0>1 1.0 GiB 32s first", "p1 0>1 1.0 GiB 32s then"}, counts: []int{2, 2},
			summary: "about 1m4s at 64.0 MiB/s"},
		{name: "scale in", shards: 3, homes: []int32{0, 1, 2, 2}, asIf: 2, moves: []string{"p2 2>0 ? ? first", "p3 2>1 ? ? first"}, counts: []int{2, 2},
			summary: "trades: 2 to move; after that, partitions by shard: 2, 2"},
		{name: "one is under way, and ends first", shards: 2, homes: []int32{1, 0, 0, 0},
			change: func(g *api.OrderGrid, parts []api.GridPartition) {
				g.Spec.Rebalance = &api.RebalanceSpec{MaxConcurrent: 1}
				parts[0].Status.InSync[0].PodName = "trades-s0-0"
			},
			moves: []string{"p0 0>1 ? ? under way", "p1 0>1 ? ? then"}, counts: []int{2, 2}},
		{name: "the window is closed", shards: 2, homes: []int32{0, 0},
			change: func(g *api.OrderGrid, _ []api.GridPartition) {
				g.Status.MovesHeldUntil = new(metav1.NewTime(time.Date(2026, 11, 23, 22, 0, 0, 0, time.UTC)))
			},
			moves: []string{"p0 0>1 ? ? first"}, counts: []int{1, 1}, summary: "partitions by shard: 1, 1; held until 2026-11-23T22:00:00Z by spec.rebalance.window"},
		{name: "without all its copies none moves", shards: 2, homes: []int32{0, 0},
			change: func(_ *api.OrderGrid, parts []api.GridPartition) {
				parts[0].Status.InSync = parts[0].Status.InSync[:1]
				parts[1].Status = api.GridPartitionStatus{}
			},
			waiting: "p0 stays on shard 0: it has 1 of 2 copies", counts: []int{2, 0}, summary: "nothing may move now"},
	} {
		grid, parts := trades(c.shards, c.homes...)
		if c.change != nil {
			c.change(grid, parts)
		}
		var answers map[string]answer
		if c.bytes != nil {
			answers = answersOf(parts, c.bytes...)
		}
		p := planOf(grid, parts, answers, c.asIf)
		if !slices.Equal(p.text(), c.moves) || !slices.Equal(p.PartitionsByShard, c.counts) || !strings.Contains(p.summary(), c.summary) {
			t.Errorf("%s: moves %q, want %q; shards %v, want %v; summary %q, want %q", c.name, p.text(), c.moves, p.PartitionsByShard, c.counts, p.summary(), c.summary)
		}
		if c.waiting != "" && !slices.Contains(p.Waiting, c.waiting) {
			t.Errorf("%s: waiting %q, want %q", c.name, p.Waiting, c.waiting)
		}
	}
}

func TestProgressOfAMove(t *testing.T) {
	_, parts := trades(2, 1)
	p := &parts[0]
	if m := progressOf(p, nil, nil, time.Now()); m != nil || m.percent() != "-" || m.left() != "-" {
		t.Errorf("one that does not move: %+v", m)
	}
	p.Status.InSync = []api.Member{{PodName: "trades-s0-0"}, {PodName: "trades-s0-1"}}
	p.Status.Primary = &p.Status.InSync[0]
	answers := answersOf(parts, 1000)
	now := time.Unix(1e9, 0)
	began := []api.PartitionMove{{Partition: 0, From: []int32{0}, To: 1, StartTime: new(metav1.NewTime(now.Add(-30 * time.Second)))}}
	check := func(percent, left string) {
		t.Helper()
		if m := progressOf(p, answers, began, now); m.percent() != percent || m.left() != left {
			t.Errorf("%s and %s left, want %s and %s", m.percent(), m.left(), percent, left)
		}
	}
	check("?", "?") // the new pods were not reached
	for ordinal := range int32(2) {
		pod := api.PodName("trades", 1, ordinal)
		answers[pod] = answer{node: &nodestatus.Node{Pod: pod}}
	}
	check("0%", "?") // and have not opened it
	for pod, bytes := range map[string]int64{"trades-s1-0": 200, "trades-s1-1": 400} {
		answers[pod].node.Partitions = []nodestatus.Partition{{Record: p.Name, Bytes: bytes}}
	}
	check("30%", "1m10s")
	p.Status.InSync = append(p.Status.InSync, api.Member{PodName: "trades-s1-0"})
	check("70%", "13s")
	p.Status.InSync = append(p.Status.InSync, api.Member{PodName: "trades-s1-1"})
	check("99%", "1s") // the old copies are still there
	began = nil
	check("99%", "?")
}

func TestSizes(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1<<20 - 1: "1.0 MiB", 3 << 29: "1.5 GiB", 1<<63 - 1: "8.0 EiB"} {
		if got := sizeText(&bytes); got != want {
			t.Errorf("%d: %q, want %q", bytes, got, want)
		}
	}
}

// eight creates the remaining partitions of the stage's grid.
func (s *stage) eight() {
	s.t.Helper()
	for i := int32(2); i < 8; i++ {
		p := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: api.PartitionName("trades", i), Namespace: s.ns},
			Spec: api.GridPartitionSpec{GridRef: api.GridReference{Name: "trades"}, Partition: i, Replicas: 2, MinInSync: 1, PreferredPod: "trades-s0-0"}}
		s.must(s.cl.Create(s.t.Context(), p))
		s.configure(p.Name, member(0, "00000000000000aa"))
		s.configure(p.Name, member(0, "00000000000000aa"), member(1, "00000000000000bb"))
	}
}

// operator changes the grid's status, retrying conflicts.
func (s *stage) operator(change func(*api.OrderGridStatus)) {
	s.t.Helper()
	for {
		s.must(s.cl.Get(s.t.Context(), client.ObjectKeyFromObject(s.grid), s.grid))
		change(&s.grid.Status)
		err := s.cl.Status().Update(s.t.Context(), s.grid)
		if !apierrors.IsConflict(err) {
			s.must(err)
			return
		}
	}
}

// asked is the annotation of the grid.
func (s *stage) asked() string {
	s.t.Helper()
	s.must(s.cl.Get(s.t.Context(), client.ObjectKeyFromObject(s.grid), s.grid))
	return s.grid.Annotations[api.AnnotationRebalanceNow]
}

func TestRebalance(t *testing.T) {
	s := newStage(t)
	_, err := s.run("rebalance", "trades", "--dry-run")
	if err == nil || !strings.Contains(err.Error(), "2 of the 8 GridPartitions") {
		t.Fatalf("error %v", err)
	}
	s.eight()
	out, err := s.run("rebalance", "trades", "--nodes=false", "--wait")
	s.want(out, err, 0, "trades: nothing has to move; partitions by shard: 8\n")
	out, err = s.run("rebalance", "trades", "--nodes=false", "--dry-run", "--shards", "2")
	s.want(out, err, 0, "PARTITION  FROM  TO  BYTES  ABOUT  STATE\ntrades-p0  0     1   ?      ?      first\ntrades-p1  0     1   ?      ?      first\ntrades-p2  0     1   ?      ?      then\n",
		"trades: 4 to move; after that, partitions by shard: 4, 4\n")
	if a := s.asked(); a != "" {
		t.Fatalf("nothing had to move, and the annotation is %q", a)
	}

	s.grid.Spec.Shards = 2
	s.must(s.cl.Update(t.Context(), s.grid))
	out, err = s.run("rebalance", "trades", "--nodes=false", "-o", "json")
	var plan rebalancePlan
	if err != nil || json.Unmarshal([]byte(out), &plan) != nil || len(plan.Moves) != 4 || plan.Requested == "" || plan.Requested != s.asked() {
		t.Fatalf("error %v, requested %q\n%s", err, s.asked(), out)
	}
	if _, err := time.Parse(time.RFC3339, s.asked()); err != nil {
		t.Error(err)
	}
	out, err = s.run("rebalance", "trades", "--nodes=false", "--wait", "--timeout", "300ms")
	s.want(out, err, 1, "trades: not done after 300ms: 0 to move, 0 of them under way; the request stays until it is")

	before, done := s.asked(), make(chan struct{})
	go func() { // the operator
		defer close(done)
		for s.asked() == before {
			time.Sleep(10 * time.Millisecond)
		}
		began := metav1.NewTime(time.Now().Truncate(time.Second))
		s.operator(func(st *api.OrderGridStatus) {
			st.MovesLeft = 3
			st.Moves = []api.PartitionMove{{Partition: 2, From: []int32{0}, To: 1, StartTime: &began, Bytes: 3 << 29, WaitsFor: "trades-s1-0 to be ready"}}
		})
		time.Sleep(5 * pollEvery) // it is seen
		s.update("trades-p2", func(p *api.GridPartition) { p.Spec.Shard, p.Spec.PreferredPod = 1, "trades-s1-0" })
		s.operator(func(st *api.OrderGridStatus) { st.MovesLeft, st.Moves = 3, nil })
		time.Sleep(5 * pollEvery)
		s.operator(func(st *api.OrderGridStatus) {
			st.MovesLeft, st.LastHandledRebalance = 0, s.grid.Annotations[api.AnnotationRebalanceNow]
		})
	}()
	out, err = s.run("rebalance", "trades", "--nodes=false", "--wait")
	<-done
	s.want(out, err, 0, "trades: 4 to move; after that, partitions by shard: 4, 4; requested to begin now\n",
		"p2 moves from shard 0 to shard 1, 1.5 GiB\n4 to move, 1 of them under way; p2 waits for trades-s1-0 to be ready\n",
		"p2 is on shard 1, 2 of 2 copies", "3 to move, 0 of them under way\n", "trades: every partition is where it belongs, after ")

	for _, c := range []struct {
		want string
		args []string
	}{
		{"--shards 3 without --dry-run", []string{"--shards", "3"}},
		{"--shards: value 0, allowed: 1 to 256", []string{"--dry-run", "--shards", "0"}},
		{"--shards: value 9, allowed: 1 to 8, the partitions of trades", []string{"--dry-run", "--shards", "9"}},
		{"--dry-run and --wait exclude each other", []string{"--dry-run", "--wait"}},
		{"--timeout: value 0s, allowed: more than 0s", []string{"--wait", "--timeout", "0s"}},
		{`--output: value "text", allowed: table`, []string{"-o", "text"}},
	} {
		_, err := s.run(append([]string{"rebalance", "trades"}, c.args...)...)
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want a usage error with %q", c.args, err, c.want)
		}
	}
}
