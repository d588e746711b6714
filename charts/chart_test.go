// Package charts tests the Helm chart with the helm program itself.
package charts

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/ordergrid/ordergrid/internal/envtest"
)

func TestMain(m *testing.M) { os.Exit(envtest.Run(m, envtest.WithoutCRDs)) }

// helm runs the helm program without a cluster and returns what it printed.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return helmAt(t, filepath.Join(t.TempDir(), "none"), args...)
}

// rendered has the chart as templated renders it, by the arguments: several tests render the same values.
var rendered sync.Map

// template is helm with what templated returned.
func template(t *testing.T, args []string) (string, error) {
	t.Helper()
	key := strings.Join(args, "\x00")
	if out, found := rendered.Load(key); found {
		return out.(string), nil
	}
	out, err := helm(t, args...)
	if err == nil {
		rendered.Store(key, out)
	}
	return out, err
}

// helmAt runs the helm program with a kubeconfig.
func helmAt(t *testing.T, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	return envtest.Helm(t, kubeconfig, args...)
}

// everywhere sets the required values in tests of something other than the watched namespaces.
const everywhere = "clusterWide=Accept"

// templated are the arguments for rendering the chart with values, in every namespace unless they name some.
func templated(values ...string) []string {
	args := []string{"template", "og", "ordergrid", "--namespace", "og-system", "--kube-version", "1.36.3"}
	if !slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, "watchNamespaces=") }) {
		args = append(args, "--set", everywhere)
	}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	return args
}

// render renders the chart and returns its objects by kind/name.
func render(t *testing.T, values ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	args := templated(values...)
	out, err := template(t, args)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return objectsOf(t, out)
}

// parsed has the objects of documents. They are read only, and most of them are the same in every rendering.
var parsed sync.Map

func object(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	if u, found := parsed.Load(document); found {
		return u.(*unstructured.Unstructured)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(document), &u.Object); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	parsed.Store(document, u)
	return u
}

// objectsOf are the objects of a manifest by kind/name.
func objectsOf(t *testing.T, manifest string) map[string]*unstructured.Unstructured {
	t.Helper()
	objects := map[string]*unstructured.Unstructured{}
	for _, doc := range strings.Split(manifest, "\n---") {
		u := object(t, doc)
		if len(u.Object) == 0 {
			continue
		}
		key := u.GetKind() + "/" + u.GetName()
		if u.GetNamespace() != "" && u.GetNamespace() != "og-system" {
			key = u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()
		}
		if objects[key] != nil {
			t.Errorf("%s is rendered twice", key)
		}
		objects[key] = u
	}
	return objects
}

func as[T any](t *testing.T, objects map[string]*unstructured.Unstructured, key string) *T {
	t.Helper()
	u := objects[key]
	if u == nil {
		t.Fatalf("no %s", key)
	}
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, out, true); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return out
}

