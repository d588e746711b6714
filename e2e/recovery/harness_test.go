package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/controllers/ordergrid"
	"github.com/ordergrid/ordergrid/e2e/runbook"
	arbiter "github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/internal/proc"
)

const replicas = 2

func TestMain(m *testing.M) {
	if text := os.Getenv(processEnv); text != "" {
		os.Exit(runProcess(text))
	}
	os.Exit(envtest.Run(m))
}

// processEnv makes this program a grid node instead of a test.
const processEnv = "ORDERGRID_TEST_PROCESS"

// process is how a grid node is started.
type process struct {
	Kubeconfig, Namespace, User, Pod, Data, HTTP, PeerKey string
}

func runProcess(text string) int {
	var p process
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	cfg.Impersonate.UserName = p.User // no more rights than the pod has
	keys, err := peerkey.Parse(p.PeerKey)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	a, err := arbiter.New(cfg, p.Namespace)
	if err == nil {
		var n *node.Node
		n, err = node.New(node.Config{PeerKeys: peerkey.Of(keys...), Grid: "rtd", Pod: p.Pod, Partitions: replicas, Replicas: replicas, Listen: p.Data, Advertise: p.Data, HTTP: p.HTTP,
			MemoryLimit: 256 << 20, Arbiter: a, Beacon: 50 * time.Millisecond, Lease: time.Second, Grace: 2 * time.Second, ClaimDelay: 20 * time.Second, HandOverDelay: time.Second,
			Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		if err == nil {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
			defer stop()
			err = n.Run(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// cluster is a pair of grid node processes, a real API server, the operator with a real cache, and a kubelet played by the
// test: it starts processes and tells the API server whether they are ready.
type cluster struct {
	t          *testing.T
	kube       kube.Client
	ns         string
	kubeconfig string
	grid       *api.OrderGrid
	processes  [replicas]*exec.Cmd
	data, http [replicas]string
	orders     int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, kubeconfig: envtest.Kubeconfig(t), kube: envtest.Client(t, envtest.Config(t))}
	c.ns = envtest.Namespace(t, c.kube, "recovery-")
	c.operate()
	c.grid = &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: "rtd", Namespace: c.ns}, Spec: api.OrderGridSpec{Replicas: replicas, Partitions: replicas, Memory: resource.MustParse("64Mi"), Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
	c.must(c.kube.Create(t.Context(), c.grid))
	c.until("the operator has made the StatefulSet", func() bool {
		return c.kube.Get(t.Context(), kube.ObjectKey{Namespace: c.ns, Name: "rtd-s0"}, &appsv1.StatefulSet{}) == nil
	})
	for i := range replicas {
		c.data[i], c.http[i] = proc.PortForTest(t), proc.PortForTest(t)
		c.createPod(i)
		c.start(i)
	}
	go c.kubelet(t.Context())
	c.until("the pair is redundant", func() bool { return c.is(api.ConditionRedundant, metav1.ConditionTrue) })
	return c
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// operate runs the operator until the test ends.
func (c *cluster) operate() {
	mgr, err := ctrl.NewManager(envtest.Config(c.t), ctrl.Options{
		Scheme: envtest.Scheme(), Metrics: server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{c.ns: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	c.must(err)
	nodes := nodestatus.NewClient(2*time.Second, func(ctx context.Context, network, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, c.reach(address))
	})
	r := &ordergrid.Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("operator"),
		Clock: clock.RealClock{}, Nodes: nodes, Defaults: ordergrid.Defaults{Image: "grid-node:test"}}
	c.must(r.SetupWithManager(mgr, 1))
	c.t.Cleanup(envtest.Operate(c.t, mgr))
}

func podIP(i int) string { return fmt.Sprintf("10.9.0.%d", i+1) }

// reach is where the process of the pod with that address listens.
func (c *cluster) reach(address string) string {
	for i := range replicas {
		if address == net.JoinHostPort(podIP(i), fmt.Sprint(api.HTTPPort)) {
			return c.http[i]
		}
	}
	return address
}

func podName(i int) string { return api.PodName("rtd", 0, int32(i)) }

func (c *cluster) createPod(i int) {
	c.t.Helper()
	set := &appsv1.StatefulSet{}
	c.must(c.kube.Get(c.t.Context(), kube.ObjectKey{Namespace: c.ns, Name: "rtd-s0"}, set))
	pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
	pod.Name, pod.Namespace = podName(i), c.ns
	c.must(c.kube.Create(c.t.Context(), pod))
	pod.Status.PodIP = podIP(i)
	c.must(c.kube.Status().Update(c.t.Context(), pod))
}

// start runs the process of a pod.
func (c *cluster) start(i int) {
	c.t.Helper()
	secret := &corev1.Secret{} // the kubelet mounts it
	c.must(c.kube.Get(c.t.Context(), kube.ObjectKey{Namespace: c.ns, Name: api.PeerKeySecret("rtd")}, secret))
	text, err := json.Marshal(process{PeerKey: string(secret.Data[api.PeerKeyFile]), Kubeconfig: c.kubeconfig, Namespace: c.ns, User: "system:serviceaccount:" + c.ns + ":rtd-s0",
		Pod: podName(i), Data: c.data[i], HTTP: c.http[i]})
	c.must(err)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), processEnv+"="+string(text))
	log, err := os.OpenFile(filepath.Join(c.t.ArtifactDir(), podName(i)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	c.must(err)
	cmd.Stderr = log
	c.must(cmd.Start())
	_ = log.Close() // the process has its own
	c.processes[i] = cmd
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && c.t.Failed() {
			c.t.Logf("log of %s:\n%s", podName(i), text)
		}
	})
}

// kill ends a process as a crash does.
func (c *cluster) kill(i int) {
	c.t.Helper()
	c.must(c.processes[i].Process.Kill())
	_ = c.processes[i].Wait()
}

// stop asks a process to stop, as the kubelet does, and waits for its orderly end.
func (c *cluster) stop(i int) {
	c.t.Helper()
	c.must(c.processes[i].Process.Signal(syscall.SIGTERM))
	if err := c.processes[i].Wait(); err != nil {
		c.t.Fatalf("%s: %v", podName(i), err)
	}
}

// flow submits orders one after the other until end is called, which returns how many were acknowledged and what failed.
func (c *cluster) flow() (end func() (int, error)) {
	c.t.Helper()
	cl, err := client.Dial(c.t.Context(), client.Config{Endpoints: c.data[:], Grid: "rtd", RequestTimeout: time.Minute, IO: client.IONet})
	c.must(err)
	stop, done := make(chan struct{}), make(chan error, 1)
	n := 0
	go func() {
		defer func() { _ = cl.Close() }()
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := cl.Submit(c.t.Context(), order(fmt.Sprint("flow-", n))); err != nil {
				done <- err
				return
			}
			n++
			time.Sleep(time.Millisecond)
		}
	}()
	return func() (int, error) {
		close(stop)
		err := <-done
		return n, err
	}
}

// kubelet keeps the Ready condition of the pods.
func (c *cluster) kubelet(ctx context.Context) {
	asker := &http.Client{Timeout: 2 * time.Second}
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		for i := range replicas {
			want := corev1.ConditionFalse
			if resp, err := asker.Get("http://" + c.http[i] + "/readyz"); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					want = corev1.ConditionTrue
				}
			}
			pod := &corev1.Pod{}
			if c.kube.Get(ctx, kube.ObjectKey{Namespace: c.ns, Name: podName(i)}, pod) != nil {
				continue
			}
			if len(pod.Status.Conditions) == 1 && pod.Status.Conditions[0].Status == want {
				continue
			}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: want}}
			_ = c.kube.Status().Update(ctx, pod) // again in a moment
		}
	}
}

