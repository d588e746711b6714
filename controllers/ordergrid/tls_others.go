package ordergrid

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// checkSecrets is the issuer Secret: they are managed externally, and the operator checks them.
func (r *run) checkSecrets(ctx context.Context, state *tlsState) error {
	tls, now := r.grid.Spec.Security.TLS, r.Clock.Now()
	for i, name := range []string{certificates.NodesSecret(r.grid), certificates.ToolsSecret(r.grid)} {
		s, err := r.secret(ctx, name)
		if err != nil {
			return err
		}
		if s == nil {
			return &tlsTrouble{reasonSecretMissing, fmt.Sprintf("Secret %s of spec.security.tls.secrets does not exist; pods cannot start without it. Create it with the keys tls.crt, tls.key and ca.crt", name)}
		}
		cert, err := certificates.Check(s.Data, i == 0, api.TLSName(r.grid.Name, r.grid.Namespace), now)
		if i == 0 && cert != nil {
			state.describe(cert, cert.NotAfter.Add(-tls.RenewBefore.Duration))
		}
		if err != nil {
			return &tlsTrouble{reasonSecretInvalid, fmt.Sprintf("Secret %s: %v", name, err)}
		}
		if !now.Before(cert.NotAfter.Add(-tls.RenewBefore.Duration)) {
			return &tlsTrouble{reasonCertificateEnding, fmt.Sprintf("Secret %s: the certificate expires at %s, in less than spec.security.tls.renewBefore; replace it: grid nodes read it without a restart", name, stamp(cert.NotAfter))}
		}
	}
	state.verdict = judgement{metav1.ConditionTrue, reasonCertificatesValid, fmt.Sprintf("the certificate of the grid nodes is valid until %s; Secret %s is managed externally", stamp(state.status.Expires.Time), tls.Secrets.Nodes)}
	return nil
}

// checkClientAuthorities: grid nodes do not start without the ConfigMap, or with one that holds no certificate.
func (r *run) checkClientAuthorities(ctx context.Context) error {
	ref := r.grid.Spec.Security.TLS.ClientAuthorities
	if ref == nil {
		return nil
	}
	var m corev1.ConfigMap
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: r.grid.Namespace, Name: ref.Name}, &m)
	switch {
	case apierrors.IsNotFound(err):
		return &tlsTrouble{reasonClientAuthoritiesBad, fmt.Sprintf("ConfigMap %s of spec.security.tls.clientAuthorities does not exist; create it with the key %s, or remove the field", ref.Name, certificates.KeyCA)}
	case err != nil:
		return fmt.Errorf("read ConfigMap %s: %w", ref.Name, err)
	case len(secure.ParseCertificates([]byte(m.Data[certificates.KeyCA]))) == 0:
		return &tlsTrouble{reasonClientAuthoritiesBad, fmt.Sprintf("ConfigMap %s of spec.security.tls.clientAuthorities: key %s holds no certificate in PEM; put those of the clients' authorities there", ref.Name, certificates.KeyCA)}
	}
	return nil
}

// keepByCertManager is the issuer CertManager: a Certificate for each Secret, which cert-manager issues and renews.
func (r *run) keepByCertManager(ctx context.Context, state *tlsState) error {
	list := wanted(r.grid, state.gateways...)
	for _, w := range list { // create all of them before waiting for the first
		if _, err := r.secrets().Apply(ctx, r.grid, certificate(r.grid, w)); err != nil {
			return err
		}
	}
	var trusted []byte // by nodes
	for i, w := range list {
		filled, err := r.issuedByCertManager(ctx, state, w, i == 0)
		if err != nil {
			return err
		}
		cert, err := certificates.Check(filled, i == 0, api.TLSName(r.grid.Name, r.grid.Namespace), r.Clock.Now())
		if i == 0 {
			trusted = filled[certificates.KeyCA]
			if cert != nil {
				state.status.Serial = cert.SerialNumber.Text(16)
			}
		}
		if err != nil {
			return &tlsTrouble{reasonSecretInvalid, fmt.Sprintf("Secret %s, which cert-manager has issued: %v", w.secret, err)}
		}
		filled[certificates.KeyCA] = trusted
		if _, err := certificates.Check(filled, false, "", r.Clock.Now()); err != nil {
			return &tlsTrouble{reasonSecretInvalid, r.refused(w.secret)}
		}
	}
	state.verdict = judgement{metav1.ConditionTrue, reasonCertificatesValid, "cert-manager has issued the certificate of the grid nodes"}
	if e := state.status.Expires; e != nil {
		state.verdict.message += fmt.Sprintf(", valid until %s", stamp(e.Time))
	}
	return nil
}

