package report

import (
	"fmt"
	"slices"
)

// server is the use of one node at one rate, over the runs that count.
type server struct {
	name          string
	cores, pauses []float64
	longestUs     float64 // longest pause; negative if not known
}

// servers of a group, by name. Several probe pods may report the same node.
func (g *group) servers() (out []*server) {
	for _, r := range g.runsThatCount() {
		seen := map[string]bool{}
		for _, c := range r.conditions {
			for _, n := range c.Nodes {
				if seen[n.Name] {
					continue
				}
				seen[n.Name] = true
				i := slices.IndexFunc(out, func(s *server) bool { return s.name == n.Name })
				if i < 0 {
					i, out = len(out), append(out, &server{name: n.Name, longestUs: -1})
				}
				out[i].add(n, c.PauseSources)
			}
		}
	}
	slices.SortFunc(out, func(a, b *server) int { return compareNames(a.name, b.name) })
	return out
}

// compareNames puts 10.0.0.9 before 10.0.0.10.
func compareNames(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (s *server) add(n Node, sources []PauseSource) {
	s.cores = append(s.cores, n.CPUCores)
	if n.PausesPerSec >= 0 {
		s.pauses = append(s.pauses, n.PausesPerSec)
	}
	for _, p := range sources {
		if p.Of == n.Name {
			s.longestUs = max(s.longestUs, p.MaxUs)
		}
	}
}

// serversTable shows each server separately; nil if nothing is known of any. The rows with a
// probe's rate have the means over runs.
func (r *Report) serversTable() *Table {
	t := &Table{Name: "servers", Title: "every server: cores busy, pauses of its runtime a second and the longest of them (us), means over the runs that count",
		Columns: append(r.rateColumns(), Column{Name: "server", Left: true, gap: 3}, Column{Name: "cores"}, Column{Name: "pauses/s"}, Column{Name: "longest us"})}
	for _, g := range r.groups {
		for _, s := range g.servers() {
			cells := append(r.rateCells(g), Cell{Text: s.name}, Cell{Text: fmt.Sprintf("%.2f", mean(s.cores))})
			pauses := -1.0
			if len(s.pauses) > 0 {
				pauses = mean(s.pauses)
			}
			t.add(append(cells, knownCell("%.1f", pauses), knownCell("%.0f", s.longestUs))...)
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}
