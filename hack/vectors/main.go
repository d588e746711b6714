// Command vectors writes the conformance vectors of the protocol, docs/protocol/vectors/*.json: bytes as the Go codec
// writes and refuses them, for clients in other languages. With --verify it writes nothing and exits 1 when a file in
// the tree differs from what the codec makes.
//
//	go run ./hack/vectors [--verify]
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// dir has the vectors, and nothing else that ends with .json.
const dir = "docs/protocol/vectors"

func main() {
	verify := flag.Bool("verify", false, "compare only; exit 1 and name every file that has drifted")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "vectors: unknown argument %q; usage: go run ./hack/vectors [--verify]\n", flag.Arg(0))
		os.Exit(2)
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vectors: go list -m:", err)
		os.Exit(2)
	}
	drifted, err := run(string(bytes.TrimSpace(root)), *verify)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(2)
	}
	for _, name := range drifted {
		if *verify {
			fmt.Printf("vectors: %s differs from what the codec makes; run `make generate` and read the difference\n", name)
		} else {
			fmt.Println("vectors: wrote", name)
		}
	}
	if *verify && len(drifted) > 0 {
		os.Exit(1)
	}
}

// run makes all files and returns those that differed from the tree; it writes them unless verify is set.
func run(root string, verify bool) (drifted []string, err error) {
	files, err := all()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, f := range files {
		text, err := f.text()
		if err != nil {
			return nil, err
		}
		name := filepath.Join(dir, f.name)
		known[name] = true
		was, err := os.ReadFile(filepath.Join(root, name))
		if err == nil && bytes.Equal(was, text) {
			continue
		}
		drifted = append(drifted, name)
		if verify {
			continue
		}
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			return nil, err
		}
	}
	stale, err := filepath.Glob(filepath.Join(root, dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, path := range stale {
		if name := filepath.Join(dir, filepath.Base(path)); !known[name] {
			return nil, fmt.Errorf("%s is not made by this command; remove it", name)
		}
	}
	return drifted, nil
}

// all makes the files of vectors.
func all() (files []file, err error) {
	for _, make := range []func() (file, error){frameVectors, hostileVectors, entryVectors, hashVectors, orderVectors, nameVectors} {
		f, err := make()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		files = append(files, f)
	}
	return files, nil
}
