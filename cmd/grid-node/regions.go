package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/internal/regionfile"
)

type regionFlags struct{ file, memory string }

func (f *regionFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.file, "regions", "", "file with the grid's regions: memory, which all of them may take on this node, and a list of name, maxBytes and life, see docs/regions.md. The same on all nodes of a grid. It is read again when it changes, except memory")
	fl.StringVar(&f.memory, "regions-memory", "", "memory that all regions may take on this node, such as 256Mi, instead of what the file of --regions has")
}

// apply sets the regions of a node, none without a file.
func (f *regionFlags) apply(cfg *node.Config) error {
	if f.file == "" {
		if f.memory != "" {
			return fmt.Errorf("--regions-memory: value %q, allowed: with --regions only", f.memory)
		}
		return nil
	}
	memory, err := regionfile.Size("--regions-memory", f.memory)
	if err != nil {
		return err
	}
	x, _, err := readRegions(f.file)
	if err != nil {
		return fmt.Errorf("--regions: %s: %w", f.file, err)
	}
	if memory != 0 {
		x.Memory = memory
	}
	if x.Memory == 0 {
		return fmt.Errorf("--regions: %s: memory is not set, allowed: bytes, such as 64Mi, there or by --regions-memory", f.file)
	}
	cfg.Regions = x
	cfg.ReadRegions = func() (*node.Regions, string, error) { return readRegions(f.file) }
	return nil
}

// readRegions returns the regions of a file, and its digest; with their sources, if the operator made it: releases before
// refuse those. Memory is 0 if it does not have it.
func readRegions(name string) (*node.Regions, string, error) {
	f, err := os.Open(name + limits.SourcedFile)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.Open(name)
	}
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, regionfile.Most+1))
	if err != nil {
		return nil, "", err
	}
	file, err := regionfile.Parse(text)
	if err != nil {
		return nil, "", err
	}
	x := &node.Regions{Memory: file.Memory}
	for _, r := range file.Regions {
		x.Regions = append(x.Regions, replica.RegionSpec{Name: r.Name, MaxBytes: r.MaxBytes, LifeNs: int64(r.Life), Source: r.Source})
	}
	return x, fmt.Sprintf("%x", sha256.Sum256(text)), nil
}
