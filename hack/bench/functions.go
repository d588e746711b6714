package main

import (
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/grid"
	"github.com/ordergrid/ordergrid/hack/bench/system"
)

// calling are the grids that call functions, and one that is built so that it cannot. The audit trail takes about 11,000 fuel for 64 bytes of an order.
func calling(dir string, flags []string) []system.System {
	of := func(label string, f grid.Function) system.System {
		return &grid.Grid{Label: label, Args: flags, Function: &f, Dir: dir}
	}
	return []system.System{
		&grid.Grid{Label: cases.GridBare, Args: flags, Tags: []string{"nofunctions"}, Dir: dir},
		of(cases.GridPre, grid.Function{Name: "fat-finger", Module: examples.FatFinger, Config: "quantity=1000000\nvalue=9000000000\n", Fuel: 100_000}),
		of(cases.GridPost, grid.Function{Name: "count-accounts", Module: examples.CountAccounts, Post: true, Fuel: 100_000}),
		of(cases.GridAudit, grid.Function{Name: "audit-trail", Module: examples.AuditTrail, Post: true, Fuel: 1_000_000}),
	}
}
