// Package layering checks the direction of imports in docs/architecture.md.
package layering

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/ordergrid/ordergrid/"

// forbidden lists, per package, prefixes of import paths that may not appear among its dependencies (transitively).
var forbidden = map[string][]string{
	"grid-node/wire":       {module, "net", "k8s.io", "sigs.k8s.io"},
	"grid-node/order":      {module + "grid-node/replica", module + "grid-node/store", "net", "k8s.io", "sigs.k8s.io"},
	"grid-node/store":      {module + "grid-node/replica", "net", "k8s.io", "sigs.k8s.io"},
	"grid-node/machine":    {module + "grid-node/replica", module + "grid-node/store", module + "grid-node/wire", "net", "math/rand", "k8s.io", "sigs.k8s.io"},
	"grid-node/replica":    {module + "grid-node/transport", module + "grid-node/arbiter", module + "grid-node/feed", module + "grid-node/sink", "net", "os/exec", "k8s.io", "sigs.k8s.io"},
	"client":               {module + "grid-node/replica", module + "grid-node/store", module + "grid-node/transport", "k8s.io", "sigs.k8s.io"},
	"gateway/sink":         {module + "grid-node/replica", module + "grid-node/store", module + "grid-node/feed", module + "grid-node/sink", "k8s.io", "sigs.k8s.io"},
	"cmd/grid-sink":        {module + "grid-node/replica", module + "grid-node/store", "k8s.io", "sigs.k8s.io"},
	"probe/report":         {module + "client", "net", "k8s.io", "sigs.k8s.io"},
	"cmd/grid-node":        {"sigs.k8s.io/controller-runtime", "k8s.io/client-go/kubernetes"},
	"probe/drill/validate": {module + "client", "k8s.io", "sigs.k8s.io"}, // a saved history can be judged without a cluster
	"probe/drill/api":      {module + "client", module + "grid-node", "k8s.io", "sigs.k8s.io"},
	"api/v1alpha1":         {"sigs.k8s.io/controller-runtime", "k8s.io/client-go", module + "grid-node"},
}

func TestImportsPointOneWay(t *testing.T) {
	for pkg, banned := range forbidden {
		t.Run(pkg, func(t *testing.T) {
			for _, dep := range dependencies(t, "../../"+pkg) {
				for _, b := range banned {
					if (dep == strings.TrimSuffix(b, "/") || strings.HasPrefix(dep, strings.TrimSuffix(b, "/")+"/")) && dep != module+pkg {
						t.Errorf("%s depends on %s, which docs/architecture.md forbids", pkg, dep)
					}
				}
			}
		})
	}
}

// Delivered packages do not depend on their tests: users get the drill's judge and recorder, and
// e2e uses the same ones.
func TestNoProductDependsOnItsTests(t *testing.T) {
	for _, tree := range []string{"api", "client", "cmd", "controllers", "gateway", "grid-node", "internal", "probe"} {
		for _, dep := range dependencies(t, "../../"+tree+"/...") {
			if strings.HasPrefix(dep, module+"e2e/") {
				t.Errorf("a package below %s depends on %s: move what they share out of e2e", tree, dep)
			}
		}
	}
}

func dependencies(t *testing.T, dir string) (deps []string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath", dir).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list %s: %v\n%s", dir, err, exit.Stderr)
		}
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p struct{ ImportPath string }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return deps
		} else if err != nil {
			t.Fatal(err)
		}
		deps = append(deps, p.ImportPath)
	}
}
