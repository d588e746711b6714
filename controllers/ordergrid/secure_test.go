package ordergrid

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestSecure: the condition describes the access, whatever a grid was created with, and the remedy.
func TestSecure(t *testing.T) {
	enforce := &api.AuthorizationSpec{Mode: api.AuthorizationEnforce}
	for name, c := range map[string]struct {
		spec   api.SecuritySpec
		status metav1.ConditionStatus
		reason string
		says   string
		policy api.NetworkPolicyType
	}{
		"of before":            {api.SecuritySpec{}, metav1.ConditionFalse, "InsecureByDefault", "write spec.security.insecure: Accept", api.NetworkPolicyNone},
		"refused too late":     {api.SecuritySpec{Insecure: api.InsecureRefuse}, metav1.ConditionFalse, "InsecureByDefault", "any client that reaches the data port", api.NetworkPolicyNone},
		"accepted":             {api.SecuritySpec{Insecure: api.InsecureAccept}, metav1.ConditionFalse, "InsecureAccepted", "any client that reaches the data port", api.NetworkPolicyNone},
		"accepted, and fenced": {api.SecuritySpec{Insecure: api.InsecureAccept, NetworkPolicy: api.NetworkPolicySpec{Type: api.NetworkPolicyRestricted}}, metav1.ConditionFalse, "InsecureAccepted", "", api.NetworkPolicyRestricted},
		"certificates":         {api.SecuritySpec{TLS: &api.TLSSpec{}}, metav1.ConditionTrue, "ClientsProven", "a client that has one may do everything", api.NetworkPolicyRestricted},
		"rules":                {api.SecuritySpec{TLS: &api.TLSSpec{}, Authorization: enforce}, metav1.ConditionTrue, "ClientsProven", "what a rule gives it", api.NetworkPolicyRestricted},
		"rules, tokens":        {api.SecuritySpec{TLS: &api.TLSSpec{ClientAuth: api.ClientAuthNone}, Authorization: enforce}, metav1.ConditionTrue, "ClientsProven", "", api.NetworkPolicyRestricted},
		"not authenticated":    {api.SecuritySpec{TLS: &api.TLSSpec{ClientAuth: api.ClientAuthNone}}, metav1.ConditionFalse, "ClientsNotAsked", "mode to Enforce", api.NetworkPolicyRestricted},
		"a bank's authority":   {api.SecuritySpec{TLS: &api.TLSSpec{ClientAuthorities: &api.ConfigMapReference{Name: "desk"}}}, metav1.ConditionFalse, "ClientsNotAsked", "clientAuthorities", api.NetworkPolicyRestricted},
		"no policy":            {api.SecuritySpec{TLS: &api.TLSSpec{}, NetworkPolicy: api.NetworkPolicySpec{Type: api.NetworkPolicyNone}}, metav1.ConditionTrue, "ClientsProven", "", api.NetworkPolicyNone},
	} {
		grid := pairGrid()
		grid.Spec.Security = c.spec
		if j := judgeSecure(&observation{grid: grid}); j.status != c.status || j.reason != c.reason || !strings.Contains(j.message, c.says) {
			t.Errorf("%s: %+v", name, j)
		}
		if got := grid.Spec.Security.PolicyType(); got != c.policy {
			t.Errorf("%s: NetworkPolicy %s, want %s", name, got, c.policy)
		}
	}
}

// TestSecureIsReportedOnce: an open grid has one event about that, however often it is reconciled.
func TestSecureIsReportedOnce(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	b.play(grid)
	b.run(grid)
	b.run(grid)
	var events []string
	for len(b.events) > 0 {
		if e := <-b.events; strings.Contains(e, reasonInsecureAccepted) {
			events = append(events, e)
		}
	}
	if len(events) != 1 || !strings.Contains(events[0], corev1.EventTypeWarning) {
		t.Errorf("events %q, want one warning", events)
	}
}
