// Command olm writes the bundle by which the Operator Lifecycle Manager installs the operator: charts/olm, in the layout of
// operator-sdk, and the file PROJECT by which operator-sdk knows this repository. All of it is derived: deployment and
// rights are what the chart renders, kinds are the chart's CRDs, examples are those of docs/examples. Then the bundle is
// held against the rules of operator-framework's own library. It is a module of its own because of that library.
//
//	go run . [--verify] --helm PROGRAM
//
// With --verify nothing is written: exit code 1 and the names of the files that differ.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	verify := flag.Bool("verify", false, "compare only; exit 1 and name every file that has drifted")
	helm := flag.String("helm", "helm", "the helm program; the local cluster's binaries have one")
	root := flag.String("root", filepath.Join("..", ".."), "root of the checkout")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "olm: unknown argument %q; usage: go run . [--verify] --helm PROGRAM\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*root, *helm, *verify); err != nil {
		fmt.Fprintln(os.Stderr, "olm:", err)
		os.Exit(1)
	}
}

// where the bundle is, below the root of the checkout.
const bundleDir = "charts/olm"

func run(root, helm string, verify bool) error {
	c, err := readChart(root, helm)
	if err != nil {
		return err
	}
	files, err := bundle(c)
	if err != nil {
		return err
	}
	drifted, err := differing(root, files)
	if err != nil {
		return err
	}
	if verify {
		var all []error
		for _, name := range drifted {
			all = append(all, fmt.Errorf("%s differs from what chart, CRDs and examples say; run `make bundle` and commit the result", name))
		}
		return errors.Join(append(all, validate(filepath.Join(root, bundleDir)))...)
	}
	for _, name := range drifted {
		if err := install(filepath.Join(root, name), files[name]); err != nil {
			return err
		}
		fmt.Println("olm: wrote", name)
	}
	return validate(filepath.Join(root, bundleDir))
}

// differing lists the files, relative to root, that are not as they should be, those that should not be there included.
func differing(root string, files map[string][]byte) (names []string, err error) {
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if err != nil || !bytes.Equal(got, want) {
			names = append(names, name)
		}
	}
	there, err := filepath.Glob(filepath.Join(root, bundleDir, "*", "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, path := range there {
		name, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		if _, wanted := files[name]; !wanted {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// install writes a file; one without content is removed.
func install(path string, content []byte) error {
	if content == nil {
		return os.Remove(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
