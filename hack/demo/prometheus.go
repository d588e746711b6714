package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/prometheus"
	"github.com/ordergrid/ordergrid/internal/checkout"
)

const (
	watchProgram = "bin/watch"
	watchAddress = "127.0.0.1:9090"
	watchURL     = "http://" + watchAddress
	// watchLimit is how long Prometheus may take to answer, and to end.
	watchLimit = 30 * time.Second
)

// watchCluster leaves a real Prometheus behind that scrapes the cluster, until `make demo-down`. Where it cannot be had the
// demo continues without, and prints why.
func watchCluster(ctx context.Context, d *demo) error {
	if err := d.watch(ctx); err != nil {
		if ctx.Err() != nil {
			return err
		}
		d.out.line("No Prometheus: %v", err)
		return nil
	}
	d.out.line("Prometheus, with the alerts, the recording rules and a scrape every 5 s: %s (its API; for your Grafana)", watchURL)
	d.out.line("$ curl -s '%s/api/v1/query?query=up'", watchURL)
	d.cluster.prometheus = watchURL
	return nil
}

func (d *demo) watch(ctx context.Context) error {
	if d.cluster.kind != cluster.Local {
		return errors.New("this machine does not reach the pods of a cluster of that kind; install the chart's monitors there (docs/dashboards.md)")
	}
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	if _, err := prometheus.Ensure(ctx, root, d.out.line); err != nil {
		return err
	}
	if err := d.out.build(ctx, "watch", "-o", watchProgram, "./dashboards/cmd/watch"); err != nil {
		return err
	}
	if _, err := stopWatching(d.dir, watchProgram); err != nil { // that of an earlier demo
		return err
	}
	l, err := net.Listen("tcp", watchAddress)
	if err != nil {
		return fmt.Errorf("%w; `go run ./dashboards/cmd/watch --kubeconfig %s --listen ADDRESS` takes another", err, d.cluster.kube.Kubeconfig)
	}
	if err := l.Close(); err != nil {
		return err
	}
	return d.startWatching(ctx)
}

// startWatching returns when Prometheus answers. It outlives this program.
func (d *demo) startWatching(ctx context.Context) error {
	log, err := os.Create(filepath.Join(d.dir, "prometheus.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own
	cmd := exec.Command(watchProgram, "--kubeconfig", d.cluster.kube.Kubeconfig, "--listen", watchAddress)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for it
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // ProcessState has it
		close(ended)
	}()
	err = os.WriteFile(watchFile(d.dir), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
	for limit := time.After(watchLimit); err == nil; {
		if resp, e := http.Get(watchURL + "/-/ready"); e == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ended:
			return fmt.Errorf("it ended: %v; see %s", cmd.ProcessState, log.Name())
		case <-limit:
			err = fmt.Errorf("no answer after %v; see %s", watchLimit, log.Name())
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	_, stopped := stopWatching(d.dir, watchProgram)
	return errors.Join(err, stopped)
}

// watchFile has the id of the process.
func watchFile(dir string) string { return filepath.Join(dir, "prometheus.pid") }

// stopWatching ends the Prometheus that a demo has left behind, and reports whether there was one.
func stopWatching(dir, program string) (was bool, err error) {
	text, err := os.ReadFile(watchFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return false, fmt.Errorf("%s: %q is no process id; remove the file", watchFile(dir), text)
	}
	if !runs(pid, program) { // the machine may have been started anew, and the id be another's
		return false, os.Remove(watchFile(dir))
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return true, fmt.Errorf("stop Prometheus (process %d): %w", pid, err)
	}
	for end := time.Now().Add(watchLimit); runs(pid, program); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return true, fmt.Errorf("process %d of Prometheus has not ended after %v", pid, watchLimit)
		}
	}
	return true, os.Remove(watchFile(dir))
}

// runs reports whether the process has that program, which may have been built anew since.
func runs(pid int, program string) bool {
	running, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false
	}
	wanted, err := filepath.Abs(program)
	if err != nil {
		return false
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(wanted)); err == nil {
		wanted = filepath.Join(dir, filepath.Base(wanted))
	}
	return strings.TrimSuffix(running, " (deleted)") == wanted
}
