package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	server "sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ordergrid/ordergrid/e2e/kube"
	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/internal/proc"
)

const (
	namespace         = "trading"
	operatorNamespace = "ordergrid-system"
	operatorAccount   = "ordergrid"
	podsPerNode       = 110 // what a kubelet takes by default
	startLimit        = 3 * time.Minute
)

// auditPolicy records users and requests, without bodies, of the operator alone.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: ["system:serviceaccount:` + operatorNamespace + `:` + operatorAccount + `"]
  - level: None
`

// cluster is a control plane and what runs beside it.
type cluster struct {
	dir    string // logs, audit log, configuration
	env    *server.Environment
	admin  *rest.Config
	client client.Client
	group  proc.Group
	fail   func(error) // called on a violation; ends the run
}

// start brings up a control plane, KWOK and nodes for so many pods, and installs the chart without its pod.
func start(ctx context.Context, o Options, pods int, fail func(error)) (c *cluster, err error) {
	c = &cluster{dir: o.Dir, fail: fail}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return c, err
	}
	assets, err := envtest.FindAssets()
	if err != nil {
		return c, err
	}
	if err := c.controlPlane(assets); err != nil {
		return c, err
	}
	if err := c.beside(assets, o.KWOK); err != nil {
		return c, err
	}
	if err := c.nodes(ctx, pods); err != nil {
		return c, err
	}
	return c, c.install(ctx, o.Root, assets)
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) controlPlane(assets string) (err error) {
	log.SetLogger(logr.Discard()) // of envtest; it complains without one
	if err := os.WriteFile(c.file("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	c.env = &server.Environment{BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: startLimit, ControlPlaneStopTimeout: startLimit}
	c.env.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", c.file("audit-policy.yaml")).Set("audit-log-path", c.file("audit.log")).
		// Each grid's Service for clients has an address of its own; envtest has 254.
		Set("service-cluster-ip-range", "10.0.0.0/16").
		// Pods name their grid's ServiceAccount; envtest switches off what looks for it.
		Set("disable-admission-plugins", "DefaultStorageClass")
	if c.admin, err = c.env.Start(); err != nil {
		return fmt.Errorf("start etcd and kube-apiserver: %w", err)
	}
	c.group.Add(c.env.Stop)
	c.admin.QPS = -1
	if c.client, err = client.New(c.admin, client.Options{Scheme: envtest.Scheme()}); err != nil {
		return err
	}
	return os.WriteFile(c.file("kubeconfig"), c.env.KubeConfig, 0o600)
}

// beside starts what makes pods out of StatefulSets, places them and plays their kubelets. Their limits on themselves
// are raised: at the defaults of 20 requests a second the StatefulSet controller would bound everything.
func (c *cluster) beside(assets, kwok string) error {
	if err := os.WriteFile(c.file("stages.yaml"), stages, 0o600); err != nil {
		return err
	}
	kubeconfig := "--kubeconfig=" + c.file("kubeconfig")
	for _, p := range [][]string{
		{filepath.Join(assets, "kube-controller-manager"), kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0",
			"--kube-api-qps=1000", "--kube-api-burst=2000", "--concurrent-statefulset-syncs=16",
			"--controllers=*,-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller", "--v=1"},
		{filepath.Join(assets, "kube-scheduler"), kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=0",
			"--kube-api-qps=1000", "--kube-api-burst=2000", "--v=1"},
		{filepath.Join(kwok, "kwok"), kubeconfig, "--config=" + c.file("stages.yaml"), "--manage-all-nodes", "--node-lease-duration-seconds=40", "--node-ip=127.79.0.1"},
	} {
		if _, err := c.run(filepath.Base(p[0]), p[0], nil, p[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// program is a process with its output in a file.
type program struct {
	cmd      *exec.Cmd
	stopping atomic.Bool
	ended    chan struct{}
	err      error // how it ended; after ended
}

// run starts a program. One that ends before it is asked to fails the run.
func (c *cluster) run(name, path string, env []string, args ...string) (*program, error) {
	out, err := os.OpenFile(c.file(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has its own
	p := &program{cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = out, out, append(os.Environ(), env...)
	if err := proc.StartCommand(p.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
		if !p.stopping.Load() {
			c.fail(fmt.Errorf("%s has ended by itself: %w, see %s", name, p.err, c.file(name+".log")))
		}
	}()
	c.group.Add(func() error { _ = p.stop(); return nil }) // how it ended is in its log
	return p, nil
}

// stop asks the program to end and waits until it has.
func (p *program) stop() error {
	p.stopping.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	<-p.ended
	return p.err
}

// nodes makes enough Kubernetes nodes, each with addresses of its own for pods.
func (c *cluster) nodes(ctx context.Context, pods int) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("256"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: *resource.NewQuantity(podsPerNode, resource.DecimalSI),
	}
	for i := range pods*5/4/podsPerNode + 4 {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}},
			Spec:       corev1.NodeSpec{PodCIDR: fmt.Sprintf("127.%d.%d.0/24", 80+i/256, i%256)},
			Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
		}
		node.Spec.PodCIDRs = []string{node.Spec.PodCIDR}
		if err := c.client.Create(ctx, node); err != nil {
			return err
		}
	}
	return until(ctx, "all Kubernetes nodes are ready", func(ctx context.Context) (bool, error) {
		var list corev1.NodeList
		if err := c.client.List(ctx, &list); err != nil {
			return false, err
		}
		for i := range list.Items {
			ready := false
			for _, cond := range list.Items[i].Status.Conditions {
				ready = ready || cond.Type == corev1.NodeReady && cond.Status == corev1.ConditionTrue
			}
			if !ready || len(list.Items[i].Spec.Taints) > 0 {
				return false, nil
			}
		}
		return true, nil
	})
}

// install puts the chart in, with everything but the operator's pod, whose place a process takes.
func (c *cluster) install(ctx context.Context, root, assets string) error {
	to := kube.Cluster{Kubeconfig: c.file("kubeconfig")}
	chart := kube.OwnChart(root)
	chart.Helm, chart.Namespace, chart.Set = filepath.Join(assets, "helm"), operatorNamespace, append(chart.Set, "replicas=0")
	if _, err := to.Install(ctx, chart); err != nil {
		return err
	}
	if err := c.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: operatorAccount, Namespace: operatorNamespace}}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}
	if err := c.client.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("token of the operator: %w", err)
	}
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["here"] = &clientcmdapi.Cluster{Server: c.admin.Host, CertificateAuthorityData: c.admin.CAData}
	cfg.AuthInfos["operator"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	cfg.Contexts["here"] = &clientcmdapi.Context{Cluster: "here", AuthInfo: "operator"}
	cfg.CurrentContext = "here"
	return clientcmd.WriteToFile(*cfg, c.file("operator.kubeconfig"))
}

// stop ends every process.
func (c *cluster) stop() error { return c.group.Stop() }

// until polls; the limit only turns a hang into an error.
func until(ctx context.Context, what string, ok func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %v", patience))
	defer cancel()
	for {
		done, err := ok(ctx)
		if done && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(context.Cause(ctx), err))
		case <-time.After(200 * time.Millisecond):
		}
	}
}