func TestLint(t *testing.T) {
	if out, err := helm(t, "lint", "--strict", "ordergrid"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDefaults(t *testing.T) {
	objects := render(t)
	want := []string{
		"ClusterRole/og-ordergrid", "ClusterRole/og-ordergrid-certificates", "ClusterRole/og-ordergrid-edit", "ClusterRole/og-ordergrid-metrics", "ClusterRole/og-ordergrid-metrics-reader", "ClusterRole/og-ordergrid-operate", "ClusterRole/og-ordergrid-preflight", "ClusterRole/og-ordergrid-view",
		"ClusterRoleBinding/og-ordergrid", "ClusterRoleBinding/og-ordergrid-certificates", "ClusterRoleBinding/og-ordergrid-metrics", "ClusterRoleBinding/og-ordergrid-preflight",
		"ConfigMap/og-ordergrid-dashboard-downstream", "ConfigMap/og-ordergrid-dashboard-exchange", "ConfigMap/og-ordergrid-dashboard-gateways", "ConfigMap/og-ordergrid-dashboard-latency", "ConfigMap/og-ordergrid-dashboard-operator", "ConfigMap/og-ordergrid-dashboard-overview",
		"ConfigMap/og-ordergrid-dashboard-probes", "ConfigMap/og-ordergrid-dashboard-queries", "ConfigMap/og-ordergrid-dashboard-replication",
		"CustomResourceDefinition/failoverdrills.ordergrid.dev", "CustomResourceDefinition/gridfunctions.ordergrid.dev", "CustomResourceDefinition/gridlinks.ordergrid.dev", "CustomResourceDefinition/gridpartitions.ordergrid.dev", "CustomResourceDefinition/gridregions.ordergrid.dev", "CustomResourceDefinition/instrumentsets.ordergrid.dev", "CustomResourceDefinition/ordergateways.ordergrid.dev", "CustomResourceDefinition/ordergrids.ordergrid.dev", "CustomResourceDefinition/orderprobes.ordergrid.dev", "CustomResourceDefinition/riskprofiles.ordergrid.dev",
		"Deployment/og-ordergrid", "Pod/og-ordergrid-test", "Role/og-ordergrid-leader", "Role/og-ordergrid-test", "RoleBinding/og-ordergrid-leader", "RoleBinding/og-ordergrid-test",
		"Service/og-ordergrid-metrics", "ServiceAccount/og-ordergrid", "ServiceAccount/og-ordergrid-test",
		"ValidatingAdmissionPolicy/og-ordergrid-deprecations", "ValidatingAdmissionPolicyBinding/og-ordergrid-deprecations",
	}
	var got []string
	for key := range objects {
		got = append(got, key)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("objects\n got: %v\nwant: %v", got, want)
	}
	deployment := as[appsv1.Deployment](t, objects, "Deployment/og-ordergrid")
	wantRestricted(t, deployment)
	c := deployment.Spec.Template.Spec.Containers[0]
	if c.Image != "ordergrid.dev/operator:dev" || !slices.Contains(c.Args, "--grid-node-image=ordergrid.dev/grid-node:dev") || !slices.Contains(c.Args, "--order-probe-image=ordergrid.dev/order-probe:dev") {
		t.Errorf("image %s, args %v", c.Image, c.Args)
	}
	for k, v := range deployment.Spec.Selector.MatchLabels {
		if deployment.Spec.Template.Labels[k] != v {
			t.Errorf("the selector's label %s=%s is not on the pods", k, v)
		}
	}
	service := objects["Service/og-ordergrid-metrics"]
	selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	for k, v := range selector {
		if deployment.Spec.Template.Labels[k] != v {
			t.Errorf("the Service's label %s=%s is not on the pods", k, v)
		}
	}
}

// wantRestricted checks the operator's pod against the Restricted Pod Security Standard.
func wantRestricted(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	pod := d.Spec.Template.Spec
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" || pod.HostNetwork || pod.HostPID || pod.HostIPC || len(pod.Volumes) > 0 {
		t.Errorf("pod %+v", pod)
	}
	for _, c := range pod.Containers {
		s := c.SecurityContext
		if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) > 0 {
			t.Errorf("container %+v", s)
		}
	}
}

// deletable are the kinds of a shard's objects, which are deleted when spec.shards falls, and of a sink's, when it leaves
// spec.sinks; the oldest runs of an OrderProbe with a schedule; and copies of functions that a grid no longer calls. Pods, Secrets and claims are not among them.
var deletable = []string{"gridpartitions", "orderprobes", "services", "serviceaccounts", "configmaps", "statefulsets", "deployments", "poddisruptionbudgets", "roles", "rolebindings"}

