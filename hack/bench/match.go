package main

import (
	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/grid"
	"github.com/ordergrid/ordergrid/hack/bench/system"
)

// matching are the grids that match what the others store.
func matching(dir string, flags []string) []system.System {
	return []system.System{
		&grid.Grid{Label: cases.GridMatch, Args: flags, Match: true, Dir: dir},
		&grid.Grid{Label: cases.GridMatchTold, Args: flags, Match: true, Told: true, Dir: dir},
	}
}
