package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// maxRegionsFile bounds what is read of the file.
const maxRegionsFile = 1 << 20

// regionsText is the file of --regions.
type regionsText struct {
	Memory  string `json:"memory"`
	Regions []struct {
		Name     string `json:"name"`
		MaxBytes string `json:"maxBytes"`
		Life     string `json:"life"`
	} `json:"regions"`
}

// readRegions returns nil without a file.
func readRegions(name string) (*node.Regions, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--regions: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRegionsFile+1))
	if err == nil && len(text) > maxRegionsFile {
		err = fmt.Errorf("it has more than %d bytes, allowed: at most as many", maxRegionsFile)
	}
	var x *node.Regions
	if err == nil {
		x, err = parseRegions(text)
	}
	if err != nil {
		return nil, fmt.Errorf("--regions: %s: %w", name, err)
	}
	return x, nil
}

func parseRegions(text []byte) (*node.Regions, error) {
	var t regionsText
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(text), &t); err != nil {
		return nil, fmt.Errorf("%w; allowed: memory, and regions, a list of objects with name, maxBytes and life", err)
	}
	x := &node.Regions{}
	var err error
	if x.Memory, err = size("memory", t.Memory); err != nil {
		return nil, err
	}
	for _, r := range t.Regions {
		s := replica.RegionSpec{Name: r.Name}
		if r.MaxBytes != "" {
			if s.MaxBytes, err = size(r.Name+".maxBytes", r.MaxBytes); err != nil {
				return nil, err
			}
		}
		if r.Life != "" {
			d, err := time.ParseDuration(r.Life)
			if err != nil || d <= 0 {
				return nil, fmt.Errorf("%s.life: value %q, allowed: a duration of 1ns or more, such as 10m", r.Name, r.Life)
			}
			s.LifeNs = int64(d)
		}
		x.Regions = append(x.Regions, s)
	}
	return x, nil
}

func size(field, text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 {
		return 0, fmt.Errorf("%s: value %q, allowed: bytes, such as 64Mi", field, text)
	}
	return q.Value(), nil
}