// issuedByCertManager is the content of the Secret of a Certificate once that is ready.
func (r *run) issuedByCertManager(ctx context.Context, state *tlsState, w issued, ofNodes bool) (map[string][]byte, error) {
	live := certificate(r.grid, w)
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: r.grid.Namespace, Name: w.secret}, live); err != nil {
		return nil, fmt.Errorf("read Certificate %s: %w", w.secret, err)
	}
	if ofNodes {
		state.describeCertificate(live)
	}
	if message := notReady(live); message != "" {
		return nil, &tlsTrouble{reasonCertificateNotReady, fmt.Sprintf("Certificate %s is not ready: %s; see `kubectl describe certificate -n %s %s`", w.secret, messages.Cut(message, 512), r.grid.Namespace, w.secret)}
	}
	if e := state.status.Expires; ofNodes && e != nil && !r.Clock.Now().Before(e.Time) {
		return nil, &tlsTrouble{reasonCertificateEnding, fmt.Sprintf("Certificate %s: its certificate expired at %s and is not replaced; check cert-manager", w.secret, stamp(e.Time))}
	}
	s, err := r.secret(ctx, w.secret)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, &tlsTrouble{reasonSecretMissing, fmt.Sprintf("Secret %s does not exist although Certificate %s is ready; check cert-manager", w.secret, w.secret)}
	}
	return s.Data, nil
}

// refused reports that nodes do not trust a certificate that cert-manager issued.
func (r *run) refused(secret string) string {
	ref, nodes := r.grid.Spec.Security.TLS.CertManager.IssuerRef, api.TLSNodesSecret(r.grid.Name)
	return fmt.Sprintf("Secret %s: its certificate is of no authority in ca.crt of Secret %s, so nodes refuse it. %s %s of spec.security.tls.certManager has to sign all of a grid's certificates with one authority, as issuers of type CA do and SelfSigned does not; "+
		"if its authority was replaced, renew both: `cmctl renew -n %s %s %s`", secret, nodes, ref.Kind, ref.Name, r.grid.Namespace, nodes, secret)
}

// certificate is the Certificate for cert-manager.
func certificate(grid *api.OrderGrid, w issued) *unstructured.Unstructured {
	tls := grid.Spec.Security.TLS
	usages := []any{"digital signature", "client auth"}
	spec := map[string]any{
		"secretName":  w.secret,
		"commonName":  w.leaf.Name,
		"duration":    tls.Duration.Duration.String(),
		"renewBefore": tls.RenewBefore.Duration.String(),
		"subject":     map[string]any{"organizations": toAny(w.leaf.Groups)},
		"privateKey":  map[string]any{"algorithm": "ECDSA", "size": int64(256), "rotationPolicy": "Always"},
		"issuerRef": map[string]any{
			"name": tls.CertManager.IssuerRef.Name, "kind": tls.CertManager.IssuerRef.Kind, "group": tls.CertManager.IssuerRef.Group,
		},
	}
	if len(w.leaf.DNS) > 0 {
		usages = append(usages, "server auth")
		spec["dnsNames"] = toAny(w.leaf.DNS)
	}
	spec["usages"] = usages
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "spec": spec}}
	u.SetNamespace(grid.Namespace)
	u.SetName(w.secret)
	u.SetLabels(gridLabels(grid))
	return u
}

func toAny(list []string) (out []any) {
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

// notReady is why cert-manager has not issued a Certificate; "" if it has.
func notReady(u *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok || m["type"] != "Ready" {
			continue
		}
		if m["status"] == "True" {
			return ""
		}
		return fmt.Sprint(m["message"])
	}
	return "cert-manager has not processed it; is it running?"
}

func (s *tlsState) describeCertificate(u *unstructured.Unstructured) {
	s.status = api.TLSStatus{}
	for _, x := range []struct {
		field string
		to    **metav1.Time
	}{{"notAfter", &s.status.Expires}, {"renewalTime", &s.status.Renews}} {
		text, _, _ := unstructured.NestedString(u.Object, "status", x.field)
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			*x.to = &metav1.Time{Time: at}
		}
	}
}

// verdictOf turns an error into a condition; empty for one that the next check may not have.
func verdictOf(err error, grid *api.OrderGrid) judgement {
	no := func(reason, message string) judgement {
		return judgement{metav1.ConditionFalse, reason, messages.Cut(message, 1024)}
	}
	trouble, is := errors.AsType[*tlsTrouble](err)
	switch foreign, taken := errors.AsType[*apply.ForeignError](err); {
	case is:
		return no(trouble.reason, trouble.message)
	case taken && !foreign.Leaving:
		return no(reasonNameTaken, foreign.Error())
	case meta.IsNoMatchError(err):
		return no(reasonCertManagerMissing, "the cluster has no kind Certificate of cert-manager.io/v1: install cert-manager, or create the OrderGrid with spec.security.tls.issuer Operator")
	case apierrors.IsForbidden(err):
		return no(reasonRightsMissing, fmt.Sprintf("the operator may not manage certificates in namespace %s: add it to the chart's value certificates.namespaces. %v", grid.Namespace, err))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return no(reasonApplyRefused, err.Error())
	}
	return judgement{}
}
