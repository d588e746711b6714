package local

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestVersionsMatchModule(t *testing.T) {
	content, err := os.ReadFile("../binaries/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, requirement := range []string{"k8s.io/kubernetes " + kubernetesVersion, "helm.sh/helm/v3 " + helmVersion} {
		if !strings.Contains(string(content), "\t"+requirement) {
			t.Errorf("e2e/cluster/binaries/go.mod does not require %s; the version written into the programs would be wrong", requirement)
		}
	}
}

// TestSharesVersionsWithTheProduct: one module of another version below client-go, and all that imports it is compiled once for
// Kubernetes and once more for the operator.
func TestSharesVersionsWithTheProduct(t *testing.T) {
	kubernetes := versions(t, "../binaries", "-m", "-f", "{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}", "all")
	product := versions(t, "../../..", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", "./cmd/operator")
	shared := 0
	for module, version := range product {
		switch other := kubernetes[module]; other {
		case "":
		case version:
			shared++
		default:
			t.Errorf("%s is %s in go.mod and %s in e2e/cluster/binaries/go.mod; `go get %[1]s@VERSION` makes them equal", module, version, other)
		}
	}
	if shared < 20 {
		t.Errorf("%d modules are shared; client-go alone brings more", shared)
	}
}

// versions runs go list in a module's directory.
func versions(t *testing.T, dir string, args ...string) map[string]string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v in %s: %v\n%s", cmd.Args, dir, err, stderr.Bytes())
	}
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if module, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[module] = version
		}
	}
	return all
}
