package local

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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

// TestSharesVersions: one module of another version below client-go, and all that imports it is compiled once for Kubernetes
// and once more for another program.
func TestSharesVersions(t *testing.T) {
	const format = "{{with .Module}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}"
	kubernetes := versions(t, "../binaries", append([]string{"-deps", "-f", format}, kubeMains...)...)
	for _, program := range []struct {
		module, main string
		flags        []string
	}{
		{".", "./cmd/operator", nil},
		{"e2e/prometheus/binaries", "github.com/prometheus/prometheus/cmd/prometheus", []string{"-tags", "remove_all_sd,enable_kubernetes_sd"}},
		{"e2e/scale/binaries", "sigs.k8s.io/kwok/cmd/kwok", nil},
	} {
		list := append([]string{"-deps", "-f", format}, program.flags...)
		shared := 0
		for module, version := range versions(t, filepath.Join("../../..", program.module), append(list, program.main)...) {
			switch other := kubernetes[module]; {
			case other == version:
				shared++
			case other != "" && module != "github.com/prometheus/client_golang": // the API it offers to Prometheus changed with 1.25
				t.Errorf("%s is %s in %s/go.mod and %s in e2e/cluster/binaries/go.mod; `go get %[1]s@VERSION` makes them equal", module, version, program.module, other)
			}
		}
		if shared < 20 {
			t.Errorf("%s shares %d modules; client-go alone brings more", program.main, shared)
		}
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
