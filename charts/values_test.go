package charts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const operator = "Deployment/og-ordergrid"

// switches has, for every value, its effect on the rendered manifests.
var switches = []struct {
	value  string
	base   []string // set before and after
	set    []string
	object string
	// text is in the object after, and not before; if empty, the object exists before, and not after.
	text string
}{
	{"image.registry", nil, []string{"image.registry=registry.example/og"}, operator, "image: registry.example/og/operator:dev"},
	{"image.tag", nil, []string{"image.tag=1.2.3"}, operator, "--grid-node-image=ordergrid.dev/grid-node:1.2.3"},
	{"image.pullPolicy", nil, []string{"image.pullPolicy=Always"}, operator, "--image-pull-policy=Always"},
	{"image.pullSecrets", nil, []string{"image.pullSecrets={mine}"}, operator, "imagePullSecrets:\n      - name: mine"},
	{"image.operator", nil, []string{"image.operator=op"}, operator, "image: ordergrid.dev/op:dev"},
	{"image.gridNode", nil, []string{"image.gridNode=node@sha256:abc"}, operator, "--grid-node-image=ordergrid.dev/node@sha256:abc"},
	{"image.orderProbe", nil, []string{"image.orderProbe=prober"}, operator, "--order-probe-image=ordergrid.dev/prober:dev"},
	{"image.gridSink", nil, []string{"image.gridSink=writer"}, operator, "--grid-sink-image=ordergrid.dev/writer:dev"},
	{"image.gridLink", nil, []string{"image.gridLink=carrier"}, operator, "--grid-link-image=ordergrid.dev/carrier:dev"},
	{"image.orderGateway", nil, []string{"image.orderGateway=street"}, operator, "--order-gateway-image=ordergrid.dev/street:dev"},
	{"replicas", nil, []string{"replicas=2"}, operator, "replicas: 2"},
	{"watchNamespaces", nil, []string{"watchNamespaces={emea,apac}"}, operator, "--watch-namespaces=emea,apac"},
	{"clusterWide", []string{"watchNamespaces={emea}"}, []string{"watchNamespaces=null", everywhere}, "ClusterRole/og-ordergrid", "statefulsets"},
	{"preflight", nil, []string{"preflight=never"}, "ClusterRole/og-ordergrid-preflight", ""},
	{"certificates.namespaces", nil, []string{"certificates.namespaces={desk}"}, "Role/desk/og-ordergrid-certificates", "secrets"},
	{"networkPolicy.install", nil, []string{"networkPolicy.install=true"}, "NetworkPolicy/og-ordergrid", "port: 9400"},
	{"networkPolicy.monitoring", []string{"networkPolicy.install=true"}, []string{"networkPolicy.monitoring[0].podSelector.matchLabels.app=prometheus"}, "NetworkPolicy/og-ordergrid", "app: prometheus"},
	{"networkPolicy.apiServerPorts", nil, []string{"networkPolicy.apiServerPorts={443,16443}"}, operator, "--api-server-ports=443,16443"},
	{"drills.namespaces", nil, []string{"drills.namespaces={lab}"}, operator, "--drill-namespaces=lab"},
	{"podTemplates.allow", nil, []string{"podTemplates.allow.lab={HostPath//mnt/huge}"}, operator, "--pod-template-allow=lab=HostPath//mnt/huge"},
	{"functions.allow", nil, []string{"functions.allow.lab={registry.example:5000}"}, operator, "--function-allow=lab=registry.example:5000"},
	{"functions.pullSecrets", nil, []string{"functions.pullSecrets={lab}"}, "Role/lab/og-ordergrid-pull-secrets", "secrets"},
	{"drills.allow", nil, []string{"drills.allow.lab={NodePowerOff}"}, operator, "--drill-allow=lab=NodePowerOff"},
	{"drills.executors", nil, []string{"drills.executors[0].name=lab", "drills.executors[0].url=https://x:1", "drills.executors[0].tokenSecret=t", "drills.executors[0].caSecret=t"}, operator, "--drill-executor=lab=https://x:1"},
	{"drills.nodeFeaturesNamespace", []string{"drills.namespaces={lab}"}, []string{"drills.nodeFeaturesNamespace=tools"}, operator, "--drill-node-features-namespace=tools"},
	{"clientTokens.namespaces", []string{"clientTokens.namespaces={lab}"}, []string{"clientTokens.namespaces={lab,trading}"}, "ClusterRoleBinding/og-ordergrid-client-tokens", "system:serviceaccounts:trading"},
	{"metrics.readers", nil, []string{"metrics.readers[0].namespace=monitoring", "metrics.readers[0].name=prometheus"}, "ClusterRoleBinding/og-ordergrid-metrics-reader", "name: prometheus"},
	{"metrics.certSecret", nil, []string{"metrics.certSecret=shown"}, operator, "--metrics-cert-dir=/etc/ordergrid/metrics"},
	{"metrics.insecure", nil, []string{"metrics.insecure=Accept"}, operator, "--metrics-insecure"},
	{"workers", nil, []string{"workers=9"}, operator, "--workers=9"},
	{"logLevel", nil, []string{"logLevel=debug"}, operator, "--log-level=debug"},
	{"crds.install", nil, []string{"crds.install=false"}, "CustomResourceDefinition/ordergrids.ordergrid.dev", ""},
	{"crds.keep", []string{"crds.keep=false"}, []string{"crds.keep=true"}, "CustomResourceDefinition/ordergrids.ordergrid.dev", "helm.sh/resource-policy: keep"},
	{"serviceAccount.name", nil, []string{"serviceAccount.name=mine"}, operator, "serviceAccountName: mine"},
	{"serviceAccount.annotations", nil, []string{"serviceAccount.annotations.cloud=role"}, "ServiceAccount/og-ordergrid", "cloud: role"},
	{"userRoles", nil, []string{"userRoles=false"}, "ClusterRole/og-ordergrid-edit", ""},
	{"resources.requests.cpu", nil, []string{"resources.requests.cpu=77m"}, operator, "cpu: 77m"},
	{"resources.requests.memory", nil, []string{"resources.requests.memory=77Mi"}, operator, "memory: 77Mi"},
	{"resources.limits.memory", nil, []string{"resources.limits.memory=777Mi"}, operator, "memory: 777Mi"},
	{"podAnnotations", nil, []string{"podAnnotations.mesh=off"}, operator, "mesh: \"off\""},
	{"nodeSelector", nil, []string{"nodeSelector.pool=infra"}, operator, "nodeSelector:\n        pool: infra"},
	{"tolerations", nil, []string{"tolerations[0].key=desk", "tolerations[0].operator=Exists"}, operator, "key: desk"},
	{"affinity", nil, []string{"affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=rack"}, operator, "topologyKey: rack"},
	{"priorityClassName", nil, []string{"priorityClassName=high"}, operator, "priorityClassName: high"},
	{"monitoring.podMonitors", always, []string{"monitoring.podMonitors=never"}, "PodMonitor/og-ordergrid-nodes", ""},
	{"monitoring.serviceMonitor", always, []string{"monitoring.serviceMonitor=never"}, "ServiceMonitor/og-ordergrid-operator", ""},
	{"monitoring.prometheusRule", always, []string{"monitoring.prometheusRule=never"}, "PrometheusRule/og-ordergrid", ""},
	{"monitoring.interval", always, []string{"monitoring.interval=3s"}, "ServiceMonitor/og-ordergrid-operator", "interval: 3s"},
	{"monitoring.labels", always, []string{"monitoring.labels.release=kps"}, "PrometheusRule/og-ordergrid", "release: kps"},
	{"dashboards.configMaps.install", nil, []string{"dashboards.configMaps.install=false"}, "ConfigMap/og-ordergrid-dashboard-latency", ""},
	{"dashboards.configMaps.label", nil, []string{"dashboards.configMaps.label=sidecar"}, "ConfigMap/og-ordergrid-dashboard-latency", "sidecar: \"1\""},
	{"dashboards.configMaps.labelValue", nil, []string{"dashboards.configMaps.labelValue=yes"}, "ConfigMap/og-ordergrid-dashboard-latency", "grafana_dashboard: \"yes\""},
	{"dashboards.configMaps.folderAnnotation", nil, []string{"dashboards.configMaps.folderAnnotation=where"}, "ConfigMap/og-ordergrid-dashboard-latency", "where: OrderGrid"},
	{"dashboards.grafanaDashboards.install", always, []string{"dashboards.grafanaDashboards.install=never"}, "GrafanaDashboard/og-ordergrid-dashboard-latency", ""},
	{"dashboards.grafanaDashboards.instanceSelector.matchLabels.dashboards", always, []string{"dashboards.grafanaDashboards.instanceSelector.matchLabels.dashboards=desk"}, "GrafanaDashboard/og-ordergrid-dashboard-latency", "dashboards: desk"},
	{"dashboards.folder", nil, []string{"dashboards.folder=Trading"}, "ConfigMap/og-ordergrid-dashboard-latency", "grafana_folder: Trading"},
	{"dashboards.namespace", nil, []string{"dashboards.namespace=observe"}, "ConfigMap/observe/og-ordergrid-dashboard-latency", "namespace: observe"},
}

