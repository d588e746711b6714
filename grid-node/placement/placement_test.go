package placement

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// grid is a grid on which plans are executed.
type grid struct {
	shards     []Shard
	partitions []Partition
}

func newGrid(shards, partitions int) *grid {
	g := &grid{}
	for i := range shards {
		g.shards = append(g.shards, Shard{ID: i})
	}
	for i := range partitions {
		home := Home(i, shards)
		g.partitions = append(g.partitions, Partition{ID: i, Home: home, Held: []int{home}, Bytes: int64(1000 + i)})
	}
	return g
}

func (g *grid) begin(t *testing.T, p Plan) {
	t.Helper()
	for _, m := range p.Begin {
		q := &g.partitions[m.Partition]
		if q.Home != m.From {
			t.Fatalf("move %+v of a partition that is on shard %d", m, q.Home)
		}
		if q.Stays != "" || g.shards[m.To].Leaves || q.Moving && slices.Contains(q.Held, q.Home) {
			t.Fatalf("move %+v of %+v to %+v", m, *q, g.shards[m.To])
		}
		q.Home, q.Moving = m.To, !slices.Equal(q.Held, []int{m.To})
	}
}

// settle ends the moves in progress.
func (g *grid) settle() {
	for i := range g.partitions {
		q := &g.partitions[i]
		if q.Moving && g.shards[q.Home].Closed == "" {
			q.Moving, q.Held = false, []int{q.Home}
		}
	}
}

func (g *grid) counts() []int {
	n := make([]int, len(g.shards))
	for _, q := range g.partitions {
		n[q.Home]++
	}
	return n
}

// run executes plans until there is nothing to do, and returns the number of moves.
func (g *grid) run(t *testing.T, limit int) (moves int) {
	t.Helper()
	for range 10_000 {
		p := Next(g.shards, g.partitions, Limits{Concurrent: limit})
		if again := Next(g.shards, g.partitions, Limits{Concurrent: limit}); !reflect.DeepEqual(p, again) {
			t.Fatalf("the same observation gives %+v and %+v", p, again)
		}
		if len(p.Begin) == 0 {
			return moves
		}
		moves += len(p.Begin)
		g.begin(t, p)
		g.settle()
	}
	t.Fatal("the plans do not end")
	return 0
}

func TestScaleOutAndInMovesTheFewest(t *testing.T) {
	g := newGrid(1, 16)
	for _, step := range []struct {
		shards int
		counts []int
		moves  int
	}{{3, []int{6, 5, 5}, 10}, {2, []int{8, 8, 0}, 5}, {3, []int{6, 5, 5}, 5}, {1, []int{16, 0, 0}, 10}} {
		for i := range max(step.shards, len(g.shards)) {
			if i == len(g.shards) {
				g.shards = append(g.shards, Shard{ID: i})
			}
			g.shards[i].Leaves = i >= step.shards
		}
		if moves := g.run(t, 2); moves != step.moves || !slices.Equal(g.counts(), step.counts) {
			t.Errorf("%d shards: %d moves lead to %v, want %d and %v", step.shards, moves, g.counts(), step.moves, step.counts)
		}
	}
}

func TestLimitsOfAPlan(t *testing.T) {
	g := newGrid(1, 8)
	g.shards = append(g.shards, Shard{ID: 1})
	p := Next(g.shards, g.partitions, Limits{Concurrent: 1})
	if want := []Move{{Partition: 0, From: 0, To: 1, Bytes: 1000}}; !reflect.DeepEqual(p.Begin, want) || len(p.Queued) != 3 {
		t.Fatalf("plan %+v, want %+v first and 3 queued: the smallest partition goes first", p, want)
	}
	g.begin(t, p)
	if p := Next(g.shards, g.partitions, Limits{Concurrent: 1}); len(p.Begin) != 0 || len(p.Queued) != 3 {
		t.Errorf("plan %+v while a partition moves, want none to begin", p)
	}
	if p := Next(g.shards, g.partitions, Limits{Concurrent: 3}); len(p.Begin) != 2 {
		t.Errorf("plan %+v with a place for two more", p)
	}
}

func TestWhatMayNotMoveWaits(t *testing.T) {
	g := newGrid(1, 2)
	g.shards = append(g.shards, Shard{ID: 1, Closed: "g-s1-0 is not ready"})
	p := Next(g.shards, g.partitions, Limits{Concurrent: 1})
	if want := []string{"p0 waits for shard 1: g-s1-0 is not ready"}; len(p.Begin) != 0 || !slices.Equal(p.Waiting, want) {
		t.Errorf("plan %+v, want to wait: %q", p, want)
	}
	g.shards[1].Closed = ""
	for i := range g.partitions {
		g.partitions[i].Stays = "it has 1 of 2 copies"
	}
	p = Next(g.shards, g.partitions, Limits{Concurrent: 1})
	if want := "p0 stays on shard 0: it has 1 of 2 copies"; len(p.Begin)+len(p.Queued) != 0 || !slices.Contains(p.Waiting, want) {
		t.Errorf("plan %+v, want to wait: %q", p, want)
	}
}

// A move to a shard whose pods vanished before one was in sync is reverted; one with a
// copy there continues.
func TestMoveToALostShardIsTurnedBack(t *testing.T) {
	for _, c := range []struct {
		held []int
		want []Move
	}{{[]int{0}, []Move{{Partition: 3, From: 1, To: 0, Back: true}}}, {[]int{0, 1}, nil}} {
		g := newGrid(2, 4)
		g.partitions[3] = Partition{ID: 3, Home: 1, Held: c.held, Moving: true}
		g.shards[1].Closed = "g-s1-0 is not ready"
		if p := Next(g.shards, g.partitions, Limits{Concurrent: 1}); !reflect.DeepEqual(p.Begin, c.want) {
			t.Errorf("held by shards %v: plan %+v, want %+v", c.held, p, c.want)
		}
	}
}

func TestAnyGridEndsBalanced(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		g := newGrid(1+rng.IntN(6), 1+rng.IntN(40))
		for range rng.IntN(8) { // changes of mind in the middle of moves
			if rng.IntN(3) == 0 {
				g.shards = append(g.shards, Shard{ID: len(g.shards)})
			}
			for i := range g.shards {
				g.shards[i].Leaves = i > 0 && rng.IntN(3) == 0
				g.shards[i].Closed = ""
				if rng.IntN(4) == 0 {
					g.shards[i].Closed = "not ready"
				}
			}
			g.begin(t, Next(g.shards, g.partitions, Limits{Concurrent: 1 + rng.IntN(4)}))
			if rng.IntN(2) == 0 {
				g.settle()
			}
		}
		for i := range g.shards {
			g.shards[i].Closed = ""
		}
		g.settle()
		g.run(t, 1+rng.IntN(4))
		low, high := len(g.partitions), 0
		for i, n := range g.counts() {
			if g.shards[i].Leaves {
				if n != 0 {
					t.Fatalf("shard %d leaves and has %d partitions: %v", i, n, g.counts())
				}
				continue
			}
			low, high = min(low, n), max(high, n)
		}
		if high-low > 1 {
			t.Fatalf("partitions by shard: %v", g.counts())
		}
	}
}

func ExampleNext() {
	g := newGrid(1, 4)
	g.shards = append(g.shards, Shard{ID: 1})
	p := Next(g.shards, g.partitions, Limits{Concurrent: 1})
	fmt.Printf("%+v, %d more\n", p.Begin, len(p.Queued))
	// Output: [{Partition:0 From:0 To:1 Bytes:1000 Back:false}], 1 more
}
