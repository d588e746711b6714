package local

import (
	"os"
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
