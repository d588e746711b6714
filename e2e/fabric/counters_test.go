//go:build e2e

package fabric

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/fixture"
)

// counted is what the kernel counted on the interfaces of one pod: bytes by "interface direction".
type counted map[string]uint64

var counterLine = regexp.MustCompile(`^ordergrid_node_interface_bytes_total\{direction="(\w+)",interface="([^"]+)"\} (\S+)$`)

func counters(ctx context.Context, s *fixture.Fixture, pod string) counted {
	s.Helper()
	c := counted{}
	for _, line := range metric(ctx, s, pod, "ordergrid_node_interface_bytes_total") {
		m := counterLine.FindStringSubmatch(line)
		if m == nil {
			s.Fatalf("what is %q?", line)
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			s.Fatal(err)
		}
		c[m[2]+" "+m[1]] = uint64(value)
	}
	return c
}

// metric returns the lines of one metric of a pod, asked through the API server.
func metric(ctx context.Context, s *fixture.Fixture, pod, name string) (lines []string) {
	s.Helper()
	text := s.Must(s.Kube.Run(ctx, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/metrics", namespace, pod, api.HTTPPort)))
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name+"{") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// bytesTakeTheFabric runs a probe and compares what each interface of each grid node carried during it. An order of 305
// bytes reaches each copy once, and leaves the primary once: that has to be on the fabric, and eth0 may carry at most
// health checks, metrics and the API server need.
func bytesTakeTheFabric(ctx context.Context, s *fixture.Fixture) {
	before := map[string]counted{}
	for _, pod := range podsOf(ctx, s, "pair") {
		before[pod.Name] = counters(ctx, s, pod.Name)
	}
	s.Apply(ctx, "probe.yaml")
	s.Condition(ctx, "orderprobe", "load", "Complete", "True")
	s.Log("\n" + s.Must(s.Kube.Run(ctx, "get", "configmap", "load-report", "-n", namespace, "-o", `jsonpath={.data.table\.txt}`)))
	const wholeOrders = 2 * 1000 * 10 * 305 // two probes, 1,000 a second each, 10 s, 305 bytes an order
	for _, pod := range podsOf(ctx, s, "pair") {
		after := counters(ctx, s, pod.Name)
		grown := func(key string) uint64 { return after[key] - before[pod.Name][key] }
		s.Logf("%s carried during the probe, bytes:\n%s", pod.Name, table(after, grown))
		onFabric := grown(device+" received") + grown(device+" sent")
		onPods := grown("eth0 received") + grown("eth0 sent")
		// Each pod is primary of one partition: it receives the orders of both, its own from clients and the others from
		// the other pod.
		if grown(device+" received") < wholeOrders {
			s.Errorf("%s received %d bytes on %s, less than the %d of the orders", pod.Name, grown(device+" received"), device, wholeOrders)
		}
		if onPods*10 > onFabric {
			s.Errorf("%s: eth0 carried %d bytes, the fabric %d: orders or copies of them took the pod network", pod.Name, onPods, onFabric)
		}
	}
}

func table(after counted, grown func(string) uint64) string {
	var b strings.Builder
	for _, name := range []string{"eth0", device, "lo"} {
		if _, there := after[name+" received"]; there {
			fmt.Fprintf(&b, "  %-8s received %9d  sent %9d\n", name, grown(name+" received"), grown(name+" sent"))
		}
	}
	return b.String()
}
