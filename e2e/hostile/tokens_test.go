package hostile

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/memory"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/internal/pki"
	"github.com/ordergrid/ordergrid/internal/proc"
)

const audience = "ordergrid.dev"

// desk is a service account of a real API server.
type desk struct{ namespace, user, token string }

func newDesk(t *testing.T) desk {
	t.Helper()
	admin := envtest.Client(t, envtest.Config(t))
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: envtest.Namespace(t, admin, "hostile-"), Name: "desk"}}
	if err := admin.Create(t.Context(), sa); err != nil {
		t.Fatal(err)
	}
	ask := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	if err := admin.SubResource("token").Create(t.Context(), sa, ask); err != nil {
		t.Fatal(err)
	}
	return desk{sa.Namespace, fmt.Sprintf("system:serviceaccount:%s:desk", sa.Namespace), ask.Status.Token}
}

// judging starts a node that has tokens reviewed, and answers its address.
func judging(t *testing.T, files secure.Files, d desk) string {
	t.Helper()
	reviewer, err := kube.NewTokens(envtest.Config(t), audience)
	if err != nil {
		t.Fatal(err)
	}
	id, err := secure.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	rules := fileOf(t, "rules.json", fmt.Sprintf(`{"rules": [{"subjects": [{"kind": "User", "name": "gateway"}], "permissions": ["Submit", "Read", "Gateway"]},
		{"subjects": [{"kind": "ServiceAccount", "namespace": %q, "name": "desk"}], "permissions": ["Submit"]}]}`, d.namespace))
	addr := proc.PortForTest(t)
	n, err := node.New(node.Config{Grid: "g", Pod: "g-s0-0", Partitions: 1, Replicas: 1, Listen: addr, Advertise: addr, MemoryLimit: 512 << 20, PeerKeys: peerkey.Of(peerkey.New()),
		Arbiter: memory.NewStore(map[string]arbiter.Spec{node.PartitionName("g", 0): {Grid: "g", Replicas: 1, MinInSync: 1, PreferredPod: "g-s0-0"}}),
		TLS:     id, Access: &node.Access{Rules: access.Open(rules), Tokens: access.NewTokens(reviewer, audience, access.Limits{})}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return addr
}

// openJudged is openFIX over TLS, where all sessions but the trader's need a token of the desk.
func openJudged(t *testing.T, d desk) *fixPort {
	t.Helper()
	dir := t.TempDir()
	ca, err := pki.Load(dir, "hostile")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ca.Save(dir, "gateway", pki.Identity{User: "gateway", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	at := judging(t, secure.Files{Cert: f.Cert, Key: f.Key, CA: f.CA, ClientAuth: secure.NoClientCert}, d)
	users := map[string]string{"VISITOR": d.user}
	for i := range slowSessions {
		users[fmt.Sprint("SLOW", i)] = d.user
	}
	p := openGateway(t, roster.Entry{}, users, "--endpoint", at, "--grid", "g", "--tls-cert", f.Cert, "--tls-key", f.Key, "--tls-ca", f.CA, "--fix-grid-tokens",
		"--fix-tls-cert", f.Cert, "--fix-tls-key", f.Key, "--fix-tls-ca", f.CA, "--fix-tls-client-auth", "none")
	p.visitor = d.token
	p.tls = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13} //nolint:gosec // the gateway is to know them, not they the gateway
	return p
}

// guess is a Logon with a token that no API server gave.
func guess(p *fixPeer) []byte {
	return p.logon(fmt.Sprintf("eyJhbGciOiJSUzI1NiJ9.%016x%016x.%0512d", rand.Uint64(), rand.Uint64(), rand.Uint64()))
}

// Of a session one token is judged at a time, and 16 of all: the second case takes all of these.
var guessers = []fixStranger{
	{"200 log on with tokens that are wrong, as one session, and again when disconnected", 200, saysAs(1, guess), []string{"ordergrid_gateway_fix_logons_refused_total", "reason", "Credentials"}},
	{fmt.Sprint("200 log on with tokens that are wrong, as ", slowSessions, " sessions, and again when disconnected"), 200, saysAs(slowSessions, guess),
		[]string{"ordergrid_gateway_fix_logons_refused_total", "reason", "NotJudged"}},
}

// What they do is as with strangers. The visitor has a token, too, which is right.
func TestFIXPortBesideWrongTokens(t *testing.T) {
	if os.Getenv("ORDERGRID_HOSTILE_ROUNDS") == "" {
		t.Skip("hundreds of connections: `make hostile` runs it")
	}
	d := newDesk(t)
	g, other := openJudged(t, d), openJudged(t, d)
	w := g.trader(t)
	for _, s := range guessers {
		t.Run(s.name, func(t *testing.T) { s.beside(t, w, g, other) })
	}
}
