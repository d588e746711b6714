package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/cluster/local"
	"github.com/ordergrid/ordergrid/e2e/kube"
	"github.com/ordergrid/ordergrid/internal/checkout"
)

// sinkFolder is below the kubelet's directory on the disk of every machine, so
// that files of the sink outlive pods and can be read from outside.
const sinkFolder = "ordergrid-robustness"

// StartCluster installs the operator if need be and makes the grid. The cluster
// is up already, with the images loaded.
func StartCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	say := func(line string) { o.Progress("%s", line) }
	cl, kind, err := cluster.FromEnvironment(ctx, cluster.Options{Root: root, Out: io.Discard, Progress: io.Discard})
	if err != nil {
		return nil, err
	}
	if kind != cluster.Local {
		return nil, fmt.Errorf("a %s cluster: %w: processes and cables are reached on this machine only; use CLUSTER=local", kind, ErrUnsupported)
	}
	machines, err := cluster.MachinesOf(cl, kind)
	if err != nil {
		return nil, err
	}
	config, err := cl.Kubeconfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; bring the cluster up: go run ./e2e/cluster/cmd/cluster up", err)
	}
	bin, err := local.ProgramsDir(ctx, root)
	if err != nil {
		return nil, err
	}
	c := &Cluster{o: o, machines: machines, root: root, state: filepath.Dir(config), helm: filepath.Join(bin, "helm"),
		kube: kube.Cluster{Kubectl: filepath.Join(bin, "kubectl"), Kubeconfig: config},
		cut:  map[string]bool{}, cordoned: map[string]bool{}}
	if c.api, err = newClient(config); err != nil {
		return nil, err
	}
	chart := kube.OwnChart(root)
	chart.Helm = c.helm
	say("helm upgrade --install ordergrid")
	if _, err := c.kube.Install(ctx, chart); err != nil {
		return nil, err
	}
	if err := c.remove(ctx); err != nil { // of an earlier run that was killed
		return nil, err
	}
	if o.Logs != "" {
		pattern := filepath.Join(c.state, "machines", "*", "disk", "pods", clusterNamespace+"_*", "*", "*.log*")
		if c.logs, err = followPodLogs(pattern, o.Logs); err != nil {
			return nil, err
		}
	}
	if err := c.make(ctx, say); err != nil {
		return nil, errors.Join(err, c.remove(context.WithoutCancel(ctx)), c.closeLogs())
	}
	return c, nil
}

func newClient(kubeconfig string) (client.Client, error) {
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	rc.Timeout = 10 * time.Second
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.New(rc, client.Options{Scheme: scheme})
}

// make applies the grid and waits until it is redundant.
func (c *Cluster) make(ctx context.Context, say func(string)) error {
	var manifest strings.Builder
	fmt.Fprintf(&manifest, namespaceYAML, clusterNamespace)
	for i := range c.o.Replicas {
		pod := api.PodName(clusterGrid, 0, int32(i))
		if err := c.sinkDirectories(pod); err != nil {
			return err
		}
		fmt.Fprintf(&manifest, volumeYAML, pod, clusterNamespace, "/var/lib/kubelet/"+sinkFolder+"/"+pod)
	}
	fmt.Fprintf(&manifest, gridYAML, clusterGrid, clusterNamespace, c.o.Replicas, c.o.MemoryMiB, c.o.HandOverDelay)
	if _, err := c.kube.Apply(ctx, []byte(manifest.String())); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	err := kube.WaitFor(limit, "grid "+clusterGrid+" being redundant", say, func(ctx context.Context) (bool, string, error) {
		out, err := c.kube.Run(ctx, "get", "ordergrid", clusterGrid, "-n", clusterNamespace, "-o",
			`jsonpath={range .status.conditions[?(@.type=="Redundant")]}{.status} {.reason} {.message}{end}`)
		return strings.HasPrefix(out, "True"), "Redundant: " + out, err
	})
	if err != nil {
		return err
	}
	var service corev1.Service
	if err := c.api.Get(ctx, client.ObjectKey{Namespace: clusterNamespace, Name: clusterGrid + "-client"}, &service); err != nil {
		return err
	}
	c.service = net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(api.DataPort))
	_, err = c.Nodes(ctx)
	return err
}

// sinkDirectories makes a pod's directory on every machine, writable for the user
// that the pod runs as.
func (c *Cluster) sinkDirectories(pod string) error {
	kubelets, err := filepath.Glob(filepath.Join(c.state, "machines", "*", "disk", "kubelet"))
	if err != nil || len(kubelets) == 0 {
		return fmt.Errorf("no disk of a machine below %s: %w", c.state, errors.Join(err, os.ErrNotExist))
	}
	for _, dir := range kubelets {
		path := filepath.Join(dir, sinkFolder, pod)
		if err := errors.Join(os.MkdirAll(path, 0o777), os.Chmod(path, 0o777)); err != nil {
			return err
		}
	}
	return nil
}

// remove takes the grid and everything that belongs to it away.
func (c *Cluster) remove(ctx context.Context) error {
	_, err := c.kube.Run(ctx, "delete", "namespace", clusterNamespace, "--ignore-not-found", "--wait", "--timeout=2m")
	for i := range 3 {
		_, e := c.kube.Run(ctx, "delete", "persistentvolume", "robustness-"+api.PodName(clusterGrid, 0, int32(i)), "--ignore-not-found", "--wait", "--timeout=1m")
		err = errors.Join(err, e)
	}
	folders, _ := filepath.Glob(filepath.Join(c.state, "machines", "*", "disk", "kubelet", sinkFolder)) // the pattern is right
	for _, f := range folders {
		err = errors.Join(err, os.RemoveAll(f))
	}
	return err
}

// Close implements Target.
func (c *Cluster) Close(ctx context.Context) error {
	return errors.Join(c.Heal(ctx), c.remove(ctx), c.closeLogs())
}

func (c *Cluster) closeLogs() error {
	if c.logs == nil {
		return nil
	}
	return c.logs.Close()
}

const namespaceYAML = `apiVersion: v1
kind: Namespace
metadata:
  name: %s
  labels: {pod-security.kubernetes.io/enforce: restricted}
`

// A volume on the disk of whichever machine the pod is on.
const volumeYAML = `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: robustness-%[1]s}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ordergrid-robustness
  claimRef: {namespace: %[2]s, name: sink-%[1]s}
  hostPath: {path: %[3]s}
`

const gridYAML = `---
apiVersion: ordergrid.dev/v1alpha1
kind: OrderGrid
metadata: {name: %s, namespace: %s}
spec:
  security: {insecure: Accept}
  shards: 1
  replicas: %d
  memory: %dMi
  updateStrategy: {minReady: 2s, surge: 0}
  sinks:
  - name: file
    type: File
    file: {volume: PersistentVolumeClaim, size: 10Gi, storageClassName: ordergrid-robustness, whenDeleted: Delete}
  timing: {handOverDelay: %s}
`
