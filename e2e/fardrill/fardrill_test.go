//go:build e2e

package fardrill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/fixture"
	"github.com/ordergrid/ordergrid/e2e/robustness/faults"
)

const namespace = "ordergrid-far"

// TestCluster has the grid and its sink in pods, and the far side on this machine, at the address that the nodes reach it
// by. Each part can be chosen: `make e2e SUITE=sink-outage`.
func TestCluster(t *testing.T) {
	c := &inPods{Fixture: fixture.New(t, namespace)}
	c.Open(t.Context())
	c.Restrict(t.Context())
	for _, part := range []struct {
		name string
		run  func(context.Context, *inPods)
	}{
		{"sink-outage", sinkOutageInPods},
		{"sink-kafka", sinkKafkaInPods},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t.Context(), &inPods{Fixture: c.On(t)}) })
	}
}

// inPods is the cluster.
type inPods struct{ *fixture.Fixture }

// here is this machine's address as nodes of the cluster see it.
func (c *inPods) here(ctx context.Context) string {
	c.Helper()
	node := strings.Fields(c.Must(c.Kube.Run(ctx, "get", "nodes", "-o", `jsonpath={.items[*].status.addresses[?(@.type=="InternalIP")].address}`)))
	if len(node) == 0 {
		c.Fatal("no node has an address")
	}
	conn, err := net.Dial("udp", net.JoinHostPort(node[0], "9")) // nothing is sent
	if err != nil {
		c.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // nothing was sent
	return conn.LocalAddr().(*net.UDPAddr).IP.String()
}

// secret makes a Secret.
func (c *inPods) secret(ctx context.Context, name string, data map[string]string) {
	c.Helper()
	manifest, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": name, "namespace": namespace}, "stringData": data})
	if err != nil {
		c.Fatal(err)
	}
	c.Must(c.Kube.Apply(ctx, manifest))
}

// grow makes a grid of a file, with @BROKER@ replaced, and waits until it and its sink are there.
func (c *inPods) grow(ctx context.Context, name, broker string) {
	c.Helper()
	manifest, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		c.Fatal(err)
	}
	c.Log(c.Must(c.Kube.Apply(ctx, []byte(strings.ReplaceAll(string(manifest), "@BROKER@", broker)))))
	c.Cleanup(func() {
		if c.Failed() {
			c.Show(context.Background())
			out, err := c.Kube.Run(context.Background(), "logs", "-n", namespace, "-l", api.LabelSink, "--tail=40", "--prefix")
			c.Logf("logs of sinks (%v):\n%s", err, out)
		}
	})
	c.Condition(ctx, "ordergrid", name, api.ConditionRedundant, "True")
	c.Condition(ctx, "ordergrid", name, api.ConditionSinksReady, "True")
}

// pods of a grid.
func (c *inPods) pods(ctx context.Context, grid string) []corev1.Pod {
	c.Helper()
	var list corev1.PodList
	if err := c.Kube.Get(ctx, &list, "pods", "-n", namespace, "-l", api.LabelGrid+"="+grid+",app.kubernetes.io/component=grid-node"); err != nil {
		c.Fatal(err)
	}
	return list.Items
}

// killSink ends the process of a grid's sink, as a lost machine does; its pod begins anew.
func (c *inPods) killSink(ctx context.Context, grid string) string {
	c.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), "/grid-sink\x00") || !strings.Contains(string(text), "\x00"+grid+"-client."+namespace+".svc:") {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err != nil {
			c.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			c.Fatal(err)
		}
		return fmt.Sprintf("process %d of grid-sink was killed", pid)
	}
	c.Fatal("no process of grid-sink on this machine; the suite needs a local cluster")
	return ""
}

// killPrimary ends the process of the primary of partition 0.
func (c *inPods) killPrimary(ctx context.Context, grid string) (pod, witness string) {
	c.Helper()
	pod = c.Must(c.Kube.Run(ctx, "get", "gridpartition", api.PartitionName(grid, 0), "-n", namespace, "-o", "jsonpath={.status.primary.podName}"))
	for _, p := range c.pods(ctx, grid) {
		if p.Name != pod {
			continue
		}
		pid := faults.GridProcesses()[p.Status.PodIP]
		if pid == 0 {
			c.Fatalf("no process of %s on this machine; the suite needs a local cluster", pod)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			c.Fatal(err)
		}
		return pod, fmt.Sprintf("process %d of %s was killed", pid, pod)
	}
	c.Fatalf("the primary %q is no pod", pod)
	return "", ""
}

// failing waits until the status of the grid reports an error of the sink.
func (c *inPods) failing(ctx context.Context, grid string) {
	c.Helper()
	c.Eventually(ctx, "status.sinks of "+grid+" with the error", fixture.Patience, func(ctx context.Context) error {
		text, err := c.Kube.Run(ctx, "get", "ordergrid", grid, "-n", namespace, "-o", `jsonpath={.status.sinks[0].reason} {.status.sinks[0].lag} {.status.conditions[?(@.type=="SinksReady")].status} {.status.conditions[?(@.type=="SinksReady")].message}`)
		if err == nil && !strings.Contains(text, " False ") {
			err = errors.New(text)
		}
		if err == nil {
			c.Logf("sinks of %s: %s", grid, text)
		}
		return err
	})
}
