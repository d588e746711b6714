package charts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/internal/envtest"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// always installs all optional objects, with or without CRDs.
var always = []string{"monitoring.podMonitors=always", "monitoring.serviceMonitor=always", "monitoring.prometheusRule=always", "dashboards.grafanaDashboards.install=always"}

var boardNames = []string{"downstream", "exchange", "gateways", "latency", "operator", "overview", "probes", "queries", "replication"}

// kinds counts the rendered monitoring objects by kind.
func kinds(objects map[string]*unstructured.Unstructured) map[string]int {
	n := map[string]int{}
	for _, u := range objects {
		switch k := u.GetKind(); k {
		case "PodMonitor", "ServiceMonitor", "PrometheusRule", "ConfigMap", "GrafanaDashboard":
			n[k]++
		}
	}
	return n
}

// TestMonitoringSwitches: each switch alone renders or removes its objects; auto follows the cluster's CRDs.
func TestMonitoringSwitches(t *testing.T) {
	for _, test := range []struct {
		set  []string
		want map[string]int
	}{
		{nil, map[string]int{"ConfigMap": 9}},
		{[]string{"monitoring.podMonitors=always", "drills.namespaces={lab}"}, map[string]int{"ConfigMap": 9, "PodMonitor": 6}},
		{[]string{"monitoring.podMonitors=always"}, map[string]int{"ConfigMap": 9, "PodMonitor": 5}},
		{[]string{"monitoring.serviceMonitor=always"}, map[string]int{"ConfigMap": 9, "ServiceMonitor": 1}},
		{[]string{"monitoring.prometheusRule=always"}, map[string]int{"ConfigMap": 9, "PrometheusRule": 1}},
		{[]string{"dashboards.configMaps.install=false"}, map[string]int{}},
		{[]string{"dashboards.grafanaDashboards.install=always"}, map[string]int{"ConfigMap": 9, "GrafanaDashboard": 9}},
		{[]string{"dashboards.configMaps.install=false", "dashboards.grafanaDashboards.install=always"}, map[string]int{"ConfigMap": 9, "GrafanaDashboard": 9}},
	} {
		if got := kinds(render(t, test.set...)); !equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.set, got, test.want)
		}
	}
	for _, test := range []struct {
		apis, set []string
		want      map[string]int
	}{
		{[]string{"monitoring.coreos.com/v1/PodMonitor"}, nil, map[string]int{"ConfigMap": 9, "PodMonitor": 5}},
		{[]string{"monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/ServiceMonitor", "monitoring.coreos.com/v1/PrometheusRule"}, nil,
			map[string]int{"ConfigMap": 9, "PodMonitor": 5, "ServiceMonitor": 1, "PrometheusRule": 1}},
		{[]string{"monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/ServiceMonitor"}, []string{"monitoring.podMonitors=never"},
			map[string]int{"ConfigMap": 9, "ServiceMonitor": 1}},
		{[]string{"grafana.integreatly.org/v1beta1/GrafanaDashboard"}, nil, map[string]int{"ConfigMap": 9}},
		{[]string{"grafana.integreatly.org/v1beta1/GrafanaDashboard"}, []string{"dashboards.grafanaDashboards.install=auto"}, map[string]int{"ConfigMap": 9, "GrafanaDashboard": 9}},
	} {
		out, err := helm(t, append(templated(test.set...), "--api-versions", strings.Join(test.apis, ","))...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got := map[string]int{}
		for kind := range test.want {
			got[kind] = strings.Count(out, "\nkind: "+kind+"\n")
		}
		if !equal(got, test.want) || strings.Contains(out, "kind: GrafanaDashboard") != (test.want["GrafanaDashboard"] > 0) {
			t.Errorf("cluster with %v, %v: %v, want %v", test.apis, test.set, got, test.want)
		}
	}
}

