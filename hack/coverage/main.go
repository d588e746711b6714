// Command coverage writes docs/coverage.md: everything that the five benchmark reports describe, and where it is here, or
// why it is not. It reads docs/coverage/features.csv, the list, and docs/coverage/status.csv, the state of each row. With --verify it writes nothing and exits 1 when the page differs.
//
//	go run ./hack/coverage [--verify]
package main

import (
	"errors"

	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/internal/derived"
)

const page = "docs/coverage.md"

func main() { derived.Main("coverage", "docs/coverage/*.csv", run) }

// run makes the page, and names it if it differed. It writes it unless verify is set.
func run(verify bool) ([]string, error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	rows, err := read(root)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(check(root, rows)...); err != nil {
		return nil, err
	}
	return derived.Files{page: render(rows)}.Update(root, verify)
}
