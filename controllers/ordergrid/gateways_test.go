package ordergrid

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// TestGatewayGetsCertificate: a grid issues a certificate to each of its gateways that has none, and to no other.
func TestGatewayGetsCertificate(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", securedSpec(api.TLSSpec{}))
	b.run(grid)
	gateway := func(name, grid string, own bool) {
		g := &api.OrderGateway{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace}, Spec: api.OrderGatewaySpec{
			GridRef: api.GridReference{Name: grid}, SessionsFrom: &api.GatewaySessions{ConfigMap: &api.GatewayFile{Name: "s"}},
			Listeners: []api.GatewayListener{{Name: "fix", Protocol: api.GatewayFIX, Insecure: api.InsecureAccept}},
		}}
		if own {
			g.Spec.Credentials = &api.GatewayCredentials{SecretName: "mine"}
		}
		if err := b.client.Create(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	gateway("street", "rtd", false)
	gateway("own", "rtd", true)
	gateway("elsewhere", "other", false)
	b.run(grid)
	s := b.secret("rtd.tls-gateway-street")
	cert, err := certificates.Check(s.Data, false, "", b.clock.Now())
	if err != nil || cert.Subject.CommonName != "ordergrid-gateway:street" || !slices.Equal(cert.Subject.Organization, []string{"ordergrid.dev:gateways"}) {
		t.Errorf("the certificate of the gateway: %v, subject %v", err, cert.Subject)
	}
	if trusted := secure.ParseCertificates(s.Data["ca.crt"]); len(trusted) == 0 {
		t.Error("the gateway is told no authority of the nodes")
	}
	for _, name := range []string{"rtd.tls-gateway-own", "rtd.tls-gateway-elsewhere"} {
		if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("Secret %s: %v, want none", name, err)
		}
	}
}

// TestGatewayMayNotDoMore: a gateway may do what its listeners need; one that is gone may do nothing.
func TestGatewayMayNotDoMore(t *testing.T) {
	grid := guardedGrid()
	street := api.GatewayUser("street")
	for _, c := range []struct {
		name     string
		protocol api.GatewayProtocol
		want     access.Permissions
	}{
		{"street", api.GatewayFIX, access.Submit | access.Read | access.Gateway}, {"street", api.GatewayWebSocket, access.Watch},
		{"street", api.GatewayPostgreSQL, access.Read | access.Query}, {"other", api.GatewayFIX, 0},
	} {
		g := &api.OrderGateway{ObjectMeta: metav1.ObjectMeta{Name: c.name}, Spec: api.OrderGatewaySpec{Listeners: []api.GatewayListener{{Protocol: c.protocol}}}}
		object, err := authorization(grid, rightsOf(g))
		if err != nil {
			t.Fatal(err)
		}
		rules, err := access.Parse([]byte(object.Data[rulesKey]))
		if err != nil {
			t.Fatal(err)
		}
		if got := rules.Of(&access.Identity{User: street}); got != c.want {
			t.Errorf("with %s of gateway %s, street may %v, want %v", c.protocol, c.name, got, c.want)
		}
	}
}

// TestGatewayReachesNodes: where the clients of a grid are named, its gateways are among them.
func TestGatewayReachesNodes(t *testing.T) {
	grid := securedGrid()
	grid.Spec.Security.NetworkPolicy.Clients = []api.PodPeers{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "oms"}}}}
	count := func(gateways ...string) (n int) {
		for _, p := range networkPolicy(grid, policyDefaults, gateways...).Spec.Ingress[0].From {
			if p.PodSelector != nil && p.PodSelector.MatchLabels["app.kubernetes.io/component"] == "gateway" {
				n++
			}
		}
		return n
	}
	if count() != 0 || count("street") != 1 {
		t.Errorf("peers that are gateways: %d without, %d with one, want 0 and 1", count(), count("street"))
	}
}
