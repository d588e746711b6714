package verify

import (
	"context"
	"fmt"
	"sync"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Grid is what Run reads from.
type Grid interface {
	Table() []client.PartitionInfo
	// OpenLog reads the log of the replica at address from seq 1.
	OpenLog(partition wire.PartitionID, address string) Log
}

// Log is the log of one replica, read chunk by chunk.
type Log interface {
	// Next calls fn for the entries of the next chunk, which are dense and
	// valid during the call, and returns their number; 0 at the end of the
	// committed prefix.
	Next(ctx context.Context, fn func(client.LogEntry) error) (int, error)
	// End is where the replica's log stood at the last chunk.
	End() client.LogEnd
}

// FromClient makes a Grid of a client.
func FromClient(c *client.Client) Grid { return clientGrid{c} }

type clientGrid struct{ *client.Client }

func (g clientGrid) OpenLog(p wire.PartitionID, address string) Log {
	return g.NewLogReader(p, address)
}

// Options of Run.
type Options struct {
	// Partitions to check; empty: all.
	Partitions []wire.PartitionID
	// SinkDir is a directory of the file sink: files named <Grid>-<partition>.log
	// in it and in its sub-directories. Empty: sinks are not checked.
	SinkDir string
	// Grid is the name that sink files begin with. Required with SinkDir.
	Grid string
	// NodeSinks asks the nodes for the files of their sinks; g is a NodeSinks then, and
	// SinkDir empty.
	NodeSinks bool
	// Replay matches the logs again, and compares the executions of every copy; g is an
	// Executions then. Memory: 400 bytes for each order that rests, and copy, besides.
	Replay bool
}

// Run checks the grid. The error is about the call itself; what is wrong with
// the grid is in the Result. Memory: a few MiB per replica, 16 bytes per order of the
// partition being checked, and at most 64 MiB for what is compared between partitions:
// with more than four million orders in all, 16 bytes each go to a temporary file.
func Run(ctx context.Context, g Grid, o Options) (*Result, error) {
	if o.SinkDir != "" && o.Grid == "" {
		return nil, fmt.Errorf("verify: Grid is empty, allowed: the grid's name, which sink files begin with")
	}
	if _, ok := g.(NodeSinks); o.NodeSinks && (!ok || o.SinkDir != "") {
		return nil, fmt.Errorf("verify: NodeSinks with SinkDir %q of a %T, allowed: without SinkDir, of what FromClient makes", o.SinkDir, g)
	}
	if _, ok := g.(Executions); o.Replay && !ok {
		return nil, fmt.Errorf("verify: Replay of a %T, allowed: of what FromClient makes", g)
	}
	table := g.Table()
	want := map[wire.PartitionID]bool{}
	for _, p := range o.Partitions {
		want[p] = true
	}
	r := &Result{Partitions: []Partition{}}
	across := newAcross(acrossMemory)
	defer across.close()
	for _, info := range table {
		if len(want) > 0 && !want[info.ID] {
			continue
		}
		delete(want, info.ID)
		p, err := checkPartition(ctx, g, info, &o, across)
		if err != nil {
			return nil, err
		}
		r.Partitions = append(r.Partitions, *p)
		if len(o.Partitions) > 0 && len(want) == 0 {
			break
		}
	}
	for p := range want {
		return nil, fmt.Errorf("verify: partition is %s, allowed: one of the grid's %d partitions", p, len(table))
	}
	across.report(r)
	r.sum()
	return r, nil
}

// checkPartition reads all replicas at the same time and compares them entry by
// entry, so that memory does not grow with the log.
func checkPartition(ctx context.Context, g Grid, info client.PartitionInfo, o *Options, across *across) (*Partition, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &Partition{ID: info.ID.String(), Epoch: info.Epoch, Lineage: info.Lineage, Hash: fmt.Sprintf("%016x", 0)}
	if len(info.Members) == 0 {
		p.problem("no replica is known: the partition has no configuration yet, or no node of it answers")
	}
	feeds := make([]*feed, len(info.Members))
	var wg sync.WaitGroup
	for i, m := range info.Members {
		feeds[i] = newFeed(g.OpenLog(info.ID, m.Address))
		wg.Go(func() { feeds[i].run(ctx) })
		p.Replicas = append(p.Replicas, Replica{Member: m.ID, Address: m.Address, InSync: m.InSync, Primary: m.ID == info.Primary.ID})
	}
	defer wg.Wait()
	defer cancel()
	p.Common = commonPrefix(p, feeds)
	var sink *sinkFiles
	switch {
	case o.SinkDir != "":
		sink = openSink(o.SinkDir, o.Grid+"-"+p.ID+".log", p)
		defer sink.close()
	case o.NodeSinks:
		sink = openNodeSinks(ctx, g.(NodeSinks), g.Table(), info.ID, p)
	}
	c := comparison{p: p, feeds: feeds, sink: sink}
	if o.Replay {
		c.replay = newReplayed(ctx, g.(Executions), info.ID, p)
	}
	c.run()
	if c.replay != nil {
		c.replay.finish()
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("verify: %s: %w", p.ID, err)
	}
	p.judgeService(info)
	if sink != nil {
		sink.finish(epochNow(ctx, g, info))
	}
	across.add(info.ID, c.ids)
	return p, nil
}

// epochNow is the partition's epoch after everything was read: a new primary may have written some
// of it meanwhile.
func epochNow(ctx context.Context, g Grid, info client.PartitionInfo) uint64 {
	if r, ok := g.(interface{ Refresh(context.Context) error }); ok {
		_ = r.Refresh(ctx) // without an answer the table that is there stands
	}
	epoch := info.Epoch
	for _, now := range g.Table() {
		if now.ID == info.ID {
			epoch = max(epoch, now.Epoch)
		}
	}
	return epoch
}

// commonPrefix waits for each replica's first chunk, which has its committed prefix.
func commonPrefix(p *Partition, feeds []*feed) uint64 {
	common, most, read := ^uint64(0), uint64(0), false
	for i, f := range feeds {
		if !f.start() {
			p.Replicas[i].Error = f.err.Error()
			continue
		}
		p.Replicas[i].Committed = f.limit
		most, read = max(most, f.limit), true
		if p.Replicas[i].InSync { // one that is still catching up is compared as far as it is
			common = min(common, f.limit)
		}
	}
	common = min(common, most)
	if !read {
		return 0
	}
	return common
}
