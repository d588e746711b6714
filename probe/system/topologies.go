package system

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// coherencePairs are the writers that each have a reader, and coherenceTime how long they write.
const (
	coherencePairs = 4
	coherenceTime  = 2 * time.Second
	// timedOps are the writes and the reads, one after the other, that are timed.
	timedOps = 2000
)

// topology is a shape of a grid, and how it is read.
type topology struct {
	name             string
	shards, replicas int
	mode             client.ReadMode // 0: by a near cache
	coherent         bool            // reads never return less than what was acknowledged before
}

// topologiesOf returns those of a mode, and how many objects each has.
func topologiesOf(s published.Scenario, mode scenario.Mode) (list []topology, objects int, err error) {
	exact, scaled, err := s.TopologyNodes()
	most, objects := scaled, 20_000
	switch mode {
	case scenario.Exact:
		most, objects = exact, exactObjects
	case scenario.Quick:
		objects = 2_000
	}
	return []topology{
		{"local: one node, one copy", 1, 1, client.Confirmed, true},
		{"partitioned, no copy", most / 2, 1, client.Confirmed, true},
		{"partitioned, one copy", most / 2, 2, client.Confirmed, true},
		{"partitioned, one copy, by lease", most / 2, 2, client.Leased, true},
		{"near: the same, with a cache in the client", most / 2, 2, 0, false},
		{"replicated: on all of three nodes", 1, 3, client.Confirmed, true},
		{"replicated, read at the copies", 1, 3, client.Backup, false},
	}, objects, err
}

// exactObjects are a million, as of the report's tables.
const exactObjects = 1_000_000

