// Package regionfile reads and writes the file of --regions of a grid node: the regions of a grid and their bounds. What a
// node takes of it is decided by grid-node/region.
package regionfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/ordergrid/ordergrid/grid-node/limits"
)

// Most bounds the size of a file, in bytes.
const Most = 1 << 20

// File is a file of regions.
type File struct {
	Memory  int64 // bytes of all regions on a node; 0: the file does not have it
	Regions []Region
}

// Region is one of them.
type Region struct {
	Name     string
	MaxBytes int64 // 0: the file has none
	Life     time.Duration
	Source   *limits.Source // which state of which GridRegion it is; nil: a person keeps the file
}

// text is the form of a file.
type text struct {
	Memory  string       `json:"memory,omitempty"`
	Regions []regionText `json:"regions"`
}

type regionText struct {
	Name     string         `json:"name"`
	MaxBytes string         `json:"maxBytes,omitempty"`
	Life     string         `json:"life,omitempty"`
	Source   *limits.Source `json:"source,omitempty"`
}

// Parse reads YAML or JSON.
func Parse(content []byte) (*File, error) {
	if len(content) > Most {
		return nil, fmt.Errorf("it has %d bytes, allowed: at most %d", len(content), Most)
	}
	var t text
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(content), &t); err != nil {
		return nil, fmt.Errorf("%w; allowed: memory, and regions, a list of objects with name, maxBytes, life and source", err)
	}
	f := &File{}
	var err error
	if f.Memory, err = Size("memory", t.Memory); err != nil {
		return nil, err
	}
	for _, r := range t.Regions {
		x := Region{Name: r.Name, Source: r.Source}
		if x.MaxBytes, err = Size(r.Name+".maxBytes", r.MaxBytes); err != nil {
			return nil, err
		}
		if r.Life != "" {
			if x.Life, err = time.ParseDuration(r.Life); err != nil || x.Life <= 0 {
				return nil, fmt.Errorf("%s.life: value %q, allowed: a duration of 1ns or more, such as 10m", r.Name, r.Life)
			}
		}
		f.Regions = append(f.Regions, x)
	}
	return f, nil
}

// Size reads an amount of bytes, 0 for an empty one.
func Size(field, amount string) (int64, error) {
	if amount == "" {
		return 0, nil
	}
	q, err := resource.ParseQuantity(amount)
	if err != nil || q.Sign() <= 0 {
		return 0, fmt.Errorf("%s: value %q, allowed: bytes, such as 64Mi", field, amount)
	}
	return q.Value(), nil
}

// Plain returns the file without sources, as releases before have it.
func (f *File) Plain() *File {
	p := &File{Memory: f.Memory}
	for _, r := range f.Regions {
		r.Source = nil
		p.Regions = append(p.Regions, r)
	}
	return p
}

// Text is the content of a file, in one form.
func (f *File) Text() string {
	size := func(n int64) string {
		if n == 0 {
			return ""
		}
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	t := text{Memory: size(f.Memory), Regions: []regionText{}}
	for _, r := range f.Regions {
		x := regionText{Name: r.Name, MaxBytes: size(r.MaxBytes), Source: r.Source}
		if r.Life > 0 {
			x.Life = r.Life.String()
		}
		t.Regions = append(t.Regions, x)
	}
	b, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		panic(err) // strings
	}
	return string(b) + "\n"
}