// TestEveryValue: each value of values.yaml has an effect on the rendered manifests, and none is without an entry here.
func TestEveryValue(t *testing.T) {
	var tested []string
	bases := map[string]map[string]*unstructured.Unstructured{}
	for _, s := range switches {
		tested = append(tested, s.value)
		key := strings.Join(s.base, " ")
		if bases[key] == nil {
			bases[key] = render(t, s.base...)
		}
		before, after := bases[key][s.object], render(t, slices.Concat(s.base, s.set)...)[s.object]
		switch {
		case s.text == "" && (before == nil || after != nil):
			t.Errorf("%s: %s is there before: %t, and after --set %v: %t", s.value, s.object, before != nil, s.set, after != nil)
		case s.text != "" && (strings.Contains(text(t, before), s.text) || !strings.Contains(text(t, after), s.text)):
			t.Errorf("%s: %q has to be in %s after --set %v: there before: %t, after: %t", s.value, s.text, s.object, s.set,
				strings.Contains(text(t, before), s.text), strings.Contains(text(t, after), s.text))
		}
	}
	slices.Sort(tested)
	values := leaves("", chartValues(t))
	for _, value := range values {
		if _, found := slices.BinarySearch(tested, value); !found {
			t.Errorf("value %s has no entry in switches", value)
		}
	}
	for _, value := range tested {
		if !slices.Contains(values, value) {
			t.Errorf("switches has %s, and values.yaml does not", value)
		}
	}
}