// TestRights: the operator may delete nothing but objects of shards and sinks, escalate nothing and read no Secret; no rule has a
// wildcard.
func TestRights(t *testing.T) {
	rules := as[rbacv1.ClusterRole](t, render(t), "ClusterRole/og-ordergrid").Rules
	for _, rule := range rules {
		for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
			if slices.Contains(list, "*") {
				t.Errorf("a wildcard: %+v", rule)
			}
		}
		for _, resource := range rule.Resources {
			if slices.Contains(rule.Verbs, "delete") && !slices.Contains(deletable, resource) {
				t.Errorf("delete is granted: %+v", rule)
			}
		}
		for _, verb := range []string{"deletecollection", "escalate", "bind", "impersonate"} {
			if slices.Contains(rule.Verbs, verb) {
				t.Errorf("%s is granted: %+v", verb, rule)
			}
		}
		for _, resource := range []string{"secrets", "nodes", "pods/exec", "pods/log", "clusterroles", "customresourcedefinitions"} {
			// The key of a grid's nodes is created and never read.
			if slices.Contains(rule.Resources, resource) && !(resource == "secrets" && slices.Equal(rule.Verbs, []string{"create"})) {
				t.Errorf("%s is granted: %+v", resource, rule)
			}
		}
	}
	edit := as[rbacv1.ClusterRole](t, render(t), "ClusterRole/og-ordergrid-edit")
	for _, rule := range edit.Rules {
		if slices.Contains(rule.Resources, "gridpartitions") || slices.Contains(rule.Resources, "failoverdrills") || slices.Contains(rule.Resources, "gridlinks") || slices.Contains(rule.Resources, "ordergateways") || slices.Contains(rule.Resources, "gridfunctions") || slices.Contains(rule.Resources, "gridregions") {
			t.Errorf("an editor of a namespace may change GridPartitions, run drills, carry a log away, open a port for orders or run code in a grid: %+v", rule)
		}
	}
	operate := as[rbacv1.ClusterRole](t, render(t), "ClusterRole/og-ordergrid-operate")
	if operate.Labels["rbac.authorization.k8s.io/aggregate-to-edit"] != "" || operate.Labels["rbac.authorization.k8s.io/aggregate-to-admin"] != "true" {
		t.Errorf("who may change GridPartitions: %v", operate.Labels)
	}
	if r := operate.Rules; len(r) != 2 || !slices.Equal(r[0].Resources, []string{"gridpartitions"}) || !slices.Equal(r[0].Verbs, []string{"patch"}) {
		t.Errorf("rules %+v; the status of a GridPartition is for grid nodes", r)
	}
	if r := operate.Rules; len(r) == 2 && !slices.Equal(r[1].Resources, []string{"failoverdrills", "gridlinks", "ordergateways", "instrumentsets", "gridfunctions", "riskprofiles", "gridregions"}) {
		t.Errorf("rules %+v; the administrator of a namespace may run drills in it", r)
	}
	if render(t, "userRoles=false")["ClusterRole/og-ordergrid-edit"] != nil {
		t.Error("userRoles=false still renders the roles")
	}
}

// TestCRDs: the chart installs the generated CRDs, kept on uninstall.
func TestCRDs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(envtest.CRDs(), "*.yaml"))
	if err != nil || len(files) != 10 {
		t.Fatalf("%d CRDs, error %v", len(files), err)
	}
	objects, gone := render(t), render(t, "crds.keep=false")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		generated := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &generated.Object); err != nil {
			t.Fatal(err)
		}
		key := "CustomResourceDefinition/" + generated.GetName()
		as[apiextensionsv1.CustomResourceDefinition](t, objects, key)
		rendered := objects[key].DeepCopy()
		if got := rendered.GetAnnotations()["helm.sh/resource-policy"]; got != "keep" {
			t.Errorf("%s: resource policy %q", key, got)
		}
		unstructured.RemoveNestedField(rendered.Object, "metadata", "annotations", "helm.sh/resource-policy")
		for _, got := range []*unstructured.Unstructured{rendered, gone[key]} {
			a, errA := yaml.Marshal(got.Object)
			b, errB := yaml.Marshal(generated.Object)
			if errA != nil || errB != nil || !bytes.Equal(a, b) {
				t.Errorf("%s differs from %s", key, file)
			}
		}
	}
	for key := range render(t, "crds.install=false") {
		if strings.HasPrefix(key, "CustomResourceDefinition/") {
			t.Errorf("crds.install=false still renders %s", key)
		}
	}
}

