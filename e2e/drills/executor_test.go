//go:build e2e

package drills

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ordergrid/ordergrid/e2e/kube"
)

const executorSecret = "drill-executor-local"

// startExecutor runs the cluster's own executor of faults until the test ends, and returns the chart's values for it.
func (f *field) startExecutor(ctx context.Context) (values []string) {
	f.Helper()
	program := filepath.Join(f.TempDir(), "cluster")
	f.build("./e2e/cluster/cmd/cluster", program)
	cmd := exec.Command(program, "executor", "serve")
	cmd.Dir, cmd.Stderr = f.Root, os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		f.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { f.stopExecutor(cmd, program) })
	said := map[string]string{}
	for lines := bufio.NewScanner(stdout); len(said) < 3; {
		if !lines.Scan() {
			f.Fatalf("the executor ended: %v", lines.Err())
		}
		if key, value, found := strings.Cut(lines.Text(), " "); found && (key == "URL" || key == "token" || key == "CA") {
			said[key] = strings.TrimSpace(value)
		}
	}
	f.Must(f.Kube.Apply(ctx, []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+kube.System+`"}}`)))
	f.Must(f.Kube.Run(ctx, "delete", "secret", executorSecret, "-n", kube.System, "--ignore-not-found"))
	f.Must(f.Kube.Run(ctx, "create", "secret", "generic", executorSecret, "-n", kube.System, "--from-file=token="+said["token"], "--from-file=ca.crt="+said["CA"]))
	const prefix = "drills.executors[0]."
	return []string{prefix + "name=local", prefix + "url=" + said["URL"], prefix + "tokenSecret=" + executorSecret, prefix + "caSecret=" + executorSecret}
}

// stopExecutor ends it and looks that no fault of it is left.
func (f *field) stopExecutor(cmd *exec.Cmd, program string) {
	left := exec.Command(program, "executor", "faults")
	left.Dir = f.Root
	if out, err := left.CombinedOutput(); err != nil || strings.Contains(string(out), "Injected") {
		f.Errorf("faults of the executor at the end (%v):\n%s", err, out)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait() // it ends by the signal
	clear := exec.Command(program, "executor", "clear")
	clear.Dir = f.Root
	if out, err := clear.CombinedOutput(); err != nil {
		f.Errorf("executor clear: %v\n%s", err, out)
	}
}

// loadFaulty puts the image of a grid node that can be configured to lose orders on the nodes.
func (f *field) loadFaulty(ctx context.Context) {
	f.Helper()
	folder := f.TempDir()
	for _, args := range [][]string{{"image", "build", "grid-node-faulty", "--out", folder}, {"load", filepath.Join(folder, "grid-node-faulty.tar")}} {
		cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./e2e/cluster/cmd/cluster"}, args...)...)
		cmd.Dir = f.Root
		if out, err := cmd.CombinedOutput(); err != nil {
			f.Fatalf("cluster %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