func equal(a, b map[string]int) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// TestMonitorsFindPods: selectors and ports match the pods that the operator creates, and the labels used by dashboards
// and rules are set.
func TestMonitorsFindPods(t *testing.T) {
	rendered := render(t, append(always, "drills.namespaces={lab}", "monitoring.interval=5s", "monitoring.labels.release=kps")...)
	for _, test := range []struct {
		key, list, component, port string
		made                       []string
	}{
		{"PodMonitor/og-ordergrid-nodes", "podMetricsEndpoints", objects.GridNode, "http", []string{"job", "namespace", "pod", "grid", "shard"}},
		{"PodMonitor/og-ordergrid-probes", "podMetricsEndpoints", objects.Probe, "metrics", []string{"job", "namespace", "pod", "orderprobe"}},
		{"PodMonitor/og-ordergrid-sinks", "podMetricsEndpoints", objects.Sink, "http", []string{"job", "namespace", "pod", "grid"}},
		{"PodMonitor/og-ordergrid-links", "podMetricsEndpoints", objects.Link, "http", []string{"job", "namespace", "pod", "gridlink"}},
		{"PodMonitor/og-ordergrid-gateways", "podMetricsEndpoints", objects.Gateway, "http", []string{"job", "namespace", "pod", "gateway", "grid"}},
		{"PodMonitor/og-ordergrid-recorders", "podMetricsEndpoints", objects.Drill, "metrics", []string{"job", "namespace", "pod", "drill"}},
		{"ServiceMonitor/og-ordergrid-operator", "endpoints", "", "metrics", []string{"job", "namespace", "pod"}},
	} {
		u := rendered[test.key]
		if u == nil {
			t.Fatalf("no %s", test.key)
		}
		selector, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
		if test.component != "" {
			common := objects.Labels(test.component, "any")
			for k, v := range selector {
				if common[k] != v {
					t.Errorf("%s: no pod has the label %s=%s", test.key, k, v)
				}
			}
			if selector[objects.LabelComponent] != test.component || selector[objects.LabelManagedBy] == "" {
				t.Errorf("%s selects %v", test.key, selector)
			}
		} else if service := rendered["Service/og-ordergrid-metrics"]; !subset(selector, service.GetLabels()) {
			t.Errorf("%s selects %v, the Service has %v", test.key, selector, service.GetLabels())
		}
		endpoints, _, _ := unstructured.NestedSlice(u.Object, "spec", test.list)
		if len(endpoints) != 1 {
			t.Fatalf("%s: %d endpoints", test.key, len(endpoints))
		}
		e := endpoints[0].(map[string]any)
		if e["port"] != test.port || e["interval"] != "5s" || u.GetLabels()["release"] != "kps" {
			t.Errorf("%s: endpoint %v, labels %v", test.key, e, u.GetLabels())
		}
		var made []string
		for _, r := range e["relabelings"].([]any) {
			made = append(made, r.(map[string]any)["targetLabel"].(string))
		}
		if !slices.Equal(made, test.made) {
			t.Errorf("%s makes the labels %v, want %v", test.key, made, test.made)
		}
		if protocols, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "scrapeProtocols"); len(protocols) == 0 || protocols[0] != "PrometheusProto" {
			t.Errorf("%s: %v; native histograms come by protobuf only", test.key, protocols)
		}
	}
	rules, err := os.ReadFile("ordergrid/files/scrape/labels.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{api.LabelGrid, api.LabelShard, api.LabelProbe, api.LabelDrill} {
		if meta := "__meta_kubernetes_pod_label_" + strings.NewReplacer(".", "_", "/", "_").Replace(label); !bytes.Contains(rules, []byte("["+meta+"]")) {
			t.Errorf("no rule reads %s", meta)
		}
	}
	if any, _, _ := unstructured.NestedBool(rendered["PodMonitor/og-ordergrid-nodes"].Object, "spec", "namespaceSelector", "any"); !any {
		t.Error("an operator of all namespaces has a monitor of some")
	}
	if e := fmt.Sprint(rendered["PodMonitor/og-ordergrid-recorders"].Object["spec"]); !strings.Contains(e, "scheme:https") || strings.Contains(e, "bearer") || strings.Contains(e, "authorization") ||
		strings.Count(e, "name:"+failoverdrill.MetricsSecret) != 3 || !strings.Contains(e, "serverName:"+recorder.ServerName) {
		t.Errorf("recorders are scraped so: %s", e)
	}
	some := render(t, append(always, "watchNamespaces={emea,apac}")...)["PodMonitor/og-ordergrid-nodes"]
	if names, _, _ := unstructured.NestedStringSlice(some.Object, "spec", "namespaceSelector", "matchNames"); !slices.Equal(names, []string{"emea", "apac"}) {
		t.Errorf("namespaces %v", names)
	}
}

func subset(part, of map[string]string) bool {
	for k, v := range part {
		if of[k] != v {
			return false
		}
	}
	return true
}

