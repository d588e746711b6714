package ordergrid

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// annotationRenewed is on a Secret: the last request for a new certificate that was carried out.
const annotationRenewed = "ordergrid.dev/renewed"

// keepOwn is the issuer Operator: an authority per grid, and the certificates it signs.
func (r *run) keepOwn(ctx context.Context, state *tlsState) error {
	p, now := policy(r.grid.Spec.Security.TLS), r.Clock.Now()
	nodes, err := r.secret(ctx, api.TLSNodesSecret(r.grid.Name))
	if err != nil {
		return err
	}
	kept, trust, err := r.readTrust(ctx, nodes)
	if err != nil {
		return err
	}
	name := pkix.Name{CommonName: r.grid.Name, Organization: []string{r.grid.Namespace}}
	answers := certificates.Nodes{}
	if trust.Asks(now, p) {
		answers = r.askNodesForTLS(ctx, nodes)
	}
	step, err := trust.Advance(name, now, p, r.grid.Annotations[api.AnnotationRenewAuthority], answers)
	if err != nil {
		return err
	}
	if step != "" {
		if err := r.writeTrust(ctx, kept, trust); err != nil {
			return err
		}
		r.recordStep(step, trust, p)
	}
	leaf, err := r.issueAll(ctx, trust, now, p, nodes)
	if err != nil {
		return err
	}
	renews := certificates.RenewAt(leaf, p)
	state.describe(leaf, renews)
	state.verdict = judgement{metav1.ConditionTrue, reasonCertificatesValid, fmt.Sprintf("the certificate of the grid nodes is valid until %s and replaced at %s", stamp(leaf.NotAfter), stamp(renews))}
	if authority := signer(trust); authority != nil {
		end := metav1.NewTime(authority.NotAfter.UTC())
		state.status.AuthorityExpires = &end
	}
	if text := changing(trust, p); text != "" {
		state.verdict.reason, state.verdict.message = reasonAuthorityChanging, state.verdict.message+". "+text
	}
	for _, at := range []time.Time{trust.Due(p), renews} {
		state.look = earlier(state.look, at)
	}
	switch {
	case step != "":
		state.look = now.Add(tlsLookSoon)
	case trust.Asks(now, p):
		state.look = now.Add(tlsLookTrouble)
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// signer is the authority whose expiry matters.
func signer(t *certificates.Trust) *x509.Certificate {
	switch {
	case t.Signing != nil:
		return t.Signing.Cert
	case t.Next != nil:
		return t.Next.Cert
	}
	return nil
}

// changing describes the replacement of the authority.
func changing(t *certificates.Trust, p certificates.Policy) string {
	switch {
	case t.Next != nil && t.Signing == nil:
		return fmt.Sprintf("The key of the authority is lost: a new authority is trusted since %s and signs from %s on", stamp(t.NextSince), stamp(t.NextSince.Add(p.Overlap)))
	case t.Next != nil:
		return fmt.Sprintf("The authority is being replaced: the next one is trusted since %s and signs from %s on, when all grid nodes trust it", stamp(t.NextSince), stamp(t.NextSince.Add(p.Overlap)))
	case len(t.Previous) > 0:
		return fmt.Sprintf("The authority was replaced at %s; the previous one is trusted until %s, and as long as a grid node presents a certificate of it", stamp(t.SigningSince), stamp(t.SigningSince.Add(p.Overlap)))
	}
	return ""
}

// readTrust returns the grid's authorities. If their Secret is gone, those that nodes trust stay trusted: a new
// authority that signed at once would split the grid.
func (r *run) readTrust(ctx context.Context, nodes *corev1.Secret) (*corev1.Secret, *certificates.Trust, error) {
	name := api.TLSAuthoritySecret(r.grid.Name)
	s, err := r.secret(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if s == nil {
		if nodes == nil || !owned(r.grid, nodes) {
			return nil, &certificates.Trust{}, nil
		}
		return nil, certificates.Found(secure.ParseCertificates(nodes.Data[certificates.KeyCA])), nil
	}
	if !owned(r.grid, s) {
		return nil, nil, &tlsTrouble{reasonNameTaken, fmt.Sprintf("Secret %s exists already and this grid does not control it; delete or rename it, or give the grid another name", name)}
	}
	trust, err := certificates.Read(s.Data, s.Annotations)
	if err != nil {
		return nil, nil, &tlsTrouble{reasonAuthorityUnreadable, fmt.Sprintf("Secret %s: %v; restore it from a backup, or delete it, and the operator creates a new authority without interrupting clients", name, err)}
	}
	return s, trust, nil
}

// writeTrust writes the authorities only over what was read: a key created by another operator meanwhile may have
// signed already.
func (r *run) writeTrust(ctx context.Context, kept *corev1.Secret, t *certificates.Trust) error {
	data, annotations, err := t.Write()
	if err != nil {
		return err
	}
	s := &corev1.Secret{ObjectMeta: gridMeta(r.grid, api.TLSAuthoritySecret(r.grid.Name)), Type: corev1.SecretTypeOpaque}
	s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(r.grid, api.GroupVersion.WithKind("OrderGrid"))}
	if kept == nil {
		s.Data, s.Annotations = data, annotations
		err = r.Client.Create(ctx, s, client.FieldOwner(apply.FieldOwner))
		countWrite("Secret", apply.Created)
	} else {
		s = kept.DeepCopy()
		s.Data, s.Annotations = data, annotations
		err = r.Client.Patch(ctx, s, client.MergeFromWithOptions(kept, client.MergeFromWithOptimisticLock{}), client.FieldOwner(apply.FieldOwner))
		countWrite("Secret", apply.Updated)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", s.Name, err)
	}
	outcome := apply.Updated
	if kept == nil {
		outcome = apply.Created
	}
	wrote(ctx, outcome.String(), "Secret", s.Name)
	return nil
}

func (r *run) recordStep(step certificates.Step, t *certificates.Trust, p certificates.Policy) {
	var note string
	switch step {
	case certificates.Created:
		note = fmt.Sprintf("created the grid's authority, %s, valid until %s", t.Signing.Cert.Subject.CommonName, stamp(t.Signing.Cert.NotAfter))
	case certificates.Announced:
		note = fmt.Sprintf("the next authority, %s, is trusted from now on and signs from %s on", t.Next.Cert.Subject.CommonName, stamp(t.NextSince.Add(p.Overlap)))
	case certificates.Signs:
		note = fmt.Sprintf("%s signs from now on; all certificates are renewed, and earlier ones are valid until %s at least", t.Signing.Cert.Subject.CommonName, stamp(t.SigningSince.Add(p.Overlap)))
	case certificates.Retired:
		note = fmt.Sprintf("only %s is trusted from now on", t.Signing.Cert.Subject.CommonName)
	}
	r.Recorder.Eventf(r.grid, nil, corev1.EventTypeNormal, string(step), "KeepCertificates", "%s", note)
}

// issueAll reconciles the Secrets with the present authorities, and returns the certificate of the nodes.
func (r *run) issueAll(ctx context.Context, t *certificates.Trust, now time.Time, p certificates.Policy, nodes *corev1.Secret) (*x509.Certificate, error) {
	gateways, err := r.gateways(ctx)
	if err != nil {
		return nil, err
	}
	var first *x509.Certificate
	for i, w := range wanted(r.grid, gateways...) {
		have := nodes
		if i > 0 {
			if have, err = r.secret(ctx, w.secret); err != nil {
				return nil, err
			}
		}
		cert, err := r.issue(ctx, w, have, t, now, p)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = cert
		}
	}
	return first, nil
}

// issue reconciles one Secret.
func (r *run) issue(ctx context.Context, w issued, have *corev1.Secret, t *certificates.Trust, now time.Time, p certificates.Policy) (*x509.Certificate, error) {
	if have != nil && !owned(r.grid, have) {
		return nil, &tlsTrouble{reasonNameTaken, fmt.Sprintf("Secret %s exists already and this grid does not control it; delete or rename it, or give the grid another name", w.secret)}
	}
	asked := r.grid.Annotations[api.AnnotationRenewCertificates]
	s := &corev1.Secret{ObjectMeta: gridMeta(r.grid, w.secret), Type: corev1.SecretTypeTLS, Data: map[string][]byte{certificates.KeyCA: t.Bundle(now)}}
	var cert *x509.Certificate
	if have != nil {
		cert = certificates.ReadLeaf(have.Data)
		for _, key := range []string{certificates.KeyCert, certificates.KeyKey} {
			s.Data[key] = have.Data[key]
		}
		s.Annotations = map[string]string{annotationRenewed: have.Annotations[annotationRenewed]}
	}
	why := w.leaf.Why(cert, t, now, p)
	if why == "" && asked != s.Annotations[annotationRenewed] {
		why = "it was requested"
	}
	if why != "" && t.Signing == nil && cert != nil && now.Before(cert.NotAfter) {
		why = "" // there is no signing key yet; the one in use is valid
	}
	if why != "" {
		var err error
		if s.Data[certificates.KeyCert], s.Data[certificates.KeyKey], err = w.leaf.Issue(t, now, p); err != nil {
			return nil, &tlsTrouble{reasonCertificateNotReady, fmt.Sprintf("Secret %s: %v", w.secret, err)}
		}
		s.Annotations = map[string]string{annotationRenewed: asked}
		cert = certificates.ReadLeaf(s.Data)
	}
	if _, err := r.secrets().Apply(ctx, r.grid, s); err != nil {
		return nil, err
	}
	if why != "" {
		r.Recorder.Eventf(r.grid, &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}, corev1.EventTypeNormal, eventCertificateIssued, "KeepCertificates",
			"Secret %s: issued certificate %s for %s, valid until %s; previous one: %s", w.secret, cert.SerialNumber.Text(16), w.leaf.Name, stamp(cert.NotAfter), why)
	}
	return cert, nil
}

// askNodesForTLS queries every pod for what it trusts and presents. One that does not answer counts as outdated; one
// that has not started will read the files as they are then.
func (r *run) askNodesForTLS(ctx context.Context, nodes *corev1.Secret) certificates.Nodes {
	answers := map[string]*answer{}
	for i := range r.pods {
		if begun(&r.pods[i]) {
			answers[r.pods[i].Name] = &answer{pod: &r.pods[i]}
		}
	}
	r.ask(ctx, r.grid, answers)
	serial := ""
	if nodes != nil {
		if cert := certificates.ReadLeaf(nodes.Data); cert != nil {
			serial = cert.SerialNumber.Text(16)
		}
	}
	every := func(ok func(*answer) bool) bool {
		for _, a := range answers {
			if a.node == nil || a.node.TLS == nil || !ok(a) {
				return false
			}
		}
		return true
	}
	return certificates.Nodes{
		Trust: func(cert *x509.Certificate) bool {
			return every(func(a *answer) bool { return slices.Contains(a.node.TLS.Authorities, secure.Fingerprint(cert)) })
		},
		Present: func() bool { return serial != "" && every(func(a *answer) bool { return a.node.TLS.Serial == serial }) },
	}
}
