package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/internal/version"
)

type reportFlags struct {
	out, operator string
	direct        bool
	since         time.Duration
	lines         int64
}

func reportCommand(k *kubeFlags) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Gather diagnostics, without secrets and orders",
		Long: `Writes an archive (or a folder) that describes the OrderGrids of a namespace:

  SUMMARY.txt     contents, and what is missing and why
  kinds/          OrderGrids, GridPartitions, OrderProbes, FailoverDrills with their status and conditions
  objects/        pods, StatefulSets, Services, PodDisruptionBudgets, Jobs, events of the namespace; Kubernetes nodes
  nodes/POD/      pages of each grid node: status, peers, takeovers, clock, pauses as JSON, metrics as text
  logs/           of grid nodes, probes and recorders; the last container before a restart too
  operator/       pods and Deployments of the operator, its logs

No Secret and no ConfigMap is read, and no order: the data port is not used. Values that look secret (of environment
variables, arguments, fields and annotations by their name; keys, tokens and passwords in any text) are replaced by
[redacted], FIX messages and ClOrdIDs in logs by [order]. Review it before you send it.

It uses your own permissions: "get" and "list" of these kinds, "pods/log", "pods/portforward". What they do not
allow is left out and listed.

Exit codes: 0 everything is there, 1 written, but something is missing (see SUMMARY.txt), 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid report -n trading
  kubectl ordergrid report -n trading --out before.tar.gz --since 1h`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.since < time.Second:
				return usageError{fmt.Errorf("--since: value %v, allowed: 1s or more", f.since)}
			case f.lines < 1:
				return usageError{fmt.Errorf("--lines: value %d, allowed: 1 or more", f.lines)}
			}
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			return f.run(cmd, cluster)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.out, "out", "", "file ending in .tar.gz or .tgz, or a folder to make; default ordergrid-report-NAMESPACE-TIME.tar.gz")
	fl.StringVar(&f.operator, "operator-namespace", "ordergrid-system", "namespace that the operator was installed in")
	fl.BoolVar(&f.direct, "direct", false, "connect to pod addresses without a tunnel through the API server")
	fl.DurationVar(&f.since, "since", 24*time.Hour, "how far back logs go")
	fl.Int64Var(&f.lines, "lines", 20000, "of each log, at most, the last")
	return cmd
}

// gatherer collects one item after the other; a failure is noted and the rest is collected.
type gatherer struct {
	*reportFlags
	cluster *cluster
	sink    *reportSink
	taken   []string
	missing []string
	broken  error // of writing
}

func (f *reportFlags) run(cmd *cobra.Command, c *cluster) error {
	now := time.Now().UTC()
	path := f.out
	if path == "" {
		path = fmt.Sprintf("ordergrid-report-%s-%s.tar.gz", c.namespace, now.Format("20060102T150405Z"))
	}
	sink, err := newReportSink(path, now)
	if err != nil {
		return err
	}
	g := &gatherer{reportFlags: f, cluster: c, sink: sink}
	ctx := cmd.Context()
	g.objects(ctx)
	g.nodes(ctx)
	g.logs(ctx, "logs/", c.namespace, objects.LabelManagedBy+"=ordergrid-operator,"+objects.LabelComponent+" in ("+objects.GridNode+","+objects.Probe+","+objects.Drill+")")
	g.operatorParts(ctx)
	g.add("SUMMARY.txt", g.summary(now))
	if err := sink.close(); err != nil || g.broken != nil {
		return fmt.Errorf("%s: %w", path, firstError(g.broken, err))
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s is not complete: %w", path, ctx.Err())
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d files\n", path, len(g.taken))
	for _, m := range g.missing {
		fmt.Fprintln(cmd.OutOrStdout(), "missing:", m)
	}
	if len(g.missing) > 0 {
		return exitError(exitNotDone)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *gatherer) add(name string, data []byte) {
	if err := g.sink.add(name, data); err != nil && g.broken == nil {
		g.broken = err
	}
	g.taken = append(g.taken, name)
}

func (g *gatherer) lacks(name string, err error) {
	g.missing = append(g.missing, fmt.Sprintf("%s: %s", name, redactText(err.Error())))
}

func (g *gatherer) summary(now time.Time) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "kubectl ordergrid report, %s\n%s\nnamespace %s, operator in %s, logs of the last %v, at most %d lines each\n",
		now.Format(time.RFC3339), version.String(), g.cluster.namespace, g.operator, g.since, g.lines)
	if text, err := g.cluster.core.Get().AbsPath("/version").Do(context.Background()).Raw(); err == nil {
		fmt.Fprintf(&b, "API server: %s\n", strings.Join(strings.Fields(string(text)), " "))
	}
	fmt.Fprintf(&b, "\ntaken (%d):\n", len(g.taken)+1)
	for _, t := range g.taken {
		fmt.Fprintln(&b, " ", t)
	}
	fmt.Fprintf(&b, "\nmissing (%d):\n", len(g.missing))
	for _, m := range g.missing {
		fmt.Fprintln(&b, " ", m)
	}
	return b.Bytes()
}