// TestDashboards: the ConfigMaps hold the generated dashboards, and the sidecar finds them.
func TestDashboards(t *testing.T) {
	objects := render(t, append(always, "dashboards.configMaps.label=grafana", "dashboards.configMaps.labelValue=yes", "dashboards.folder=Trading", "dashboards.namespace=observe")...)
	for _, name := range boardNames {
		key := "og-ordergrid-dashboard-" + name
		c := as[corev1.ConfigMap](t, objects, "ConfigMap/observe/"+key)
		if c.Labels["grafana"] != "yes" || c.Annotations["grafana_folder"] != "Trading" {
			t.Errorf("%s: labels %v, annotations %v", key, c.Labels, c.Annotations)
		}
		source, err := os.ReadFile(filepath.Join("..", "dashboards", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		text := c.Data["ordergrid-"+name+".json"]
		if strings.TrimSpace(text) != strings.TrimSpace(string(source)) || !json.Valid([]byte(text)) {
			t.Errorf("%s differs from dashboards/%s.json", key, name)
		}
		g := objects["GrafanaDashboard/observe/"+key]
		if g == nil {
			t.Fatalf("no GrafanaDashboard %s", key)
		}
		ref, _, _ := unstructured.NestedStringMap(g.Object, "spec", "configMapRef")
		folder, _, _ := unstructured.NestedString(g.Object, "spec", "folder")
		if ref["name"] != c.Name || c.Data[ref["key"]] == "" || folder != "Trading" {
			t.Errorf("%s: %v, folder %q", key, ref, folder)
		}
	}
	hidden := render(t, "dashboards.configMaps.install=false", "dashboards.grafanaDashboards.install=always")
	if c := as[corev1.ConfigMap](t, hidden, "ConfigMap/og-ordergrid-dashboard-overview"); c.Labels["grafana_dashboard"] != "" {
		t.Error("configMaps.install=false, but the sidecar finds the ConfigMap")
	}
}

func TestWrongMonitoringValues(t *testing.T) {
	for _, test := range []struct{ set, want string }{
		{"monitoring.podMonitors=true", "at '/monitoring/podMonitors'"},
		{"monitoring.prometheusRule=yes", "at '/monitoring/prometheusRule': value must be one of 'auto', 'always', 'never'"},
		{"monitoring.interval=15", "at '/monitoring/interval'"},
		{"monitoring.rules=always", "additional properties 'rules' not allowed"},
		{"dashboards.configMaps.install=maybe", "at '/dashboards/configMaps/install'"},
	} {
		out, err := helm(t, "template", "og", "ordergrid", "--kube-version", "1.36.3", "--set", test.set)
		if err == nil || !strings.Contains(out, test.want) {
			t.Errorf("--set %s: error %v\n%s\nwant: %s", test.set, err, out, test.want)
		}
	}
}

// TestMonitorsOnAPIServer: with the Prometheus operator's CRDs, auto installs objects that they accept. TestRelease,
// which runs first, shows that their absence is no error.
func TestMonitorsOnAPIServer(t *testing.T) {
	kubeconfig := envtest.Kubeconfig(t)
	cl := envtest.Client(t, envtest.Config(t), apiextensionsv1.AddToScheme)
	files, err := filepath.Glob("testdata/prometheus-operator/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			t.Fatal(err)
		}
		if err := cl.Create(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		waitForCRD(t, cl, crd.Name)
	}
	out, err := helmAt(t, kubeconfig, "install", "watched", "ordergrid", "--namespace", "watched", "--create-namespace",
		"--set", everywhere, "--set", "drills.namespaces={default}", "--set", "crds.install=false", "--set", "monitoring.labels.release=kps")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(out, "unknown field") {
		t.Errorf("the CRDs do not know a field:\n%s", out)
	}
	for kind, want := range map[string]int{"PodMonitor": 6, "ServiceMonitor": 1, "PrometheusRule": 1} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind + "List"})
		if err := cl.List(t.Context(), list, client.InNamespace("watched"), client.MatchingLabels{"release": "kps"}); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != want {
			t.Errorf("%d %ss, want %d", len(list.Items), kind, want)
		}
	}
	if out, err := helmAt(t, kubeconfig, "uninstall", "watched", "--namespace", "watched"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestRules: the PrometheusRule has the groups of dashboards/rules, with the templates of alerts unchanged.
func TestRules(t *testing.T) {
	source, err := os.ReadFile("../dashboards/rules/ordergrid.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(source, &want); err != nil {
		t.Fatal(err)
	}
	got := render(t, "monitoring.prometheusRule=always")["PrometheusRule/og-ordergrid"].Object["spec"]
	a, errA := yaml.Marshal(got)
	b, errB := yaml.Marshal(want)
	if errA != nil || errB != nil || len(want) == 0 || !bytes.Equal(a, b) {
		t.Errorf("the PrometheusRule differs from dashboards/rules: %v, %v\n%s", errA, errB, a)
	}
}
