package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/ordergrid/ordergrid/hack/bench/results"
)

const markdownHelp = `usage: go run ./hack/bench markdown [out/bench/bench.json]

Prints the run as the Markdown tables that docs/performance.md quotes, with machine, date,
load and command line, which stand in run.json beside bench.json. Growth cases are curves:
go run ./hack/bench growth --from out/bench/bench.json prints those.
`

func markdownCommand(_ context.Context, args []string, out io.Writer) error {
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		_, err := fmt.Fprint(out, markdownHelp)
		return err
	}
	path := filepath.Join("out", "bench", "bench.json")
	switch len(args) {
	case 0:
	case 1:
		path = args[0]
	default:
		return fmt.Errorf("%w: markdown takes one file, got %d\n%s", errUsage, len(args), markdownHelp)
	}
	rows, err := results.ReadJSON(path)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	run, err := results.ReadRun(path)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return results.Markdown(out, &run, rows)
}
