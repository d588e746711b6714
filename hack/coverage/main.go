// Command coverage writes docs/coverage.md: everything that the five benchmark reports describe, and where it is here, or
// why it is not. It reads docs/coverage/features.csv, the list, and docs/coverage/status.csv, the state of each row. With --verify it writes nothing and exits 1 when the page differs.
//
//	go run ./hack/coverage [--verify]
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ordergrid/ordergrid/internal/checkout"
)

const page = "docs/coverage.md"

func main() {
	verify := flag.Bool("verify", false, "compare only; exit 1 when the page has drifted")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "coverage: unknown argument %q; usage: go run ./hack/coverage [--verify]\n", flag.Arg(0))
		os.Exit(2)
	}
	drifted, err := run(*verify)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(2)
	case drifted && *verify:
		fmt.Printf("coverage: %s differs from docs/coverage/*.csv; run `make generate` and read the difference\n", page)
		os.Exit(1)
	case drifted:
		fmt.Println("coverage: wrote", page)
	}
}

// run makes the page, and reports whether it differed. It writes it unless verify is set.
func run(verify bool) (bool, error) {
	root, err := checkout.Root()
	if err != nil {
		return false, err
	}
	rows, err := read(root)
	if err != nil {
		return false, err
	}
	if err := errors.Join(check(root, rows)...); err != nil {
		return false, err
	}
	path := filepath.Join(root, page)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	after := render(rows)
	if bytes.Equal(before, after) {
		return false, nil
	}
	if verify {
		return true, nil
	}
	return true, os.WriteFile(path, after, 0o644) //nolint:gosec // a page of the documentation
}
