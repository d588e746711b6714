package envtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Helm runs the helm program, which is beside the API server's, with a kubeconfig, and returns its
// output. It leaves nothing in the user's caches.
func Helm(t testing.TB, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	program := filepath.Join(Assets(t), "helm")
	if _, err := os.Stat(program); err != nil {
		t.Skipf("no helm: %v; run `go run ./e2e/cluster/cmd/cluster binaries`", err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
