// Command generate writes what is derived from the dashboards' Go code: the JSON files that Grafana loads, beside the
// code and once more inside the chart, which cannot read files outside itself; and the chart's copy of the Prometheus
// rules. With --verify it writes nothing and exits 1 when a file in the tree differs.
//
//	go run ./dashboards/cmd/generate [--verify]
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/ordergrid/ordergrid/dashboards/boards"
)

func main() {
	verify := flag.Bool("verify", false, "compare only; exit 1 and name every file that has drifted")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "generate: unknown argument %q; usage: go run ./dashboards/cmd/generate [--verify]\n", flag.Arg(0))
		os.Exit(2)
	}
	drifted, err := boards.WriteDerived(".", *verify)
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(2)
	}
	for _, name := range drifted {
		if *verify {
			fmt.Printf("generate: %s differs from what it is derived from; run `make generate` and commit the result\n", name)
		} else {
			fmt.Println("generate: wrote", name)
		}
	}
	if *verify && len(drifted) > 0 {
		os.Exit(1)
	}
}
