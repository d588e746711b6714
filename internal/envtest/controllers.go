package envtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Controllers runs Kubernetes' own controllers of these names, such as statefulset-controller, beside the tests' API server
// until the test ends.
func Controllers(t testing.TB, names ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "kube-controller-manager.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(Assets(t), "kube-controller-manager"), "--kubeconfig="+Kubeconfig(t), "--leader-elect=false", "--secure-port=0",
		"--controllers="+strings.Join(names, ","), "--kube-api-qps=500", "--kube-api-burst=1000", "--v=1")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("kube-controller-manager:\n%s", text)
		}
		_ = log.Close()
	})
}
