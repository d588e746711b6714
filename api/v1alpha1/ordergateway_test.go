package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func gatewayWith(namespace string, listeners ...api.GatewayListener) *api.OrderGateway {
	for i := range listeners {
		listeners[i].TLS = &api.GatewayTLS{SecretName: "fix"}
	}
	return &api.OrderGateway{ObjectMeta: metav1.ObjectMeta{Name: "street", Namespace: namespace}, Spec: api.OrderGatewaySpec{
		GridRef: api.GridReference{Name: "trades"}, Listeners: listeners, SessionsFrom: &api.GatewaySessions{ConfigMap: &api.GatewayFile{Name: "s"}},
	}}
}

// TestGatewayDefaults: what is left out has the values of the page, and the number of pods is scaled like that of a
// Deployment, within its bounds.
func TestGatewayDefaults(t *testing.T) {
	cl := newClient(t)
	g := gatewayWith(envtest.Namespace(t, cl, "gateway-"), api.GatewayListener{Name: "fix", Protocol: api.GatewayFIX})
	if err := cl.Create(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	s := &g.Spec
	if s.Pods() != 1 || s.MaxSessions != 1000 || s.Port(api.GatewayFIX) != 7440 || s.Port(api.GatewayWebSocket) != 0 || s.Auth != api.GatewayAuthAny ||
		s.NetworkPolicy != api.NetworkPolicyRestricted || s.SessionsFrom.ConfigMap.Key != "sessions.json" {
		t.Errorf("defaults are %+v", s)
	}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 0}}
	if err := cl.SubResource("scale").Update(t.Context(), g, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := cl.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil || g.Spec.Pods() != 0 {
		t.Errorf("scaled to %d pods, %v, want 0", g.Spec.Pods(), err)
	}
	scale.Spec.Replicas = 101
	if err := cl.SubResource("scale").Update(t.Context(), g, client.WithSubResourceBody(scale)); err == nil || !strings.Contains(err.Error(), "allowed are 0 to 100 pods") {
		t.Errorf("scaled to 101: %v", err)
	}
}

// TestGatewayPorts: listeners do not share a port.
func TestGatewayPorts(t *testing.T) {
	cl := newClient(t)
	err := cl.Create(t.Context(), gatewayWith("default", api.GatewayListener{Name: "fix", Protocol: api.GatewayFIX}, api.GatewayListener{Name: "sql", Protocol: api.GatewayPostgreSQL}), client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "spec.listeners: Invalid value: two listeners have the same port; give each one of its own") {
		t.Errorf("two listeners at one port: %v", err)
	}
}

// TestGatewayListeners: all protocols together, their defaults, and the permissions that they need.
func TestGatewayListeners(t *testing.T) {
	cl := newClient(t)
	g := gatewayWith(envtest.Namespace(t, cl, "gateway-"), api.GatewayListener{Name: "fix", Protocol: api.GatewayFIX},
		api.GatewayListener{Name: "stream", Protocol: api.GatewayWebSocket, Port: 7441}, api.GatewayListener{Name: "sql", Protocol: api.GatewayPostgreSQL, Port: 5433})
	g.Spec.Streams = &api.GatewayStreams{ClientsFrom: &api.GatewayClients{ConfigMap: &api.GatewayClientsFile{Name: "c"}}, Origins: []string{"https://desk.example.com"}}
	g.Spec.SQL = &api.GatewaySQL{UsersFrom: &api.GatewayUsersFile{SecretName: "u"}}
	if err := cl.Create(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if w, q := g.Spec.Streams, g.Spec.SQL; w.MaxClients != 10000 || w.Console != api.ConsoleEnabled || w.ClientsFrom.ConfigMap.Key != "clients.json" || q.MaxConnections != 200 || q.UsersFrom.Key != "users.json" {
		t.Errorf("defaults are %+v %+v", w, q)
	}
	for _, c := range []struct {
		protocols []api.GatewayProtocol
		want      string
	}{
		{[]api.GatewayProtocol{api.GatewayFIX}, "[Submit Read Gateway]"},
		{[]api.GatewayProtocol{api.GatewayWebSocket}, "[Watch]"},
		{[]api.GatewayProtocol{api.GatewayPostgreSQL}, "[Read Query]"},
		{[]api.GatewayProtocol{api.GatewayWebSocket, api.GatewayPostgreSQL}, "[Watch Read Query]"},
		{[]api.GatewayProtocol{api.GatewayPostgreSQL, api.GatewayFIX, api.GatewayWebSocket}, "[Submit Read Gateway Watch Query]"},
	} {
		var s api.OrderGatewaySpec
		for _, p := range c.protocols {
			s.Listeners = append(s.Listeners, api.GatewayListener{Protocol: p})
		}
		if got := fmt.Sprint(s.GridPermissions()); got != c.want {
			t.Errorf("%v need %s, want %s", c.protocols, got, c.want)
		}
	}
	s := api.OrderGatewaySpec{Listeners: []api.GatewayListener{{Protocol: api.GatewayWebSocket}}, Streams: &api.GatewayStreams{Regions: []string{"*"}}}
	if got := fmt.Sprint(s.GridPermissions()); got != "[Watch Read]" {
		t.Errorf("streams of regions need %s, want [Watch Read]", got)
	}
	s.Streams.PublishRegions = []string{"positions"}
	if got := fmt.Sprint(s.GridPermissions()); got != "[Watch Read Submit Write]" {
		t.Errorf("streams that clients publish to need %s, want [Watch Read Submit Write]", got)
	}
}

// TestGatewayCancel: cancelOnDisconnect has a mode and a grace that the gateway takes, before sessions that there are.
func TestGatewayCancel(t *testing.T) {
	cl := newClient(t)
	fixed := api.GatewayListener{Name: "fix", Protocol: api.GatewayFIX}
	for _, c := range []struct {
		listener api.GatewayListener
		mode     api.GatewayCancelMode
		grace    time.Duration
		want     string
	}{
		{fixed, api.GatewayCancelOnDisconnect, time.Second, ""},
		{fixed, api.GatewayCancelOnLogout, time.Minute, ""},
		{fixed, api.GatewayCancelNone, 0, ""},
		{fixed, api.GatewayCancelOnDisconnect, 61 * time.Second, "1m1s is not a duration from 1s to 60s; write it as 10s or 1.5s"},
		{fixed, api.GatewayCancelOnDisconnect, 999 * time.Millisecond, "999ms is not a duration from 1s to 60s"},
		{fixed, api.GatewayCancelNone, 5 * time.Second, "grace has no effect with mode None; remove it, or set mode to OnDisconnect or OnDisconnectOrLogout"},
		{fixed, "Always", 0, `supported values: "None", "OnDisconnect", "OnDisconnectOrLogout"`},
		{api.GatewayListener{Name: "sql", Protocol: api.GatewayPostgreSQL}, api.GatewayCancelOnDisconnect, 0, "cancelOnDisconnect has no effect without a listener of protocol FIX; add one, or remove cancelOnDisconnect"},
	} {
		g := gatewayWith("default", c.listener)
		if g.Spec.CancelOnDisconnect = (&api.GatewayCancel{Mode: c.mode}); c.grace != 0 {
			g.Spec.CancelOnDisconnect.Grace = &metav1.Duration{Duration: c.grace}
		}
		err := cl.Create(t.Context(), g, client.DryRunAll)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.mode, c.grace, err, c.want)
		}
	}
}