// until polls; the limit only turns a hang into a failure.
func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			if c.grid != nil {
				for _, cond := range c.grid.Status.Conditions {
					c.t.Logf("%s %s/%s: %s", cond.Type, cond.Status, cond.Reason, cond.Message)
				}
				c.t.Logf("p0 %+v", c.partition(0))
				c.t.Logf("p1 %+v", c.partition(1))
			}
			c.t.Fatalf("%s: not after 2 minutes", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *cluster) is(condition string, status metav1.ConditionStatus) bool {
	c.t.Helper()
	c.must(c.kube.Get(c.t.Context(), kube.ObjectKeyFromObject(c.grid), c.grid))
	cond := meta.FindStatusCondition(c.grid.Status.Conditions, condition)
	return cond != nil && cond.Status == status
}

func (c *cluster) partition(i int) *api.GridPartition {
	c.t.Helper()
	p := &api.GridPartition{}
	c.must(c.kube.Get(c.t.Context(), kube.ObjectKey{Namespace: c.ns, Name: api.PartitionName("rtd", int32(i))}, p))
	return p
}

// spread reports whether every partition is complete and each pod primary of the one it should be: nothing is left to do.
func (c *cluster) spread() bool {
	for i := range replicas {
		if s := c.partition(i).Status; s.Primary == nil || s.Primary.PodName != podName(i) || len(s.InSync) != replicas {
			return false
		}
	}
	return true
}

func (c *cluster) annotate(i int, key, value string) {
	c.t.Helper()
	c.must(runbook.Annotate(c.t.Context(), c.kube, c.partition(i), key, value))
}

// wantEvent waits for an event about a partition or the grid.
func (c *cluster) wantEvent(reason string) {
	c.t.Helper()
	c.until("event "+reason, func() bool {
		var list corev1.EventList
		c.must(c.kube.List(c.t.Context(), &list, kube.InNamespace(c.ns)))
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == reason })
	})
}

// submit has n orders acknowledged, each within the timeout; they are spread over both partitions.
func (c *cluster) submit(n int, timeout time.Duration) error {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), timeout)
	defer cancel()
	cl, err := client.Dial(ctx, client.Config{Endpoints: c.data[:], Grid: "rtd", RequestTimeout: timeout, IO: client.IONet})
	if err != nil {
		return err
	}
	defer func() { _ = cl.Close() }()
	var errs []error
	for range n {
		c.orders++
		if _, err := cl.Submit(ctx, order(fmt.Sprint("order-", c.orders))); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// order is a valid NewOrderSingle.
func order(id string) []byte {
	body := "35=D\x0149=GW\x0156=OG\x0134=1\x0152=20261121-06:42:29.852\x0111=" + id +
		"\x0121=1\x0155=INTC\x0154=1\x0160=20261121-06:42:29.852\x0138=500\x0140=1\x01"
	msg := fmt.Sprintf("8=FIX.4.2\x019=%d\x01%s", len(body), body)
	sum := 0
	for _, b := range []byte(msg) {
		sum += int(b)
	}
	return fmt.Appendf([]byte(msg), "10=%03d\x01", sum%256)
}
