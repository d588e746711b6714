package ordergrid

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/grid-node/access"
)

// Intervals of certificate checks without events. Secrets are not watched: that would need permission to list them, and
// so to read all of a namespace.
const (
	tlsLook        = 10 * time.Minute
	tlsLookTrouble = 10 * time.Second // something is missing, or a step of a rotation waits for nodes
	tlsLookSoon    = time.Second      // one step was made, and another may follow
)

// Reasons of TLSReady.
const (
	reasonCertificatesValid    = "CertificatesValid"
	reasonAuthorityChanging    = "AuthorityChanging"
	reasonAuthorityUnreadable  = "AuthorityUnreadable"
	reasonSecretMissing        = "SecretMissing"
	reasonSecretInvalid        = "SecretInvalid"
	reasonCertificateEnding    = "CertificateEnding"
	reasonCertificateNotReady  = "CertificateNotReady"
	reasonCertManagerMissing   = "CertManagerMissing"
	reasonRightsMissing        = "RightsMissing"
	reasonClientAuthoritiesBad = "ClientAuthoritiesInvalid"
	reasonNotLooked            = "NotLooked"
)

// tlsState is the state of a grid's certificates.
type tlsState struct {
	verdict judgement
	status  api.TLSStatus

	generation int64     // of the spec it was computed for
	gateways   []string  // that it was computed for
	asked      [2]string // requests it was computed for
	look       time.Time // time of the next check
}

// tlsTrouble is a problem with the certificates.
type tlsTrouble struct{ reason, message string }

func (e *tlsTrouble) Error() string { return e.message }

// keepCertificates reconciles the grid's certificates with spec. Problems with them do not block the rest of the
// reconcile: certificates that nodes have read stay in use.
func (r *run) keepCertificates(ctx context.Context) error {
	if r.grid.Spec.Security.TLS == nil {
		return nil
	}
	now := r.Clock.Now()
	asked := [2]string{r.grid.Annotations[api.AnnotationRenewCertificates], r.grid.Annotations[api.AnnotationRenewAuthority]}
	gateways, err := r.gateways(ctx)
	if err != nil {
		return err
	}
	known := r.remembered.tls
	if known == nil || known.generation != r.grid.Generation || !slices.Equal(known.gateways, gateways) || known.asked != asked || !now.Before(known.look) {
		state := &tlsState{generation: r.grid.Generation, gateways: gateways, asked: asked, look: now.Add(tlsLook)}
		if known != nil {
			state.status = known.status // of the certificates in use, if none can be read now
		}
		r.lookAtCertificates(ctx, state)
		r.remembered.tls, known = state, state
	}
	r.tls = known
	r.lookWithin(max(known.look.Sub(now), tlsLookSoon))
	return nil
}

func (r *run) lookAtCertificates(ctx context.Context, state *tlsState) {
	err := r.checkClientAuthorities(ctx)
	if err == nil {
		switch r.grid.Spec.Security.TLS.Issuer {
		case api.IssuerCertManager:
			err = r.keepByCertManager(ctx, state)
		case api.IssuerSecret:
			err = r.checkSecrets(ctx, state)
		default:
			err = r.keepOwn(ctx, state)
		}
	}
	if err == nil {
		return
	}
	state.look = r.Clock.Now().Add(tlsLookTrouble)
	state.verdict = verdictOf(err, r.grid)
	if state.verdict.status == "" {
		// The API server did not answer, or there was a conflict: retried at the next check.
		state.verdict = judgement{metav1.ConditionUnknown, reasonNotLooked, "the certificates could not be checked: " + messages.Cut(err.Error(), 512)}
	}
}

// policy is the validity of certificates.
func policy(spec *api.TLSSpec) certificates.Policy {
	p := certificates.Policy{
		Duration: spec.Duration.Duration, RenewBefore: spec.RenewBefore.Duration,
		AuthorityDuration: 5 * 365 * 24 * time.Hour, Overlap: 24 * time.Hour, // as defaulted by the API server
	}
	if a := spec.Authority; a != nil {
		p.AuthorityDuration, p.Overlap = a.Duration.Duration, a.Overlap.Duration
	}
	return p
}

// issued is one certificate of the grid, and its Secret.
type issued struct {
	secret string
	leaf   certificates.Leaf
}

// wanted are the certificates a grid needs, that of the nodes first; gateways are the OrderGateways of the grid.
func wanted(grid *api.OrderGrid, gateways ...string) []issued {
	list := []issued{
		{api.TLSNodesSecret(grid.Name), certificates.Leaf{Name: grid.Name, Groups: []string{"ordergrid.dev:nodes"}, DNS: []string{api.TLSName(grid.Name, grid.Namespace)}}},
		{api.TLSToolsSecret(grid.Name), certificates.Leaf{Name: access.Tools, Groups: []string{"ordergrid.dev"}}},
	}
	for _, name := range grid.Spec.Security.TLS.Clients {
		list = append(list, issued{api.TLSClientSecret(grid.Name, name), certificates.Leaf{Name: name, Groups: []string{"ordergrid.dev:clients"}}})
	}
	for _, s := range grid.SinksWithPods() {
		list = append(list, issued{api.TLSSinkSecret(grid.Name, s.Name), certificates.Leaf{Name: api.SinkUser(s.Name), Groups: []string{"ordergrid.dev:sinks"}}})
	}
	for _, name := range gateways {
		list = append(list, issued{api.TLSGatewaySecret(grid.Name, name), certificates.Leaf{Name: api.GatewayUser(name), Groups: []string{"ordergrid.dev:gateways"}}})
	}
	return list
}

// describe sets status from the certificate of the nodes.
func (s *tlsState) describe(cert *x509.Certificate, renews time.Time) {
	at := func(t time.Time) *metav1.Time { m := metav1.NewTime(t.UTC().Truncate(time.Second)); return &m }
	s.status.Expires, s.status.Renews, s.status.Serial = at(cert.NotAfter), at(renews), cert.SerialNumber.Text(16)
}

// secret reads a Secret from the API server; nil if there is none.
func (r *run) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: r.grid.Namespace, Name: name}, s)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	return s, nil
}

// secrets writes Secrets: the applier bypasses the cache, which has none.
func (r *run) secrets() *apply.Applier {
	a := r.applier
	a.Client = uncached{a.Client, r.Live}
	return &a
}

type uncached struct {
	client.Client
	live client.Reader
}

func (u uncached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return u.live.Get(ctx, key, obj, opts...)
}

// judgeTLS returns the result of the last check.
func judgeTLS(o *observation) judgement {
	switch {
	case o.grid.Spec.Security.TLS == nil:
		return judgement{}
	case o.tls == nil: // another step failed before
		return judgement{metav1.ConditionUnknown, reasonNotLooked, "the certificates have not been checked; see condition Stalled"}
	}
	return o.tls.verdict
}

// tlsStatus is status.tls; its content stays while the state is unknown.
func (o *observation) tlsStatus(before *api.TLSStatus) *api.TLSStatus {
	switch {
	case o.grid.Spec.Security.TLS == nil:
		return nil
	case o.stage == nil:
		return before
	}
	status := &api.TLSStatus{}
	switch {
	case o.tls != nil && o.tls.status != (api.TLSStatus{}):
		status = o.tls.status.DeepCopy()
	case before != nil:
		status = before.DeepCopy()
	}
	status.Transition, status.PlainClients = o.stage.transition(), nil
	if o.stage.plain != nil {
		status.PlainClients = &o.stage.plain.connections
	}
	if *status == (api.TLSStatus{}) {
		return nil
	}
	return status
}