// TestPreflight: Kubernetes nodes are read, never changed, and only where that is enabled.
func TestPreflight(t *testing.T) {
	for _, test := range []struct {
		set  []string
		want bool
	}{
		{nil, true},
		{[]string{"watchNamespaces={emea}"}, false},
		{[]string{"watchNamespaces={emea}", "preflight=always"}, true},
		{[]string{"preflight=never"}, false},
	} {
		objects := render(t, test.set...)
		args := as[appsv1.Deployment](t, objects, "Deployment/og-ordergrid").Spec.Template.Spec.Containers[0].Args
		role, binding := objects["ClusterRole/og-ordergrid-preflight"], objects["ClusterRoleBinding/og-ordergrid-preflight"]
		if slices.Contains(args, "--preflight") != test.want || (role != nil) != test.want || (binding != nil) != test.want {
			t.Errorf("%v: args %v, role %v, binding %v; want preflight %v", test.set, args, role, binding, test.want)
		}
		if role == nil {
			continue
		}
		rules := as[rbacv1.ClusterRole](t, objects, "ClusterRole/og-ordergrid-preflight").Rules
		if len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{"nodes"}) || !slices.Equal(rules[0].Verbs, []string{"list", "watch"}) {
			t.Errorf("rules %+v", rules)
		}
	}
}

func TestWatchNamespaces(t *testing.T) {
	objects := render(t, "watchNamespaces={emea,apac}")
	if objects["ClusterRole/og-ordergrid"] != nil || objects["ClusterRoleBinding/og-ordergrid"] != nil {
		t.Error("cluster-wide permissions although only two namespaces are watched")
	}
	all := as[rbacv1.ClusterRole](t, render(t), "ClusterRole/og-ordergrid").Rules
	for _, ns := range []string{"emea", "apac"} {
		role := as[rbacv1.Role](t, objects, "Role/"+ns+"/og-ordergrid")
		binding := as[rbacv1.RoleBinding](t, objects, "RoleBinding/"+ns+"/og-ordergrid")
		if len(role.Rules) != len(all) || binding.Subjects[0].Namespace != "og-system" || binding.Subjects[0].Name != "og-ordergrid" {
			t.Errorf("%s: %d rules, subjects %+v", ns, len(role.Rules), binding.Subjects)
		}
	}
	args := as[appsv1.Deployment](t, objects, "Deployment/og-ordergrid").Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--watch-namespaces=emea,apac") {
		t.Errorf("args %v", args)
	}
}

// TestWhereTheOperatorMayWork: the watched namespaces must be set, on every way to install or upgrade; without a
// choice, or with both, the error has the values to set.
func TestWhereTheOperatorMayWork(t *testing.T) {
	for _, test := range []struct {
		args []string
		says []string // nil: it renders
	}{
		{nil, []string{"Neither watchNamespaces nor clusterWide is set", "--set 'watchNamespaces={trading}'", "--set clusterWide=Accept", "Nothing was installed."}},
		{[]string{"--is-upgrade"}, []string{"Neither watchNamespaces nor clusterWide is set", "Nothing was changed."}},
		{[]string{"--set", "watchNamespaces=null"}, []string{"Neither watchNamespaces nor clusterWide is set"}},
		{[]string{"--set", "clusterWide="}, []string{"Neither watchNamespaces nor clusterWide is set"}},
		{[]string{"--set", "watchNamespaces={emea,apac}", "--set", everywhere}, []string{"watchNamespaces is [emea, apac] and clusterWide is Accept", "--set clusterWide= ", "--set watchNamespaces=null "}},
		{[]string{"--set", "watchNamespaces={emea}"}, nil},
		{[]string{"--set", "watchNamespaces={emea}", "--set", "clusterWide="}, nil},
		{[]string{"--set", everywhere}, nil},
		{[]string{"--set", everywhere, "--is-upgrade"}, nil},
		{[]string{"--values", "../docs/examples/production/values.yaml", "--set", "watchNamespaces=null", "--set", everywhere}, nil},
	} {
		out, err := helm(t, append([]string{"template", "og", "ordergrid", "--kube-version", "1.36.3"}, test.args...)...)
		if (err == nil) != (test.says == nil) {
			t.Errorf("%v: error %v\n%s", test.args, err, out)
		}
		for _, want := range test.says {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", test.args, want, out)
			}
		}
	}
}

