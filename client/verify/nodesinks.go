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

// openNodeSinks asks the nodes of the grid for their files of the partition: its members, and the
// others, which may have been its primary before it moved. Files that were set aside belong to
// another history than the log and are only listed. A removed pod cannot be asked: entries that
// only its file has are reported as missing.
func openNodeSinks(ctx context.Context, g NodeSinks, table []client.PartitionInfo, id wire.PartitionID, p *Partition) *sinkFiles {
	s := newSink(p)
	s.partly = true
	members := map[string]bool{}
	for _, r := range p.Replicas {
		members[podOf(r.Member)] = true
	}
	without := 0
	pods := podsOf(table)
	for _, pod := range slices.Sorted(maps.Keys(pods)) {
		files, err := g.SinkFiles(ctx, id, pods[pod])
		switch {
		case err != nil && !members[pod]:
			s.away = append(s.away, fmt.Sprintf("%s: %v", pod, err)) // matters if entries are missing
		case err != nil:
			p.Sink.Error = err.Error()
			if errors.Is(err, client.ErrSinkUnreadable) {
				without++
			}
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
	case without > 0 && without == len(members):
		p.Sink.Error = fmt.Sprintf("no node of the partition has a file sink: %s", p.Sink.Error)
	case len(p.Sink.Files) == 0 && p.Sink.Error == "":
		p.Sink.Error = "no node of the grid shows a file of the partition's sink" + s.askedInVain()
	}
	return s
}

// podsOf are the addresses of the grid's nodes by pod, as far as they hold a partition.
func podsOf(table []client.PartitionInfo) map[string]string {
	pods := map[string]string{}
	for i := range table {
		for _, m := range table[i].Members {
			pods[podOf(m.ID)] = m.Address
		}
	}
	return pods
}

func podOf(member string) string {
	pod, _, _ := strings.Cut(member, "/")
	return pod
}

// SinksHelp is for a command's flag --sinks.
const SinksHelp = "also compare with the file sinks: nodes (each node of the grid shows its files), or nothing"

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