// objects collects lists of the namespace.
func (g *gatherer) objects(ctx context.Context) {
	in := "/namespaces/" + g.cluster.namespace + "/"
	for _, o := range []struct{ name, path string }{
		{"kinds/ordergrids", "/apis/" + api.GroupVersion.String() + in + "ordergrids"},
		{"kinds/gridpartitions", "/apis/" + api.GroupVersion.String() + in + "gridpartitions"},
		{"kinds/orderprobes", "/apis/" + api.GroupVersion.String() + in + "orderprobes"},
		{"kinds/failoverdrills", "/apis/" + api.GroupVersion.String() + in + "failoverdrills"},
		{"objects/pods", "/api/v1" + in + "pods"},
		{"objects/services", "/api/v1" + in + "services"},
		{"objects/events", "/api/v1" + in + "events"},
		{"objects/statefulsets", "/apis/apps/v1" + in + "statefulsets"},
		{"objects/poddisruptionbudgets", "/apis/policy/v1" + in + "poddisruptionbudgets"},
		{"objects/jobs", "/apis/batch/v1" + in + "jobs"},
		{"objects/nodes", "/api/v1/nodes"},
	} {
		g.list(ctx, o.name+".yaml", o.path, "")
	}
}

// list collects one list of objects, page by page.
func (g *gatherer) list(ctx context.Context, name, path, selector string) {
	items, next := []any{}, ""
	for {
		raw, err := g.cluster.core.Get().AbsPath(path).Param("limit", "500").Param("continue", next).Param("labelSelector", selector).Do(ctx).Raw()
		var page struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Items    []any           `json:"items"`
		}
		if err == nil {
			err = json.Unmarshal(raw, &page)
		}
		if err != nil {
			g.lacks(name, err)
			return
		}
		items = append(items, page.Items...)
		if next = page.Metadata.Continue; next == "" {
			break
		}
	}
	text, err := yaml.Marshal(map[string]any{"path": path, "items": redactValue(items)})
	if err != nil {
		g.lacks(name, err)
		return
	}
	g.add(name, text)
}

// nodePagePaths are the pages of a node without orders.
var nodePagePaths = map[string]string{nodestatus.Path: "status.json", nodestatus.PeersPath: "peers.json", nodestatus.TakeoversPath: "takeovers.json",
	nodestatus.ClockPath: "clock.json", nodestatus.PausesPath: "pauses.json", "/readyz": "readyz.txt", "/metrics": "metrics.txt"}

// nodes collects the pages of every running grid node.
func (g *gatherer) nodes(ctx context.Context) {
	pods, err := g.cluster.gridNodePods(ctx)
	if err != nil {
		g.lacks("nodes/", err)
		return
	}
	for i := range pods {
		pod := &pods[i]
		name := "nodes/" + pod.Name + "/"
		if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
			g.lacks(name, fmt.Errorf("the pod is %s", pod.Status.Phase))
			continue
		}
		pages := newPages(g.cluster, pod.Labels[api.LabelGrid], g.direct)
		for path, file := range nodePagePaths {
			body, err := pages.page(ctx, pod, path)
			if err != nil && path != "/readyz" { // the status of a node shows whether it is ready
				g.lacks(name+file, err)
				continue
			}
			if err != nil {
				body = []byte(err.Error())
			}
			g.add(name+file, []byte(redactText(string(body))))
		}
		pages.close()
	}
}

// operatorParts collects what belongs to the operator.
func (g *gatherer) operatorParts(ctx context.Context) {
	const selector = "app.kubernetes.io/name=ordergrid,app.kubernetes.io/component=operator"
	in := "/namespaces/" + g.operator + "/"
	g.list(ctx, "operator/deployments.yaml", "/apis/apps/v1"+in+"deployments", selector)
	g.list(ctx, "operator/pods.yaml", "/api/v1"+in+"pods", selector)
	if n := g.logs(ctx, "operator/logs/", g.operator, selector); n == 0 {
		g.lacks("operator/logs/", fmt.Errorf("no pod of namespace %s has the labels %s; set --operator-namespace", g.operator, selector))
	}
}

// logs collects those of every container of some pods; it returns the number of pods.
func (g *gatherer) logs(ctx context.Context, folder, namespace, selector string) int {
	var list corev1.PodList
	err := g.cluster.core.Get().Namespace(namespace).Resource("pods").VersionedParams(&metav1.ListOptions{LabelSelector: selector}, g.cluster.params).Do(ctx).Into(&list)
	if err != nil {
		g.lacks(folder, err)
		return -1
	}
	for i := range list.Items {
		p := &list.Items[i]
		for _, c := range p.Status.ContainerStatuses {
			name := folder + p.Name + "-" + c.Name
			if c.State.Waiting == nil {
				g.log(ctx, name+".log", p, c.Name, false)
			}
			if c.LastTerminationState.Terminated != nil {
				g.log(ctx, name+"-before.log", p, c.Name, true)
			}
		}
	}
	return len(list.Items)
}

func (g *gatherer) log(ctx context.Context, name string, p *corev1.Pod, container string, previous bool) {
	text, err := g.cluster.core.Get().Namespace(p.Namespace).Resource("pods").Name(p.Name).SubResource("log").
		Param("container", container).Param("previous", strconv.FormatBool(previous)).Param("timestamps", "true").
		Param("sinceSeconds", strconv.Itoa(int(g.since.Seconds()))).Param("tailLines", strconv.FormatInt(g.lines, 10)).Do(ctx).Raw()
	if err != nil {
		g.lacks(name, err)
		return
	}
	g.add(name, []byte(redactText(string(text))))
}
