package ordergateway

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/golden"
)

var testDefaults = Defaults{Image: "ordergrid.dev/order-gateway:dev", ImagePullPolicy: corev1.PullIfNotPresent}

// aGateway has TLS, sessions with certificates and passwords, and what else can be set.
func aGateway() *api.OrderGateway {
	return &api.OrderGateway{
		ObjectMeta: metav1.ObjectMeta{Name: "street", Namespace: "trading", Generation: 1},
		Spec: api.OrderGatewaySpec{
			GridRef: api.GridReference{Name: "trades"}, Replicas: ptr.To[int32](1), MaxSessions: 500,
			Listeners:                 []api.GatewayListener{{Name: "fix", Protocol: api.GatewayFIX, Port: 7440, TLS: &api.GatewayTLS{SecretName: "street-fix"}}},
			SessionsFrom:              &api.GatewaySessions{ConfigMap: &api.GatewayFile{Name: "street-sessions", Key: "sessions.json"}, PasswordsFrom: &api.GatewayCredentials{SecretName: "street-passwords"}},
			Auth:                      api.GatewayAuthBoth,
			CancelOnDisconnect:        &api.GatewayCancel{Mode: api.GatewayCancelOnDisconnect, Grace: &metav1.Duration{Duration: 5 * time.Second}},
			DropCopies:                []api.GatewayDropCopy{{Name: "risk", Session: "FIX.4.4:RISK->GRID", Partition: ptr.To[int32](0), Sessions: []string{"FIX.4.4:BANK->GRID", "FIX.4.2:FUND->GRID"}}, {Name: "all", Session: "FIX.4.4:ALL->GRID"}},
			Service:                   api.GatewayService{Type: corev1.ServiceTypeLoadBalancer, Annotations: map[string]string{"example.com/pool": "street"}},
			NetworkPolicy:             api.NetworkPolicyRestricted,
			NodeSelector:              map[string]string{"pool": "edge"},
			Tolerations:               []corev1.Toleration{{Key: "edge", Operator: corev1.TolerationOpExists}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule}},
		},
	}
}

// openGateway is one for a lab: no TLS anywhere, the file in a Secret.
func openGateway() *api.OrderGateway {
	g := aGateway()
	g.Spec = api.OrderGatewaySpec{
		GridRef: g.Spec.GridRef, MaxSessions: 1000, Auth: api.GatewayAuthAny,
		Listeners:    []api.GatewayListener{{Name: "fix", Protocol: api.GatewayFIX, Port: 7440, Insecure: api.InsecureAccept}},
		SessionsFrom: &api.GatewaySessions{Secret: &api.GatewayFile{Name: "sessions", Key: "fix.json"}},
	}
	return g
}

// proving is one whose sessions have tokens.
func proving() *api.OrderGateway {
	g := aGateway()
	g.Spec = api.OrderGatewaySpec{GridRef: g.Spec.GridRef, MaxSessions: 100, Auth: api.GatewayAuthToken, Listeners: g.Spec.Listeners, SessionsFrom: g.Spec.SessionsFrom}
	return g
}

// asking is one for streams and SQL, whose grid decides who may ask.
func asking() *api.OrderGateway {
	return &api.OrderGateway{ObjectMeta: metav1.ObjectMeta{Name: "desk", Namespace: "trading", Generation: 1}, Spec: api.OrderGatewaySpec{
		GridRef: api.GridReference{Name: "trades"}, Replicas: ptr.To[int32](1), MaxSessions: 1000, Auth: api.GatewayAuthAny,
		Listeners: []api.GatewayListener{
			{Name: "stream", Protocol: api.GatewayWebSocket, Port: 7441, TLS: &api.GatewayTLS{SecretName: "desk-tls"}},
			{Name: "sql", Protocol: api.GatewayPostgreSQL, Port: 5433, TLS: &api.GatewayTLS{SecretName: "desk-tls"}}},
		Streams: &api.GatewayStreams{MaxClients: 9000, Follow: api.FollowWanted, Origins: []string{"https://desk.example.com"}, Console: api.ConsoleDisabled, Regions: []string{"positions", "quotes"}, PublishRegions: []string{"quotes"}, ClientsFrom: &api.GatewayClients{
			ConfigMap: &api.GatewayClientsFile{Name: "desk-clients", Key: "clients.json"}, TokensFrom: &api.GatewayCredentials{SecretName: "desk-tokens"}},
			PeersFrom: &api.GatewayPeers{SecretName: "desk-peers", Key: "token"}},
		SQL: &api.GatewaySQL{MaxConnections: 50, UsersFrom: &api.GatewayUsersFile{SecretName: "desk-users", Key: "users.json"}},
	}}
}

// openAsking is one for a lab.
func openAsking() *api.OrderGateway {
	g := asking()
	for i := range g.Spec.Listeners {
		g.Spec.Listeners[i].TLS, g.Spec.Listeners[i].Insecure = nil, api.InsecureAccept
	}
	g.Spec.SQL = nil
	g.Spec.Streams = &api.GatewayStreams{ClientsFrom: &api.GatewayClients{Secret: &api.GatewayClientsFile{Name: "clients", Key: "all.json"}}}
	return g
}

// enforcing is a grid that has views, further columns, and rules.
func enforcing() *api.OrderGrid {
	g := aGrid()
	g.Spec.Security.TLS.ClientAuth = api.ClientAuthNone
	g.Spec.Security.Authorization = &api.AuthorizationSpec{Mode: api.AuthorizationEnforce}
	g.Spec.Views = &api.ViewsSpec{}
	g.Spec.OrderIndex = []api.OrderIndex{{Tag: 5001, Type: api.OrderIndexText, Name: "Desk"}, {Tag: 5002, Type: api.OrderIndexDecimal}}
	return g
}

