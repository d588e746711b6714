package kube_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
)

const gridAudience = "ordergrid.dev"

// token is a real one of a service account, for an audience.
func (f *fixture) token(t *testing.T, sa *corev1.ServiceAccount, audience string) string {
	t.Helper()
	ask := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	if err := f.admin.SubResource("token").Create(t.Context(), sa, ask); err != nil {
		t.Fatal(err)
	}
	return ask.Status.Token
}

func (f *fixture) account(t *testing.T, name string) *corev1.ServiceAccount {
	t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name}}
	if err := f.admin.Create(t.Context(), sa); err != nil {
		t.Fatal(err)
	}
	return sa
}

// reviewing is a node's access to the API server; may grants the one right it needs.
func (f *fixture) reviewing(t *testing.T, user string, may bool) *rest.Config {
	t.Helper()
	if may {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}}}}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
		for _, o := range []client.Object{role, binding} {
			if err := f.admin.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.admin.Delete(context.Background(), o) })
		}
	}
	cfg := rest.CopyConfig(f.cfg)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	return cfg
}

// The API server resolves valid tokens and rejects others. No error contains the token.
func TestTokenReviews(t *testing.T) {
	f := newFixture(t)
	node, err := kube.NewTokens(f.reviewing(t, "reviewing-node", true), gridAudience)
	if err != nil {
		t.Fatal(err)
	}
	gateway := f.account(t, "gateway")
	good := f.token(t, gateway, gridAudience)
	var id *access.Identity
	for range 1000 { // the authorizer learns of the role a moment later
		if id, err = node.Review(t.Context(), good); err == nil || !strings.Contains(err.Error(), "may not create tokenreviews") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil || id.User != "system:serviceaccount:"+f.ns+":gateway" || !id.Token || !strings.Contains(strings.Join(id.Groups, " "), "system:serviceaccounts:"+f.ns) {
		t.Fatalf("%+v, %v", id, err)
	}
	if id.String() != "service account "+f.ns+"/gateway" {
		t.Errorf("it is shown as %s", id)
	}
	leaver := f.account(t, "leaver")
	left := f.token(t, leaver, gridAudience)
	if err := f.admin.Delete(t.Context(), leaver); err != nil {
		t.Fatal(err)
	}
	forbidden, err := kube.NewTokens(f.reviewing(t, "other-node", false), gridAudience)
	if err != nil {
		t.Fatal(err)
	}
	nowhere := rest.CopyConfig(f.cfg)
	nowhere.Host, nowhere.TLSClientConfig = "http://127.0.0.1:1", rest.TLSClientConfig{}
	away, err := kube.NewTokens(nowhere, gridAudience)
	if err != nil {
		t.Fatal(err)
	}
	dot := strings.LastIndexByte(good, '.')
	for name, c := range map[string]struct {
		by    *kube.Tokens
		token string
		err   error
		says  string
	}{
		"another audience": {node, f.token(t, gateway, "https://elsewhere.example"), access.ErrRefused, ""},

		"another's signature":    {node, good[:dot] + left[strings.LastIndexByte(left, '.'):], access.ErrRefused, ""},
		"no signature":           {node, good[:dot+1], access.ErrRefused, ""},
		"account was deleted":    {node, left, access.ErrRefused, ""},
		"garbage":                {node, "garbage", access.ErrRefused, ""},
		"node without the right": {forbidden, good, access.ErrUnavailable, "clientTokens.namespaces"},
		"API server away":        {away, good, access.ErrUnavailable, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := c.by.Review(t.Context(), c.token)
			if id != nil || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%+v, %v, want %v %q", id, err, c.err, c.says)
			}
			t.Log(err)
			for _, part := range strings.Split(c.token, ".") {
				if len(part) > 10 && strings.Contains(err.Error(), part) {
					t.Errorf("the error contains a part of the token")
				}
			}
		})
	}
	if _, err := kube.NewTokens(f.cfg, ""); err == nil || !strings.Contains(err.Error(), "--token-audience") {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := node.Review(ended, good); !errors.Is(err, access.ErrUnavailable) {
		t.Errorf("cancelled: %v", err)
	}
}
