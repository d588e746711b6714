// Command watch runs a real Prometheus on this machine that scrapes the grids, probes and operator of a cluster, with the rules
// of dashboards/rules, until Ctrl-C. This machine has to reach pods by their addresses, as it does with the local cluster of
// `make cluster-up`.
//
//	go run ./dashboards/cmd/watch [--kubeconfig FILE] [--listen 127.0.0.1:9090] [--interval 5s]
//
// Exit status: 0 stopped; 1 it could not run; 2 usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/ordergrid/ordergrid/dashboards/boards"
	"github.com/ordergrid/ordergrid/e2e/prometheus"
	"github.com/ordergrid/ordergrid/internal/checkout"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the cluster")
	listen := flag.String("listen", "127.0.0.1:9090", "address of Prometheus")
	interval := flag.Duration("interval", 5*time.Second, "time between two scrapes, 1s to 1m")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		usage(fmt.Sprintf("unknown argument %q", flag.Arg(0)))
	case *kubeconfig == "":
		usage("--kubeconfig: empty, and KUBECONFIG is not set; `bin/cluster kubeconfig` prints the local cluster's")
	case *interval < time.Second || *interval > time.Minute:
		usage(fmt.Sprintf("--interval: %v, allowed: 1s to 1m", *interval))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := watch(ctx, *kubeconfig, *listen, *interval); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "watch:", err)
		os.Exit(1)
	}
}

func usage(text string) {
	fmt.Fprintln(os.Stderr, "watch:", text)
	os.Exit(2)
}

func watch(ctx context.Context, kubeconfig, listen string, interval time.Duration) (err error) {
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	programs, err := prometheus.Ensure(ctx, root, func(format string, args ...any) { fmt.Printf(format+"\n", args...) })
	if err != nil {
		return err
	}
	if kubeconfig, err = filepath.Abs(kubeconfig); err != nil {
		return err
	}
	source, err := os.ReadFile(filepath.Join(root, boards.Dashboards, "prometheus.yaml"))
	if err != nil {
		return err
	}
	config, err := configure(source, kubeconfig, filepath.Join(root, boards.Rules), interval)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ordergrid-watch-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return err
	}
	fmt.Printf("Prometheus: http://%s (Ctrl-C stops it and forgets)\n", listen)
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen, "--log.level=warn")
	cmd.Stdout, cmd.Stderr, cmd.Cancel = os.Stdout, os.Stderr, func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.Run()
}

// configure completes the checked-in configuration for a Prometheus outside the cluster.
func configure(source []byte, kubeconfig, rules string, interval time.Duration) ([]byte, error) {
	var config map[string]any
	if err := yaml.Unmarshal(source, &config); err != nil {
		return nil, err
	}
	config["global"] = map[string]any{"scrape_interval": interval.String(), "scrape_timeout": interval.String(), "evaluation_interval": interval.String()}
	config["rule_files"] = []string{rules}
	jobs, ok := config["scrape_configs"].([]any)
	if !ok {
		return nil, errors.New("dashboards/prometheus.yaml: no scrape_configs")
	}
	for _, job := range jobs {
		// A Prometheus outside the cluster has no account there: it requires an operator with open metrics.
		for _, key := range []string{"scheme", "authorization", "tls_config"} {
			delete(job.(map[string]any), key)
		}
		for _, discovery := range job.(map[string]any)["kubernetes_sd_configs"].([]any) {
			discovery.(map[string]any)["kubeconfig_file"] = kubeconfig
		}
	}
	return yaml.Marshal(config)
}