// TestGatewayDropCopies: what a drop copy may be, and what is said of what it may not.
func TestGatewayDropCopies(t *testing.T) {
	cl := newClient(t)
	fixed := api.GatewayListener{Name: "fix", Protocol: api.GatewayFIX}
	at := func(n int32) *int32 { return &n }
	risk := api.GatewayDropCopy{Name: "risk", Session: "FIX.4.4:RISK->GRID"}
	for _, c := range []struct {
		listener api.GatewayListener
		list     []api.GatewayDropCopy
		want     string
	}{
		{fixed, []api.GatewayDropCopy{risk}, ""},
		{fixed, []api.GatewayDropCopy{{Name: "p0", Session: "FIX.4.4:RISK0->GRID", Partition: at(0)}, {Name: "p1", Session: "FIX.4.4:RISK1->GRID", Partition: at(1), Sessions: []string{"FIX.4.2:BANK->GRID", "FIXT.1.1:NEW->GRID"}}, {Name: "later", Session: "FIXT.1.1:RISK->GRID"}}, ""},
		{fixed, []api.GatewayDropCopy{{Name: "Risk", Session: risk.Session}}, "Risk is no name of a drop copy; use lowercase letters, digits and hyphens"},
		{fixed, []api.GatewayDropCopy{{Name: "risk", Session: "RISK"}}, "RISK is no session that can get copies; write it as FIX.4.4:RISK->GRID"},
		{fixed, []api.GatewayDropCopy{{Name: "risk", Session: "FIX.4.2:RISK->GRID"}}, "FIX.4.2:RISK->GRID is no session that can get copies"},
		{fixed, []api.GatewayDropCopy{{Name: "risk", Session: risk.Session, Partition: at(-1)}}, "-1 is no partition"},
		{fixed, []api.GatewayDropCopy{{Name: "risk", Session: risk.Session, Sessions: []string{"FIX.4.4:BANK->GRID", "BANK"}}}, "BANK is no session; write it as FIX.4.4:BANK->GRID"},
		{fixed, []api.GatewayDropCopy{{Name: "risk", Session: risk.Session, Sessions: []string{risk.Session}}}, "FIX.4.4:RISK->GRID gets the copies, and has no reports that could be copied to it"},
		{fixed, []api.GatewayDropCopy{risk, {Name: "other", Session: risk.Session}}, "two drop copies are for the same session"},
		{api.GatewayListener{Name: "sql", Protocol: api.GatewayPostgreSQL}, []api.GatewayDropCopy{risk}, "dropCopies has no effect without a listener of protocol FIX; add one, or remove dropCopies"},
	} {
		g := gatewayWith("default", c.listener)
		g.Spec.DropCopies = c.list
		err := cl.Create(t.Context(), g, client.DryRunAll)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.list, err, c.want)
		}
	}
}