func text(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	if o == nil {
		return ""
	}
	data, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func chartValues(t *testing.T) map[string]any {
	t.Helper()
	values := map[string]any{}
	data, err := os.ReadFile(filepath.Join("ordergrid", "values.yaml"))
	if err == nil {
		err = yaml.UnmarshalStrict(data, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// leaves are the paths of all values that are not non-empty objects.
func leaves(path string, value any) (out []string) {
	object, _ := value.(map[string]any)
	if len(object) == 0 {
		return []string{path}
	}
	for name, v := range object {
		out = append(out, leaves(strings.TrimPrefix(path+"."+name, "."), v)...)
	}
	slices.Sort(out)
	return out
}

// valuesSchema is the part of JSON Schema that values.schema.json uses.
type valuesSchema struct {
	Ref                  string `json:"$ref"`
	Description          string
	Type                 string
	Properties           map[string]*valuesSchema
	AdditionalProperties json.RawMessage
	Items                *valuesSchema
	Definitions          map[string]*valuesSchema
}

// TestSchemaIsComplete: all values are described, and misspelt ones are detected.
func TestSchemaIsComplete(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("ordergrid", "values.schema.json"))
	root := &valuesSchema{}
	if err == nil {
		err = json.Unmarshal(data, root)
	}
	if err != nil {
		t.Fatal(err)
	}
	root.Description = "the values"
	root.check(t, "", root)
	for _, path := range leaves("", chartValues(t)) {
		at := root
		for name := range strings.SplitSeq(path, ".") {
			if next := at.resolve(root).Properties[name]; next != nil {
				at = next
			} else if string(at.AdditionalProperties) == "" || string(at.AdditionalProperties) == "false" {
				t.Errorf("values.yaml has %s, and values.schema.json does not have its %s", path, name)
			}
		}
	}
}

func (s *valuesSchema) resolve(root *valuesSchema) *valuesSchema {
	if name, found := strings.CutPrefix(s.Ref, "#/definitions/"); found {
		return root.Definitions[name]
	}
	return s
}

// free are the objects whose keys the chart does not know: values shared by a parent chart, and terms of affinities,
// which the API server checks.
var free = []string{"/networkPolicy/monitoring[]/namespaceSelector", "/networkPolicy/monitoring[]/podSelector", "/networkPolicy/monitoring[]/ipBlock",
	"/global", "/resources/claims[]", "/affinity/nodeAffinity", "/affinity/podAffinity", "/affinity/podAntiAffinity",
	"/dashboards/grafanaDashboards/instanceSelector/matchExpressions[]",
}

func (s *valuesSchema) check(t *testing.T, path string, root *valuesSchema) {
	t.Helper()
	if s.Description == "" && s.resolve(root).Description == "" && !strings.HasSuffix(path, "[]") {
		t.Errorf("%s has no description", path)
	}
	if s = s.resolve(root); s.Type == "" {
		t.Errorf("%s has no type", path)
	}
	if s.Type == "object" && !slices.Contains(free, path) {
		extra := string(s.AdditionalProperties)
		if typed := strings.HasPrefix(extra, "{"); !typed && extra != "false" {
			t.Errorf("%s: additionalProperties is %q; want false, or what the entries of a map are", path, extra)
		}
	}
	for name, property := range s.Properties {
		property.check(t, path+"/"+name, root)
	}
	if s.Items != nil {
		s.Items.check(t, path+"[]", root)
	} else if s.Type == "array" {
		t.Errorf("%s: items have no schema", path)
	}
}
