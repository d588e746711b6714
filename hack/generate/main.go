// Command generate writes what is derived from the API types: their deepcopy code and the CRDs, which the Helm chart
// embeds verbatim. With --verify it writes nothing and exits 1 when a file in the tree differs from what it is derived from.
//
//	go run ./hack/generate [--verify]
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/internal/derived"
)

// The controller-tools release for the k8s.io/* v0.36 line of go.mod.
const controllerGen = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0"

// output is what one generator writes, into a directory of its own: files that belong below another one in the tree.
type output struct {
	generator string // arguments of controller-gen, up to the output directory
	target    string // directory in the tree, all of whose files matching pattern are derived
	pattern   string
}

var all = []output{
	{"object", "api/v1alpha1", "zz_generated.*.go"},
	{"crd", "charts/ordergrid/files/crds", "*.yaml"},
}

func main() { derived.Main("generate", "what api/v1alpha1 says", run) }

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
	files, patterns := derived.Files{}, []string{}
	for _, o := range all {
		out := filepath.Join(tmp, o.generator)
		cmd := exec.Command("go", "run", controllerGen, o.generator, "paths=./api/...",
			fmt.Sprintf("output:%s:dir=%s", o.generator, out))
		cmd.Dir, cmd.Stderr = root, os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("controller-gen %s: %w", o.generator, err)
		}
		made, err := filepath.Glob(filepath.Join(out, o.pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range made {
			if files[filepath.Join(o.target, filepath.Base(path))], err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
		patterns = append(patterns, filepath.Join(o.target, o.pattern))
	}
	return files.Update(root, verify, patterns...)
}
