// Command generate writes what is derived from the dashboards' Go code: the JSON files that Grafana loads, beside the
// code and once more inside the chart, which cannot read files outside itself; and the chart's copy of the Prometheus
// rules. With --verify it writes nothing and exits 1 when a file in the tree differs.
//
//	go run ./dashboards/cmd/generate [--verify]
package main

import (
	"github.com/ordergrid/ordergrid/dashboards/boards"
	"github.com/ordergrid/ordergrid/internal/derived"
)

func main() {
	derived.Main("generate", "what it is derived from", func(verify bool) ([]string, error) { return boards.WriteDerived(".", verify) })
}
