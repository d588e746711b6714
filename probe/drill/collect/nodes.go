package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// NodeSinks are sinks that the nodes themselves serve over their data port.
type NodeSinks struct {
	Client *client.Client
	// More are data ports of nodes (host:port) to query in addition to the members of the
	// partitions: a replacement pod may have its predecessor's files.
	More []string
	// Want is the number of nodes that hold a partition in a healthy grid; missing ones count as
	// files that cannot be opened. 0: not known.
	Want int
}

// ErrNoSink means that the grid has nothing downstream that could be read; the error has the
// reason.
var ErrNoSink = errors.New("no sink")

// List implements Sinks. A node that does not answer is a file that cannot be opened.
func (s *NodeSinks) List(ctx context.Context) (map[string]Open, error) {
	out := map[string]Open{}
	var none error
	sinks := 0
	table := s.Client.Table()
	for _, row := range table {
		there := 0
		for _, at := range s.nodes(table, row) {
			files, err := s.Client.SinkFiles(ctx, row.ID, at)
			switch {
			case errors.Is(err, client.ErrSinkUnreadable), errors.Is(err, client.ErrUnsupported):
				none = err
				continue
			case err != nil && s.member(row, at):
				out[fmt.Sprintf("of %s at %s", row.ID, at)] = func(context.Context) (io.ReadCloser, error) { return nil, err }
				continue
			case err != nil:
				continue // no answer is required of it
			}
			sinks++
			if s.member(row, at) || len(files) > 0 { // a node that never held the partition has no file of it
				there++
			}
			for _, f := range files {
				if f.SetAside {
					continue // of another history than the log's
				}
				out[fmt.Sprintf("%s at %s", f.Name, at)] = func(ctx context.Context) (io.ReadCloser, error) {
					return io.NopCloser(s.Client.OpenSink(ctx, f, 0)), nil
				}
			}
		}
		if there > 0 && there < s.Want {
			out[fmt.Sprintf("of %s at missing pods", row.ID)] = func(context.Context) (io.ReadCloser, error) {
				return nil, fmt.Errorf("%d of %d pods can be queried", there, s.Want)
			}
		}
	}
	if sinks == 0 && none != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoSink, none)
	}
	return out, nil
}

// nodes to query about a partition, each once: a partition that moved has files at its former
// shard.
func (s *NodeSinks) nodes(table []client.PartitionInfo, row client.PartitionInfo) (out []string) {
	add := func(a string) {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	for _, p := range append([]client.PartitionInfo{row}, table...) {
		for _, m := range p.Members {
			add(m.Address)
		}
	}
	for _, a := range s.More {
		add(a)
	}
	return out
}

func (s *NodeSinks) member(row client.PartitionInfo, address string) bool {
	return slices.ContainsFunc(row.Members, func(m client.Member) bool { return m.Address == address })
}

var _ Sinks = (*NodeSinks)(nil)

// partitionOf the name in List, for a file that could not be opened.
func partitionOf(where string) (p wire.PartitionID) {
	var name string
	if n, _ := fmt.Sscanf(where, "of %s at", &name); n == 1 {
		p, _ = wire.ParsePartitionID(name)
	}
	return p
}