func TestValues(t *testing.T) {
	for _, test := range []struct {
		set  []string
		path []string // below spec.template.spec, or the image
		want string
	}{
		{[]string{"image.registry=registry.example/og", "image.tag=1.2.3"}, nil, "registry.example/og/operator:1.2.3"},
		{[]string{"image.operator=operator@sha256:abc"}, nil, "ordergrid.dev/operator@sha256:abc"},
		{[]string{"image.registry=", "image.operator=local:1"}, nil, "local:1"},
		{[]string{"priorityClassName=high"}, []string{"priorityClassName"}, "high"},
		{[]string{"nodeSelector.pool=infra"}, []string{"nodeSelector", "pool"}, "infra"},
		{[]string{"serviceAccount.name=mine"}, []string{"serviceAccountName"}, "mine"},
	} {
		d := render(t, test.set...)["Deployment/og-ordergrid"]
		got := as[appsv1.Deployment](t, map[string]*unstructured.Unstructured{"d": d}, "d").Spec.Template.Spec.Containers[0].Image
		if test.path != nil {
			got, _, _ = unstructured.NestedString(d.Object, append([]string{"spec", "template", "spec"}, test.path...)...)
		}
		if got != test.want {
			t.Errorf("%v: %q, want %q", test.set, got, test.want)
		}
	}
	d := as[appsv1.Deployment](t, render(t, "image.pullSecrets={a,b}", "image.pullPolicy=Never", "podAnnotations.x=y", "replicas=2"), "Deployment/og-ordergrid")
	spec := d.Spec.Template.Spec
	if len(spec.ImagePullSecrets) != 2 || spec.Containers[0].ImagePullPolicy != "Never" || !slices.Contains(spec.Containers[0].Args, "--image-pull-policy=Never") ||
		d.Spec.Template.Annotations["x"] != "y" || *d.Spec.Replicas != 2 {
		t.Errorf("%+v", d.Spec)
	}
}

func TestWrongValues(t *testing.T) {
	for _, test := range []struct{ set, want string }{
		{"replicas=9", "at '/replicas': maximum: got 9, want 5"},
		{"image.tag=a b", "at '/image/tag'"},
		{"image.pullPolicy=Sometimes", "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"},
		{"logLevel=loud", "at '/logLevel'"},
		{"watchNamespaces={Emea}", "at '/watchNamespaces/0'"},
		{"clusterWide=yes", "at '/clusterWide': value must be one of '', 'Accept'"},
		{"tagg=1", "additional properties 'tagg' not allowed"},
		{"resources.limit.memory=1Gi", "at '/resources': additional properties 'limit' not allowed"},
		{"tolerations[0].effects=NoSchedule", "at '/tolerations/0': additional properties 'effects' not allowed"},
		{"affinity.podAntiaffinity.x=y", "at '/affinity': additional properties 'podAntiaffinity' not allowed"},
	} {
		out, err := helm(t, "template", "og", "ordergrid", "--kube-version", "1.36.3", "--set", test.set)
		if err == nil || !strings.Contains(out, test.want) {
			t.Errorf("--set %s: error %v\n%s\nwant: %s", test.set, err, out, test.want)
		}
	}
}

// TestOperatorOnALostNode: a second operator is on another node if possible, and neither waits five minutes to be
// moved.
func TestOperatorOnALostNode(t *testing.T) {
	for _, test := range []struct {
		set      []string
		own      int // tolerations of the user's
		affinity bool
	}{
		{[]string{"replicas=2"}, 0, true},
		{[]string{"tolerations[0].key=desk", "tolerations[0].operator=Exists", "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1"}, 1, false},
	} {
		pod := as[appsv1.Deployment](t, render(t, test.set...), "Deployment/og-ordergrid").Spec.Template.Spec
		seconds := map[string]int64{}
		for _, toleration := range pod.Tolerations {
			if toleration.TolerationSeconds != nil {
				seconds[toleration.Key] = *toleration.TolerationSeconds
			}
		}
		if len(pod.Tolerations) != 2+test.own || seconds["node.kubernetes.io/unreachable"] != 10 || seconds["node.kubernetes.io/not-ready"] != 10 {
			t.Errorf("%v: tolerations %+v", test.set, pod.Tolerations)
		}
		apart := pod.Affinity.PodAntiAffinity != nil && pod.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.TopologyKey == "kubernetes.io/hostname"
		if apart != test.affinity {
			t.Errorf("%v: affinity %+v", test.set, pod.Affinity)
		}
	}
}
