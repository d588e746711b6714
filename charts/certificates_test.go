package charts

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// TestCertificateRights: Secrets are read in the configured namespaces and nowhere else, by name and never by list.
func TestCertificateRights(t *testing.T) {
	for key := range render(t, "certificates.namespaces=null") {
		if strings.Contains(key, "certificates") {
			t.Errorf("%s is rendered without namespaces for certificates", key)
		}
	}
	for _, c := range []struct {
		set  []string
		want []string
	}{
		{nil, []string{"ClusterRole/og-ordergrid-certificates"}},
		{[]string{"watchNamespaces={emea}"}, []string{"Role/emea/og-ordergrid-certificates"}},
		{[]string{"certificates.namespaces={emea,apac}"}, []string{"Role/apac/og-ordergrid-certificates", "Role/emea/og-ordergrid-certificates"}},
		{[]string{"certificates.namespaces={*}"}, []string{"ClusterRole/og-ordergrid-certificates"}},
		{[]string{"certificates.namespaces={*}", "watchNamespaces={emea}"}, []string{"Role/emea/og-ordergrid-certificates"}},
	} {
		var roles []string
		for key, o := range render(t, c.set...) {
			if !strings.HasSuffix(key, "-certificates") || !strings.HasSuffix(o.GetKind(), "Role") {
				continue
			}
			roles = append(roles, key)
			for _, rule := range as[rbacv1.ClusterRole](t, map[string]*unstructured.Unstructured{key: o}, key).Rules {
				for _, verb := range []string{"list", "watch", "delete", "*"} {
					if slices.Contains(rule.Verbs, verb) {
						t.Errorf("%s: %s is granted: %+v", key, verb, rule)
					}
				}
			}
		}
		slices.Sort(roles)
		if !slices.Equal(roles, c.want) {
			t.Errorf("%v renders %v, want %v", c.set, roles, c.want)
		}
	}
}

// TestOperatorNetworkPolicy: it selects the operator's pods and allows the egress they need.
func TestOperatorNetworkPolicy(t *testing.T) {
	objects := render(t, "networkPolicy.install=true", "drills.executors[0].name=lab", "drills.executors[0].url=https://x:9443", "drills.executors[0].tokenSecret=t", "drills.executors[0].caSecret=t",
		"drills.executors[1].name=old", "drills.executors[1].url=http://y", "drills.executors[1].tokenSecret=t", "drills.executors[1].insecure=Accept")
	policy := as[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy/og-ordergrid")
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil || !selector.Matches(labels.Set(as[appsv1.Deployment](t, objects, operator).Spec.Template.Labels)) {
		t.Errorf("it does not select the operator's pods: %v, %v", policy.Spec.PodSelector, err)
	}
	var ports []int32
	for _, rule := range policy.Spec.Egress {
		for _, p := range rule.Ports {
			ports = append(ports, p.Port.IntVal)
		}
	}
	slices.Sort(ports)
	if want := []int32{53, 53, 80, 443, 6443, 9400, 9401, 9443}; !slices.Equal(ports, want) {
		t.Errorf("it allows egress to ports %v, want %v", ports, want)
	}
}