func aGrid() *api.OrderGrid {
	return &api.OrderGrid{
		ObjectMeta: metav1.ObjectMeta{Name: "trades", Namespace: "trading"},
		Spec:       api.OrderGridSpec{Partitions: 8, Security: api.SecuritySpec{TLS: &api.TLSSpec{}}},
	}
}

// TestGoldenObjects compares every object of two gateways with testdata/<gateway>/<object>.yaml.
func TestGoldenObjects(t *testing.T) {
	lab := aGrid()
	lab.Spec.Security = api.SecuritySpec{Insecure: api.InsecureAccept}
	labWithViews := lab.DeepCopy()
	labWithViews.Spec.Views = &api.ViewsSpec{}
	for name, c := range map[string]struct {
		gateway *api.OrderGateway
		grid    *api.OrderGrid
	}{"secured": {aGateway(), aGrid()}, "open": {openGateway(), lab}, "tokens": {proving(), enforcing()}, "asking": {asking(), enforcing()}, "asking-open": {openAsking(), labWithViews}} {
		grid, bad := resolve(c.gateway, c.grid)
		if bad.reason != "" {
			t.Fatal(bad)
		}
		objects := map[string]client.Object{
			"deployment":          deployment(c.gateway, grid, testDefaults),
			"service":             service(c.gateway),
			"serviceaccount":      serviceAccount(c.gateway),
			"poddisruptionbudget": disruptionBudget(c.gateway),
			"networkpolicy":       networkPolicy(c.gateway),
		}
		if peers(c.gateway) {
			objects["headless_service"] = peersService(c.gateway)
		}
		for object, built := range objects {
			t.Run(name+"/"+object, func(t *testing.T) {
				golden.YAML(t, filepath.Join("testdata", name, object+".yaml"), built)
			})
		}
	}
}

// TestResolve: what the grid lacks is told with what to do.
func TestResolve(t *testing.T) {
	own, managed := aGateway(), aGrid()
	own.Spec.Credentials = &api.GatewayCredentials{SecretName: "mine"}
	managed.Spec.Security.TLS.Secrets = &api.TLSSecretsSpec{Nodes: "n", Tools: "t"}
	unseen, unruled, nameless, named := enforcing(), enforcing(), asking(), asking()
	unseen.Spec.Views, unruled.Spec.Security.Authorization = nil, nil
	nameless.Spec.Listeners, named.Spec.Listeners = nameless.Spec.Listeners[:1], named.Spec.Listeners[:1]
	nameless.Spec.Streams = nil
	starting := aGrid()
	starting.Status.TLS = &api.TLSStatus{Transition: api.TLSTransitionStarting}
	untold := enforcing()
	untold.Status.TLS = &api.TLSStatus{Transition: api.TLSTransitionStarting}
	matching := aGrid()
	matching.Spec.Execution = &api.ExecutionSpec{Mode: api.ExecutionMatch}
	for name, c := range map[string]struct {
		gateway      *api.OrderGateway
		grid         *api.OrderGrid
		secret, want string
	}{
		"issued by the grid":             {aGateway(), aGrid(), "trades.tls-gateway-street", ""},
		"credentials":                    {own, managed, "mine", ""},
		"nodes without TLS yet":          {aGateway(), starting, "", ""},
		"no grid":                        {aGateway(), nil, "", "GridNotFound spec.gridRef: there is no OrderGrid trades in namespace trading; create it"},
		"asking":                         {asking(), enforcing(), "trades.tls-gateway-desk", ""},
		"SQL without views":              {asking(), unseen, "", "ViewsMissing spec.listeners: PostgreSQL asks the views of OrderGrid trades, which has none; set its spec.views"},
		"SQL without rules":              {asking(), unruled, "", "AuthorizationMissing spec.listeners: PostgreSQL with TLS lets in whom the rules of OrderGrid trades"},
		"tokens":                         {proving(), enforcing(), "trades.tls-gateway-street", ""},
		"tokens without rules":           {proving(), aGrid(), "", "TokensNotTaken spec.auth: with Token the nodes of OrderGrid trades judge tokens of FIX sessions, and they take none; set its spec.security.tls.clientAuth to None"},
		"tokens of nodes without TLS":    {proving(), untold, "", "TokensNotTaken spec.auth"},
		"streams without rules and file": {nameless, aGrid(), "", "AuthorizationMissing spec.streams: WebSocket lets in the clients of streams.clientsFrom, which is not set"},
		"streams without rules":          {named, aGrid(), "trades.tls-gateway-desk", ""},
		"streams of external":            {named, managed, "", "CredentialsMissing spec.credentials: OrderGrid trades has certificates that are managed externally, and none for this gateway; issue one with the common name ordergrid-gateway:desk, put it into a Secret with the keys ca.crt, tls.crt and tls.key, set spec.credentials.secretName, and give it the permissions Watch, Read, Submit, Write where"},
		"external, no credentials":       {aGateway(), managed, "", "CredentialsMissing spec.credentials: OrderGrid trades has certificates that are managed externally, and none for this gateway; issue one with the common name ordergrid-gateway:street"},
		"matches":                        {aGateway(), matching, "trades.tls-gateway-street", ""},
	} {
		e, bad := resolve(c.gateway, c.grid)
		if got := bad.reason + " " + bad.message; c.want != "" && !strings.HasPrefix(got, c.want) || c.want == "" && (bad.reason != "" || e.secret != c.secret) {
			t.Errorf("%s: %+v, %s; want %q %q", name, e, got, c.secret, c.want)
		}
	}
}
