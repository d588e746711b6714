// Package live makes a real run for dashboards to show and for alerts to fire in: an API server, the operator, two grid
// nodes and probes, each a process of its own, and a Prometheus that scrapes them. Only the kubelet, the StatefulSet
// and Job controllers and, for drills, Chaos Mesh are played: pods are processes on loopback addresses, started from
// the operator's objects in the API server.
package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	server "sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// Parts of the run.
const (
	namespace         = "trading"
	operatorNamespace = "ordergrid-system"
	gridName          = "rtd"
	replicas          = 2

	operatorMetrics = "127.77.2.1:8080"
	patience        = 90 * time.Second
)

// nodeIP and probeIP are the loopback addresses of pods, so that all have the ports they have in a cluster.
func nodeIP(i int) string  { return fmt.Sprintf("127.77.0.%d", i+1) }
func probeIP(i int) string { return fmt.Sprintf("127.77.1.%d", i+1) }
func emptyIP(i int) string { return fmt.Sprintf("127.77.5.%d", i+1) }
func podName(i int) string { return api.PodName(gridName, 0, int32(i)) }

// Options of Start.
type Options struct {
	Bin        string // directory with the programs operator and order-probe
	Dir        string // for logs, configuration and data; recreated
	Prometheus string // the program
	Labels     string // charts/ordergrid/files/scrape/labels.yaml
	Rules      string // a file of rules
	// DropEvery makes nodes acknowledge every Nth order of a partition and drop it; 0: none. See CanDrop.
	DropEvery uint64
	Say       func(format string, args ...any)
}

// Run is the running parts.
type Run struct {
	o      Options
	env    *server.Environment
	config *rest.Config
	kube   kube.Client

	mu      sync.Mutex
	nodes   [replicas]*process
	others  []*process
	manager *process // the operator; one of others
	probes  int      // pods of probes so far
	targets targets
	closed  bool
}

// Start returns when the grid is redundant and scraped. Close it even after an error.
func Start(ctx context.Context, o Options) (*Run, error) {
	r := &Run{o: o}
	if o.DropEvery > 0 && !CanDrop {
		return r, errors.New("DropEvery: this program is built without the tag faulty, so its nodes cannot lose orders")
	}
	if err := errors.Join(os.RemoveAll(o.Dir), os.MkdirAll(filepath.Join(o.Dir, "sink"), 0o755)); err != nil {
		return r, err
	}
	assets, err := envtest.FindAssets()
	if err != nil {
		return r, err
	}
	log.SetLogger(logr.Discard()) // of envtest; it complains without one
	o.Say("start etcd and kube-apiserver")
	r.env = &server.Environment{BinaryAssetsDirectory: assets, CRDDirectoryPaths: []string{envtest.CRDs()}, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience}
	if r.config, err = r.env.Start(); err != nil {
		return r, fmt.Errorf("start the API server: %w", err)
	}
	if r.kube, err = kube.New(r.config, kube.Options{Scheme: envtest.Scheme()}); err != nil {
		return r, err
	}
	if err := os.WriteFile(r.kubeconfig(), r.env.KubeConfig, 0o600); err != nil {
		return r, err
	}
	for _, step := range []func(context.Context) error{r.startPrometheus, r.startOperator, r.startGrid} {
		if err := step(ctx); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *Run) kubeconfig() string { return filepath.Join(r.o.Dir, "kubeconfig") }

func (r *Run) startOperator(ctx context.Context) error {
	for _, name := range []string{operatorNamespace, namespace} {
		if err := r.kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	if err := r.StartOperator(); err != nil {
		return err
	}
	return r.addTarget("operator", operatorMetrics, operatorNamespace, "ordergrid-0", nil)
}

func (r *Run) startGrid(ctx context.Context) error {
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: gridName, Namespace: namespace}, Spec: api.OrderGridSpec{Replicas: replicas, Partitions: replicas, Memory: resource.MustParse("128Mi"), Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
	if err := r.kube.Create(ctx, grid); err != nil {
		return err
	}
	set := &appsv1.StatefulSet{}
	if err := r.Until(ctx, "the operator has made the StatefulSet", func() bool {
		return r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: api.ShardName(gridName, 0)}, set) == nil
	}); err != nil {
		return err
	}
	r.o.Say("start %d grid nodes", replicas)
	for i := range replicas {
		if err := r.createPod(ctx, set, podName(i), nodeIP(i)); err != nil {
			return err
		}
		if err := r.startNode(i); err != nil {
			return err
		}
		if err := r.addTarget("nodes", nodeIP(i)+":9400", namespace, podName(i), map[string]string{api.LabelGrid: gridName, api.LabelShard: "0"}); err != nil {
			return err
		}
	}
	go r.kubelet(ctx)
	return r.Redundant(ctx)
}

// Redundant waits until the operator reports that every partition has all its copies.
func (r *Run) Redundant(ctx context.Context) error {
	return r.Until(ctx, "the grid is redundant", func() bool {
		grid := &api.OrderGrid{}
		return r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: gridName}, grid) == nil && meta.IsStatusConditionTrue(grid.Status.Conditions, api.ConditionRedundant)
	})
}

// Until polls; the limit only turns a hang into an error.
func (r *Run) Until(ctx context.Context, what string, ok func() bool) error {
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not after %v; logs are in %s", what, patience, r.o.Dir)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// Close ends every process.
func (r *Run) Close() error {
	r.mu.Lock()
	r.closed = true
	all := append([]*process{}, r.others...)
	for _, p := range r.nodes {
		if p != nil {
			all = append(all, p)
		}
	}
	r.mu.Unlock()
	for _, p := range all {
		p.stop()
	}
	if r.env != nil && r.config != nil {
		return r.env.Stop()
	}
	return nil
}

// process is a running program, with its output in a file.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// spawn starts a program that ends with this one.
func (r *Run) spawn(name string, env []string, program string, args ...string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(r.o.Dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C reaches this program only, which then stops the others
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its exit status is in its log
		close(p.done)
	}()
	return p, nil
}

// kill ends a process as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop terminates gracefully first.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.kill()
	}
}
