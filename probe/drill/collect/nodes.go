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

// NodeSinks are sinks that the nodes themselves show over their data port.
type NodeSinks struct {
	Client *client.Client
	// More are data ports of nodes (host:port) to ask beside the members of the
	// partitions: a pod that took the place of one that is gone may have its files.
	More []string
	// Want is the number of nodes that hold a partition when all is well; fewer that
	// answer are a file that cannot be opened. 0: not known.
	Want int
}

// ErrNoSink means that the grid has nothing downstream that could be read; the error
// says why.
var ErrNoSink = errors.New("no sink")

// List implements Sinks. A node that cannot be asked is a file that cannot be opened.
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
				continue // nobody said that it has to be there
			}
			sinks++
			if s.member(row, at) || len(files) > 0 { // a node that never held the partition says nothing of it
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
			out[fmt.Sprintf("of %s at pods that are not there", row.ID)] = func(context.Context) (io.ReadCloser, error) {
				return nil, fmt.Errorf("%d of %d pods can be asked", there, s.Want)
			}
		}
	}
	if sinks == 0 && none != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoSink, none)
	}
	return out, nil
}

// nodes to ask about a partition, each once: a partition that moved has files where it was.
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

// partitionOf the name that List gave, for a file that could not be opened.
func partitionOf(where string) (p wire.PartitionID) {
	var name string
	if n, _ := fmt.Sscanf(where, "of %s at", &name); n == 1 {
		p, _ = wire.ParsePartitionID(name)
	}
	return p
}
