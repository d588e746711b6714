package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/kube"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// ClusterOptions of a grid of pods.
type ClusterOptions struct {
	// Program is e2e/cluster/cmd/cluster: a machine's first process is a copy of
	// the program that switched it on.
	Program   string
	Replicas  int
	MemoryMiB int64
	// HandOverDelay of the grid; long, so that primaries do not go back by
	// themselves in the middle of something else.
	HandOverDelay time.Duration
	Logs          string // directory for what the pods write; "" keeps nothing
	Progress      func(format string, args ...any)
}

// Cluster is an OrderGrid on the Kubernetes of this checkout. Processes are
// reached from outside, so the cluster has to be a local one.
type Cluster struct {
	o        ClusterOptions
	machines cluster.Machines
	root     string // the checkout
	state    string // directory of the machines' disks
	kube     kube.Cluster
	helm     string
	service  string // address of the Service for clients
	api      client.Client
	logs     *podLogs // nil: nothing is kept
	freezer

	mu       sync.Mutex
	known    []Node          // as last seen
	former   []Node          // replaced, perhaps still running
	cut      map[string]bool // machines
	cordoned map[string]bool
	away     bool
}

var _ Target = (*Cluster)(nil)

const (
	clusterNamespace = "ordergrid-robustness"
	clusterGrid      = "rob"
	controlPlane     = "control-plane"
)

// Name implements Target.
func (c *Cluster) Name() string { return "cluster" }

// Grid implements Target.
func (c *Cluster) Grid() string { return clusterGrid }

// Replicas implements Target.
func (c *Cluster) Replicas() int { return c.o.Replicas }

// Endpoints implements Target: the Service for clients, which leads to the pods
// of every day; addresses of pods do not live as long as a run.
func (c *Cluster) Endpoints() []string { return []string{c.service} }

// Nodes implements Target. Without an API server, the pods are those of before;
// their processes are looked up again.
func (c *Cluster) Nodes(ctx context.Context) ([]Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.away {
		var pods corev1.PodList
		if err := c.api.List(ctx, &pods, client.InNamespace(clusterNamespace), client.MatchingLabels{objects.LabelInstance: clusterGrid, objects.LabelComponent: objects.GridNode}); err != nil {
			return nil, err
		}
		c.known = nil
		for i := range pods.Items {
			p := &pods.Items[i]
			if p.Status.PodIP == "" || p.Spec.NodeName == "" {
				continue
			}
			c.known = append(c.known, Node{Pod: p.Name, Machine: p.Spec.NodeName,
				Address: net.JoinHostPort(p.Status.PodIP, strconv.Itoa(api.DataPort)), HTTP: "http://" + net.JoinHostPort(p.Status.PodIP, strconv.Itoa(api.HTTPPort))})
		}
	}
	pids := GridProcesses()
	out := make([]Node, 0, len(c.known)+len(c.former))
	for _, n := range c.known {
		n.PID = pids[ipOf(n)]
		out = append(out, n)
	}
	for _, n := range c.former {
		if n.PID = pids[ipOf(n)]; n.PID != 0 && !slices.ContainsFunc(c.known, func(k Node) bool { return k.Address == n.Address }) {
			n.Former = true
			out = append(out, n)
		}
	}
	return out, nil
}

// GridProcesses finds the grid nodes among the processes of this machine, by the
// address of their pod.
func GridProcesses() map[string]int {
	out := map[string]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, dir := range dirs {
		cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.Contains(string(cmdline), "\x00serve\x00") {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil {
			continue
		}
		for v := range strings.SplitSeq(string(environ), "\x00") {
			if ip, ok := strings.CutPrefix(v, "POD_IP="); ok {
				if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
					out[ip] = pid
				}
			}
		}
	}
	return out
}

// Partitions implements Target.
func (c *Cluster) Partitions(ctx context.Context) ([]Partition, error) {
	var list api.GridPartitionList
	if err := c.api.List(ctx, &list, client.InNamespace(clusterNamespace)); err != nil {
		return nil, err
	}
	var out []Partition
	for i := range list.Items {
		r := &list.Items[i]
		id, err := wire.MakePartitionID(int(r.Spec.Partition))
		if err != nil {
			return nil, err
		}
		p := Partition{ID: id, Name: r.Name, Preferred: r.Spec.PreferredPod, Epoch: uint64(r.Status.Epoch)}
		if r.Status.Primary != nil {
			p.Primary = r.Status.Primary.PodName
		}
		for _, m := range r.Status.InSync {
			p.InSync = append(p.InSync, m.PodName)
		}
		out = append(out, p)
	}
	return out, nil
}

// Kill implements Target.
func (c *Cluster) Kill(_ context.Context, n Node) error { return signal(n, syscall.SIGKILL) }

// Stop implements Target: what a rolling update and a user do.
func (c *Cluster) Stop(ctx context.Context, n Node) error {
	return c.api.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: n.Pod}})
}

