package main

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ordergrid/ordergrid/grid-node/node"
)

// journalFlags are those of a node's journal.
type journalFlags struct {
	dir, max string
}

func (f *journalFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.dir, "journal", "", "directory on a local disk: every order is acknowledged when it is on the disk of every copy, and a grid that lost its power comes back with it. Empty: none. The same on every node of the grid")
	fl.StringVar(&f.max, "journal-max-bytes", "0", "bytes that the journal may take: at seven eighths new orders are refused. At least 256Mi; 0: what the disk has")
}

func (f *journalFlags) options() (*node.Journal, error) {
	q, err := resource.ParseQuantity(f.max)
	if err != nil {
		return nil, fmt.Errorf("--journal-max-bytes: value %q, allowed: a quantity such as 0 or 20Gi", f.max)
	}
	switch {
	case f.dir == "" && q.Value() != 0:
		return nil, fmt.Errorf("--journal-max-bytes: value %q, allowed: 0 without --journal", f.max)
	case f.dir == "":
		return nil, nil
	}
	return &node.Journal{Dir: f.dir, MaxBytes: q.Value()}, nil
}
