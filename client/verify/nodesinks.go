package verify

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// NodeSinks is a Grid whose nodes show the files of their sinks: FromClient makes
// one.
type NodeSinks interface {
	Grid
	// SinkFiles lists the files of the node at address.
	SinkFiles(ctx context.Context, partition wire.PartitionID, address string) ([]client.SinkFile, error)
	// ReadSinkFile reads one from its beginning.
	ReadSinkFile(ctx context.Context, f client.SinkFile) io.Reader
}

func (g clientGrid) ReadSinkFile(ctx context.Context, f client.SinkFile) io.Reader {
	return g.OpenSink(ctx, f, 0)
}

// openNodeSinks asks every node of the partition's shard for its files: each may
// have been its primary. Those that were set aside belong to another history than
// the log and are only listed.
func openNodeSinks(ctx context.Context, g NodeSinks, table []client.PartitionInfo, id wire.PartitionID, p *Partition) *sinkFiles {
	s := newSink(p)
	pods, partitions := shardPods(table, id.Shard())
	without := 0
	for _, pod := range slices.Sorted(maps.Keys(pods)) {
		files, err := g.SinkFiles(ctx, id, pods[pod])
		if err != nil {
			p.Sink.Error = err.Error()
		}
		if errors.Is(err, client.ErrSinkUnreadable) {
			without++
		}
		for _, f := range files {
			name := pod + "/" + f.Name
			if f.SetAside {
				p.Sink.SetAside = append(p.Sink.SetAside, name)
				continue
			}
			file := &sinkFile{path: name, r: bufio.NewReaderSize(g.ReadSinkFile(ctx, f), maxLine)}
			s.add(name, file, file.header())
		}
	}
	switch {
	case without > 0 && without == len(pods):
		p.Sink.Error = fmt.Sprintf("no node of the shard has a file sink: %s", p.Sink.Error)
	case len(p.Sink.Files) == 0 && p.Sink.Error == "":
		p.Sink.Error = "no node of the shard has a file of the partition's sink"
	}
	s.partly = len(pods) < partitions // a shard has as many pods as partitions
	return s
}

// shardPods are the nodes of a shard by pod, as far as any of its partitions knows
// them, and how many partitions it has.
func shardPods(table []client.PartitionInfo, shard int) (pods map[string]string, partitions int) {
	pods = map[string]string{}
	for i := range table {
		if table[i].ID.Shard() != shard {
			continue
		}
		partitions++
		for _, m := range table[i].Members {
			pod, _, _ := strings.Cut(m.ID, "/")
			pods[pod] = m.Address
		}
	}
	return pods, partitions
}

// SinksHelp is for a command's flag --sinks.
const SinksHelp = "also compare with the file sinks: nodes (each node of a partition shows its files), or nothing"

// ParseSinks sets what a command's flag --sinks asks for.
func ParseSinks(v string, o *Options) error {
	switch {
	case v == "":
	case v != "nodes":
		return fmt.Errorf("--sinks: value %q, allowed: nodes", v)
	case o.SinkDir != "":
		return errors.New("--sinks: value nodes, allowed without --sink-dir only: both are the sinks")
	}
	o.NodeSinks = v == "nodes"
	return nil
}
