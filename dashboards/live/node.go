package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	arbiter "github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
)

// nodeEnv makes the program a grid node. The real one finds the API server by files at a fixed path in a container,
// which processes on one machine cannot each have.
const nodeEnv = "ORDERGRID_LIVE_NODE"

// nodeSpec is the configuration of a grid node.
type nodeSpec struct {
	Kubeconfig, Grid, Pod, IP, Sink string
	Peers                           []string // data ports of the shard's nodes
	PeerKey                         string   // file with the key of the grid; "": it is alone, or has certificates
	DropEvery                       uint64
	Guard                           *guard // nil: no client authentication
}

// IsNode reports whether this process was started as a grid node; then it has run, and this is its exit status.
func IsNode() (status int, yes bool) {
	text := os.Getenv(nodeEnv)
	if text == "" {
		return 0, false
	}
	if err := runNode(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func runNode(text string) error {
	var s nodeSpec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	dropEvery(s.DropEvery)
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return err
	}
	config.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + api.ShardName(s.Grid, 0) // only the pod's permissions
	a, err := arbiter.New(config, namespace)
	if err != nil {
		return err
	}
	var keys *peerkey.Keys
	if s.PeerKey != "" {
		if keys, err = peerkey.Load(s.PeerKey); err != nil {
			return err
		}
	}
	data := fmt.Sprintf("%s:%d", s.IP, api.DataPort)
	c := node.Config{Grid: s.Grid, Pod: s.Pod, Partitions: len(s.Peers), Replicas: len(s.Peers), Listen: data, Advertise: data, HTTP: fmt.Sprintf("%s:%d", s.IP, api.HTTPPort), Peers: s.Peers,
		MemoryLimit: 256 << 20, Arbiter: a, HandOverDelay: 3 * time.Second, Sink: "file", SinkDir: s.Sink, PeerKeys: keys, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if s.Guard != nil {
		if err := s.Guard.apply(&c, config); err != nil {
			return err
		}
	}
	n, err := node.New(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return n.Run(ctx)
}

// createPod plays the StatefulSet controller and the kubelet.
func (r *Run) createPod(ctx context.Context, set *appsv1.StatefulSet, name, ip string) error {
	pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
	pod.Name, pod.Namespace = name, namespace
	pod.Spec.NodeName = "this-machine" // plays the scheduler: condition Schedulable uses it
	if err := r.kube.Create(ctx, pod); err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: api.PeerKeySecret(gridName)}, secret); err != nil {
		return err
	}
	if err := os.WriteFile(r.peerKey(), secret.Data[api.PeerKeyFile], 0o600); err != nil {
		return err
	}
	pod.Status.PodIP = ip
	return r.kube.Status().Update(ctx, pod)
}

// peerKey is the file that the kubelet mounts.
func (r *Run) peerKey() string { return filepath.Join(r.o.Dir, "peer.key") }

func (r *Run) startNode(i int) error {
	s := nodeSpec{Kubeconfig: r.kubeconfig(), Grid: gridName, Pod: podName(i), IP: nodeIP(i), Sink: filepath.Join(r.o.Dir, "sink"), DropEvery: r.o.DropEvery, PeerKey: r.peerKey()}
	for peer := range replicas {
		s.Peers = append(s.Peers, fmt.Sprintf("%s:%d", nodeIP(peer), api.DataPort))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	p, err := r.spawnNode(s)
	if err == nil {
		r.nodes[i] = p
	}
	return err
}

func (r *Run) spawnNode(s nodeSpec) (*process, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return r.spawn(s.Pod, []string{nodeEnv + "=" + string(text)}, self)
}

// Kill ends the process of a pod as a crash does, and starts it again after a while, as the kubelet does.
func (r *Run) Kill(ctx context.Context, i int, away time.Duration) error {
	r.mu.Lock()
	p := r.nodes[i]
	r.mu.Unlock()
	p.kill()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(away):
	}
	return r.startNode(i)
}

// kubelet updates the Ready condition of the pods.
func (r *Run) kubelet(ctx context.Context) {
	asker := &http.Client{Timeout: 2 * time.Second}
	last := map[int]corev1.ConditionStatus{}
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		for i := range replicas {
			want := corev1.ConditionFalse
			if resp, err := asker.Get(fmt.Sprintf("http://%s:%d/readyz", nodeIP(i), api.HTTPPort)); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					want = corev1.ConditionTrue
				}
			}
			if last[i] == want {
				continue
			}
			pod := &corev1.Pod{}
			if r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: podName(i)}, pod) != nil {
				continue
			}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: want}}
			if r.kube.Status().Update(ctx, pod) == nil { // else retried shortly
				last[i] = want
			}
		}
	}
}