// Drain implements Target.
func (c *Cluster) Drain(ctx context.Context, n Node) error {
	c.mu.Lock()
	c.cordoned[n.Machine] = true
	c.mu.Unlock()
	_, err := c.kube.Run(ctx, "drain", n.Machine, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=3m")
	return err
}

// Undrain implements Target.
func (c *Cluster) Undrain(ctx context.Context, n Node) error { return c.uncordon(ctx, n.Machine) }

// Roll implements Target: by the change of spec that restarts all pods.
func (c *Cluster) Roll(ctx context.Context) error {
	patch := fmt.Sprintf(`{"spec":{"podTemplate":{"metadata":{"annotations":{"restarted":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	return c.api.Patch(ctx, &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: clusterGrid}},
		client.RawPatch(types.MergePatchType, []byte(patch)))
}

// Rolled implements Target: by the operator's status.
func (c *Cluster) Rolled(ctx context.Context) (done bool, missing string) {
	var grid api.OrderGrid
	if err := c.api.Get(ctx, client.ObjectKey{Namespace: clusterNamespace, Name: clusterGrid}, &grid); err != nil {
		return false, err.Error()
	}
	progressing := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionProgressing)
	if progressing == nil {
		return false, "no condition " + api.ConditionProgressing
	}
	current := grid.Status.ObservedGeneration == grid.Generation && grid.Status.UpdatedPods == int32(c.o.Replicas) && grid.Status.Pods == grid.Status.UpdatedPods
	return current && progressing.Status == metav1.ConditionFalse, progressing.Reason + ": " + progressing.Message
}

func (c *Cluster) uncordon(ctx context.Context, machine string) error {
	if _, err := c.kube.Run(ctx, "uncordon", machine); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cordoned, machine)
	return nil
}

// Cut implements Target: the cable of the machine is pulled.
func (c *Cluster) Cut(ctx context.Context, n Node) error {
	c.mu.Lock()
	c.cut[n.Machine] = true
	c.mu.Unlock()
	return c.machines.CutNode(ctx, n.Machine)
}

// Join implements Target.
func (c *Cluster) Join(ctx context.Context, n Node) error {
	if err := c.machines.HealNode(ctx, n.Machine); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cut, n.Machine)
	return nil
}

// Away implements Target: the machine with etcd, API server, scheduler and
// controllers has no power. It fails if the API server answers all the same.
func (c *Cluster) Away(ctx context.Context) error {
	c.mu.Lock()
	c.away = true
	c.mu.Unlock()
	if err := c.machines.KillNode(ctx, controlPlane); err != nil {
		return err
	}
	ask, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := c.Partitions(ask); err == nil {
		return fmt.Errorf("%s was switched off, and the API server still answers", controlPlane)
	}
	return nil
}

// Back implements Target.
func (c *Cluster) Back(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, c.o.Program, "node", "start", controlPlane)
	cmd.Dir = c.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cluster node start %s: %w: %s", controlPlane, err, strings.TrimSpace(string(out)))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = false
	return nil
}

// Prefer implements Target: by the annotation that a user uses. "" takes it
// away.
func (c *Cluster) Prefer(ctx context.Context, p Partition, pod string) error {
	value := "null"
	if pod != "" {
		value = strconv.Quote(pod)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, api.AnnotationPreferredPod, value)
	return c.api.Patch(ctx, &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: p.Name}},
		client.RawPatch(types.MergePatchType, []byte(patch)))
}

// Quiet implements Target: HandOverDelay does it.
func (c *Cluster) Quiet(context.Context) error { return nil }

// Replace implements Target: the pod is deleted by force, so that the StatefulSet
// makes another on another machine, while the kubelet of the first, out of reach,
// knows nothing of it.
func (c *Cluster) Replace(ctx context.Context, n Node) error {
	c.mu.Lock()
	c.former = append(c.former, n)
	c.cordoned[n.Machine] = true
	c.mu.Unlock()
	if _, err := c.kube.Run(ctx, "cordon", n.Machine); err != nil {
		return err
	}
	now := int64(0)
	return c.api.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: n.Pod}}, &client.DeleteOptions{GracePeriodSeconds: &now})
}

// Forget implements Target: the kubelet, back on the network, ends the process of
// the pod that is gone.
func (c *Cluster) Forget(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		nodes, err := c.Nodes(limit)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(nodes, func(n Node) bool { return n.Former })
		if i < 0 {
			break
		}
		select {
		case <-limit.Done():
			return fmt.Errorf("process %d of the former %s still runs: %w", nodes[i].PID, nodes[i].Pod, limit.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
	return c.uncordonAll(ctx)
}

func (c *Cluster) uncordonAll(ctx context.Context) (err error) {
	c.mu.Lock()
	var machines []string
	for m := range c.cordoned {
		machines = append(machines, m)
	}
	c.mu.Unlock()
	for _, m := range machines {
		err = errors.Join(err, c.uncordon(ctx, m))
	}
	return err
}

// Heal implements Target.
func (c *Cluster) Heal(ctx context.Context) (err error) {
	c.thawAll()
	c.mu.Lock()
	away := c.away
	var machines []string
	for m := range c.cut {
		machines = append(machines, m)
	}
	c.mu.Unlock()
	for _, m := range machines {
		err = errors.Join(err, c.Join(ctx, Node{Machine: m}))
	}
	if away {
		err = errors.Join(err, c.Back(ctx))
	}
	return errors.Join(err, c.uncordonAll(ctx))
}

// CPU implements Target.
func (c *Cluster) CPU(context.Context) []int {
	var pids []int
	for _, pid := range GridProcesses() {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

// SinkFiles implements Target.
func (c *Cluster) SinkFiles(context.Context) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(c.state, "machines", "*", "disk", "kubelet", sinkFolder, "*", "*", "*.log*"))
	out := map[string]string{}
	for _, p := range paths {
		rel, _ := filepath.Rel(filepath.Join(c.state, "machines"), p) // both begin alike
		out[strings.Replace(rel, "/disk/kubelet/"+sinkFolder, "", 1)] = p
	}
	return out, err
}