// topologies has the same objects in grids of several shapes: what a read and a write take, what the objects take in
// memory, how many nodes may be lost at once, and whether a reader ever gets less than what was acknowledged.
func topologies(ctx context.Context, _ *published.Data, s published.Scenario, o Options, r *Report) error {
	list, n, err := topologiesOf(s, o.Mode)
	if err != nil {
		return err
	}
	r.Columns = []string{"topology", "nodes", "copies", "read us", "write us", "MiB of a node", "MiB of all", "nodes killed at once", "objects left", "reads compared", "stale", "coherent"}
	r.Differences = append(r.Differences,
		fmt.Sprintf("the report describes its topologies in words and has no figures; %d objects of %d bytes in a region, asked by one client, one request at a time; a near cache has every value that is read in turn, and drops what is changed; reads and writes are medians of %d", n, objectSize, timedOps),
		"an optimistic cache is not here: copies are never without order; a replicated one is a shard of as many copies as nodes, up to three",
		fmt.Sprintf("stale: %d clients each write a rising number, and another client reads it: a read that begins after the acknowledgement of a number and returns a lower one", coherencePairs))
	for _, t := range list {
		if err := o.topology(ctx, r, t, n); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return o.topologyControl(ctx, r)
}

// topology measures one.
func (o *Options) topology(ctx context.Context, r *Report, t topology, n int) (err error) {
	k, err := o.newObjectsOn(ctx, n, t.shards, t.replicas, nil, "positions", "shared")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	o.Say("%s: %d objects on %d nodes", t.name, n, t.shards*t.replicas)
	if err := k.fillOwn(ctx, "positions", n); err != nil {
		return err
	}
	positions, shared := k.c.Region("positions"), k.c.Region("shared")
	get := func(ctx context.Context, r *client.Region, key []byte) (client.Entry, error) {
		return r.Get(ctx, key, client.WithMode(t.mode))
	}
	if t.mode == 0 {
		near, end, err := nearly(positions, shared)
		if err != nil {
			return err
		}
		defer end()
		get = near
	}
	read, write, err := timedBoth(ctx, positions, get, n)
	if err != nil {
		return err
	}
	compared, stale, err := k.coherence(ctx, func(ctx context.Context, key []byte) (uint64, error) {
		e, err := get(ctx, shared, key)
		if err != nil || len(e.Value) != 8 {
			return 0, err
		}
		return binary.BigEndian.Uint64(e.Value), nil
	})
	if err != nil {
		return err
	}
	bytes, err := k.size(ctx, "positions")
	if err != nil {
		return err
	}
	left := n
	if t.replicas > 1 {
		if left, err = k.withoutCopies(ctx, t, n); err != nil {
			return err
		}
	}
	mib := func(b uint64) string { return fmt.Sprintf("%.1f", float64(b)/(1<<20)) }
	r.row(t.name, t.shards*t.replicas, t.replicas-1, fmt.Sprintf("%.1f", micros(read)), fmt.Sprintf("%.1f", micros(write)), mib(bytes/uint64(t.shards)), mib(bytes*uint64(t.replicas)),
		(t.replicas-1)*t.shards, left, compared, stale, t.coherent)
	switch {
	case left != n:
		r.judge(Wrong, "%s: %d of %d objects are left without %d nodes", t.name, left, n, (t.replicas-1)*t.shards)
	case compared == 0:
		r.judge(Invalid, "%s: no read was compared", t.name)
	case t.coherent && stale > 0:
		r.judge(Wrong, "%s: %d of %d reads returned less than what was acknowledged before", t.name, stale, compared)
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// timedBoth are the medians of a read and of a write, one at a time.
func timedBoth(ctx context.Context, r *client.Region, get reader, n int) (read, write time.Duration, err error) {
	one := func(f func(i int) error) (time.Duration, error) {
		var all []float64
		for i := range timedOps {
			begun := time.Now()
			if err := f(i * 31 % n); err != nil {
				return 0, err
			}
			all = append(all, float64(time.Since(begun)))
		}
		return time.Duration(median(all)), nil
	}
	for range 2 { // the second time what can be kept is kept
		if read, err = one(func(i int) error {
			key := objectKey(i)
			e, err := get(ctx, r, key)
			if err == nil && !ownValue(key, e.Value) {
				err = fmt.Errorf("object %s has another value", key)
			}
			return err
		}); err != nil {
			return 0, 0, err
		}
	}
	write, err = one(func(i int) error {
		_, err := r.Put(ctx, objectKey(i), objectValue(string(objectKey(i))))
		return err
	})
	return read, write, err
}

// coherence has writers raise a number each, and readers compare what they read with what had been acknowledged before.
func (k *objects) coherence(ctx context.Context, read func(ctx context.Context, key []byte) (uint64, error)) (compared, stale int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, coherenceTime)
	defer cancel()
	var acked [coherencePairs]atomic.Uint64
	var all, old atomic.Int64
	r := k.c.Region("shared")
	err = eachBy(ctx, 2*coherencePairs, 2*coherencePairs, func(ctx context.Context, i int) error {
		key, last := objectKey(i/2), &acked[i/2]
		for n := uint64(1); ctx.Err() == nil; n++ {
			if i%2 == 0 {
				if _, err := r.Put(ctx, key, binary.BigEndian.AppendUint64(nil, n)); err != nil {
					return err
				}
				last.Store(n)
				continue
			}
			floor := last.Load()
			if floor == 0 {
				continue // nothing is acknowledged
			}
			v, err := read(ctx, key)
			if err != nil {
				return err
			}
			if all.Add(1); v < floor {
				old.Add(1)
			}
		}
		return nil
	})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = nil // the time is over
	}
	return all.Load(), old.Load(), err
}

// withoutCopies kills all nodes but one of each shard at once, and counts what is left.
func (k *objects) withoutCopies(ctx context.Context, t topology, n int) (int, error) {
	if err := killed(k.grid, func(ordinal int) bool { return ordinal < t.replicas-1 }, t.replicas); err != nil {
		return 0, err
	}
	all, _, err := k.counted(ctx, "positions", "")
	return all, err
}

// killed kills the processes of nodes by their ordinals.
func killed(g *devgrid.Grid, which func(ordinal int) bool, replicas int) error {
	for i, pid := range g.PIDs {
		if !which(i % replicas) {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return nil
}

// topologyControl reads through a map that keeps each value for good, as a near cache without invalidation: its stale reads
// have to be found. And it kills the only copy of a grid: its objects must not be counted.
func (o *Options) topologyControl(ctx context.Context, r *Report) (err error) {
	const n = 1000
	k, err := o.newObjectsOn(ctx, n, 1, 1, nil, "positions", "shared")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	if err := k.fillOwn(ctx, "positions", n); err != nil {
		return err
	}
	var kept [coherencePairs]atomic.Uint64
	compared, stale, err := k.coherence(ctx, func(ctx context.Context, key []byte) (uint64, error) {
		at := &kept[key[len(key)-1]-'0']
		if v := at.Load(); v > 0 {
			return v, nil
		}
		e, err := k.c.Region("shared").Get(ctx, key)
		if err != nil || len(e.Value) != 8 {
			return 0, err
		}
		at.Store(binary.BigEndian.Uint64(e.Value))
		return at.Load(), nil
	})
	if err != nil {
		return err
	}
	if err := killed(k.grid, func(int) bool { return true }, 1); err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, blind)
	defer cancel()
	left, _, err := k.counted(asking, "positions", "")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.Control = fmt.Sprintf("a cache of values that are never renewed returned %d stale of %d reads; of %d objects whose only copy was killed %d are counted (%v)", stale, compared, n, left, err)
	if stale == 0 || err == nil && left == n {
		r.judge(Invalid, "the control found %d stale reads, and %d of %d objects whose only copy was killed: neither would be seen", stale, left, n)
	}
	return nil
}
