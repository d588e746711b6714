package live

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/access"
	arbiter "github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// The grid with client authentication has one node, and one client that may do anything.
const (
	GuardedGrid     = "guarded"
	guardedAudience = "guarded.ordergrid.dev"
	guardedClient   = "gateway"
	guardedIP       = "127.77.0.100"
)

// Guarded is a grid whose clients authenticate by tokens, which the API server reviews.
type Guarded struct {
	Endpoint string // of its node
	CA       string // PEM file: the authority of its certificate

	kube    kube.Client
	account *corev1.ServiceAccount
}

// guard is the configuration for client authentication.
type guard struct{ Cert, Key, CA, Rules string }

func (g *guard) apply(c *node.Config, config *rest.Config) (err error) {
	if c.TLS, err = secure.Load(secure.Files{Cert: g.Cert, Key: g.Key, CA: g.CA, ClientAuth: secure.NoClientCert}); err != nil {
		return err
	}
	reviewer, err := arbiter.NewTokens(config, guardedAudience)
	if err != nil {
		return err
	}
	c.Access = &node.Access{Rules: access.Open(g.Rules), Tokens: access.NewTokens(reviewer, guardedAudience, access.Limits{})}
	return nil
}

// StartGuarded starts it beside the other grid. Its node may not have tokens reviewed before LetReview.
func (r *Run) StartGuarded(ctx context.Context) (*Guarded, error) {
	dir := filepath.Join(r.o.Dir, GuardedGrid)
	authority, err := pki.Load(filepath.Join(dir, "authority"), GuardedGrid)
	if err != nil {
		return nil, err
	}
	files, err := authority.Save(dir, "node", pki.Identity{User: "node", Addrs: []netip.Addr{netip.MustParseAddr(guardedIP)}})
	if err != nil {
		return nil, err
	}
	rules := filepath.Join(dir, "rules.json")
	text := fmt.Sprintf(`{"rules": [{"subjects": [{"kind": "ServiceAccount", "namespace": %q, "name": %q}], "permissions": ["Submit", "Read"]}]}`, namespace, guardedClient)
	if err := pki.WriteFile(rules, []byte(text), 0o644); err != nil {
		return nil, err
	}
	g := &Guarded{Endpoint: fmt.Sprintf("%s:%d", guardedIP, api.DataPort), CA: files.CA, kube: r.kube,
		account: &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: guardedClient, Namespace: namespace}}}
	grid := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Name: GuardedGrid, Namespace: namespace}, Spec: api.OrderGridSpec{Replicas: 1, Partitions: 1, Memory: resource.MustParse("128Mi"), Security: api.SecuritySpec{Insecure: api.InsecureAccept}}}
	for _, o := range []kube.Object{g.account, grid} {
		if err := r.kube.Create(ctx, o); err != nil {
			return nil, err
		}
	}
	pod, set := api.PodName(GuardedGrid, 0, 0), &appsv1.StatefulSet{}
	if err := r.Until(ctx, "the operator has made the StatefulSet of "+GuardedGrid, func() bool {
		return r.kube.Get(ctx, kube.ObjectKey{Namespace: namespace, Name: api.ShardName(GuardedGrid, 0)}, set) == nil
	}); err != nil {
		return nil, err
	}
	if err := r.createPod(ctx, set, pod, guardedIP); err != nil {
		return nil, err
	}
	p, err := r.spawnNode(nodeSpec{Kubeconfig: r.kubeconfig(), Grid: GuardedGrid, Pod: pod, IP: guardedIP, Peers: []string{g.Endpoint}, Sink: filepath.Join(dir, "sink"),
		Guard: &guard{files.Cert, files.Key, files.CA, rules}})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.others = append(r.others, p)
	r.mu.Unlock()
	return g, r.addTarget("nodes", fmt.Sprintf("%s:%d", guardedIP, api.HTTPPort), namespace, pod, map[string]string{api.LabelGrid: GuardedGrid, api.LabelShard: "0"})
}

// Token is a new one of the client's.
func (g *Guarded) Token(ctx context.Context) (string, error) {
	ask := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{guardedAudience}}}
	err := g.kube.SubResource("token").Create(ctx, g.account, ask)
	return ask.Status.Token, err
}

// reviewers are the objects with which the chart's value clientTokens.namespaces permits the nodes of a namespace to
// have tokens reviewed.
func reviewers() (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
	name := metav1.ObjectMeta{Name: "client-tokens"}
	return &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + namespace}}}
}

// LetReview permits the nodes of the namespace to have tokens reviewed, like an administrator with the chart.
func (g *Guarded) LetReview(ctx context.Context) error {
	role, binding := reviewers()
	if err := kube.IgnoreAlreadyExists(g.kube.Create(ctx, role)); err != nil {
		return err
	}
	return g.kube.Create(ctx, binding)
}

// ForbidReview removes that permission.
func (g *Guarded) ForbidReview(ctx context.Context) error {
	_, binding := reviewers()
	return g.kube.Delete(ctx, binding)
}
