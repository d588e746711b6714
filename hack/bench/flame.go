package main

// A flame graph is one SVG file that needs nothing else: a box per function and call path, as wide as its part of the
// samples, callers below the called. go tool pprof has them only as a page that it serves.

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/google/pprof/profile"
)

// callNode is a function on one call path.
type callNode struct {
	Name     string
	Value    int64 // of all samples that pass through it, in the profile's unit
	Children []*callNode
}

// callTree folds the samples of a profile by call path. kind names the value to add
// up, such as "cpu" or "alloc_objects".
func callTree(p *profile.Profile, kind string) (*callNode, error) {
	index := -1
	var kinds []string
	for i, t := range p.SampleType {
		kinds = append(kinds, t.Type)
		if t.Type == kind {
			index = i
		}
	}
	if index < 0 {
		return nil, fmt.Errorf("sample type: value %q, allowed: %s", kind, strings.Join(kinds, ", "))
	}
	root := &callNode{Name: "all"}
	for _, s := range p.Sample {
		v := s.Value[index]
		if v == 0 {
			continue
		}
		root.Value += v
		at := root
		for i := len(s.Location) - 1; i >= 0; i-- { // outermost caller first
			lines := s.Location[i].Line
			if len(lines) == 0 {
				at = at.child(fmt.Sprintf("%#x", s.Location[i].Address), v)
			}
			for j := len(lines) - 1; j >= 0; j-- { // inlined calls
				at = at.child(short(lines[j]), v)
			}
		}
	}
	root.sort()
	return root, nil
}

func (n *callNode) child(name string, v int64) *callNode {
	for _, c := range n.Children {
		if c.Name == name {
			c.Value += v
			return c
		}
	}
	c := &callNode{Name: name, Value: v}
	n.Children = append(n.Children, c)
	return c
}

// sort brings children into the order of their names, so that two graphs of one
// program look alike.
func (n *callNode) sort() {
	sort.Slice(n.Children, func(i, j int) bool { return n.Children[i].Name < n.Children[j].Name })
	for _, c := range n.Children {
		c.sort()
	}
}

// short is a function's name without the path of its package.
func short(l profile.Line) string {
	if l.Function == nil {
		return "?"
	}
	name := l.Function.Name
	return name[strings.LastIndexByte(name, '/')+1:]
}

// writeFlameGraph reads a profile as runtime/pprof writes it and draws it.
func writeFlameGraph(w io.Writer, prof io.Reader, kind, title string) error {
	p, err := profile.Parse(prof)
	if err != nil {
		return fmt.Errorf("read the profile: %w", err)
	}
	root, err := callTree(p, kind)
	if err != nil {
		return err
	}
	return draw(w, root, title)
}
