// Command generate writes what is derived from the API types: their deepcopy code and the CRDs, which the Helm chart
// embeds verbatim. With --verify it writes nothing and exits 1 when a file in the tree differs from what it is derived from.
//
//	go run ./hack/generate [--verify]
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/ordergrid/ordergrid/internal/checkout"
)

// The controller-tools release for the k8s.io/* v0.36 line of go.mod.
const controllerGen = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0"

// A derived file is generated into a directory and belongs below another one in the tree.
type derived struct {
	generator string // arguments of controller-gen, up to the output directory
	target    string // directory in the tree, all of whose files matching pattern are derived
	pattern   string
}

var all = []derived{
	{"object", "api/v1alpha1", "zz_generated.*.go"},
	{"crd", "charts/ordergrid/files/crds", "*.yaml"},
}

func main() {
	verify := flag.Bool("verify", false, "compare only; exit 1 and name every file that has drifted")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "generate: unknown argument %q; usage: go run ./hack/generate [--verify]\n", flag.Arg(0))
		os.Exit(2)
	}
	drifted, err := run(*verify)
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(2)
	}
	for _, name := range drifted {
		fmt.Printf("generate: %s differs from what api/v1alpha1 says; run `make generate` and commit the result\n", name)
	}
	if len(drifted) > 0 {
		os.Exit(1)
	}
}

// run generates everything into a temporary directory, then compares it with the tree or copies it there.
func run(verify bool) (drifted []string, err error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "ordergrid-generate-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()

	for _, d := range all {
		out := filepath.Join(tmp, d.generator)
		cmd := exec.Command("go", "run", controllerGen, d.generator, "paths=./api/...",
			fmt.Sprintf("output:%s:dir=%s", d.generator, out))
		cmd.Dir, cmd.Stderr = root, os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("controller-gen %s: %w", d.generator, err)
		}
		names, err := differing(out, filepath.Join(root, d.target), d.pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			drifted = append(drifted, filepath.Join(d.target, name))
			if verify {
				continue
			}
			if err := install(filepath.Join(out, name), filepath.Join(root, d.target, name)); err != nil {
				return nil, err
			}
		}
	}
	if verify {
		return drifted, nil
	}
	for _, name := range drifted {
		fmt.Println("generate: wrote", name)
	}
	return nil, nil
}

// differing lists the files matching pattern that are not the same in both directories, those missing in one included.
func differing(generated, tree, pattern string) ([]string, error) {
	var names []string
	for _, dir := range []string{generated, tree} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			names = append(names, filepath.Base(p))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool {
		a, errA := os.ReadFile(filepath.Join(generated, name))
		b, errB := os.ReadFile(filepath.Join(tree, name))
		return errA == nil && errB == nil && bytes.Equal(a, b)
	}), nil
}

// install copies a generated file into the tree; a file that is no longer generated is removed from it.
func install(from, to string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(to)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
