package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SecuritySpec controls access to a grid.
//
// +kubebuilder:validation:XValidation:fieldPath=".authorization",rule="!has(self.authorization) || self.authorization.mode != 'Enforce' || has(self.tls)",message="mode Enforce needs spec.security.tls: over plain TCP no client can prove who it is; set tls, or mode to None"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,fieldPath=".authorization",rule="!has(self.tls) || has(self.insecure) && self.insecure == 'Accept' || has(self.authorization) && self.authorization.mode == 'Enforce' || !(has(self.tls.clientAuth) && self.tls.clientAuth == 'None') && !has(self.tls.clientAuthorities) || oldSelf.hasValue() && has(oldSelf.value().tls) && !(has(oldSelf.value().authorization) && oldSelf.value().authorization.mode == 'Enforce') && (has(oldSelf.value().tls.clientAuth) && oldSelf.value().tls.clientAuth == 'None' || has(oldSelf.value().tls.clientAuthorities))",messageExpression="(has(self.tls.clientAuth) && self.tls.clientAuth == 'None' ? 'missing, and with spec.security.tls.clientAuth None clients are not authenticated: every client may do everything' : 'missing, and with spec.security.tls.clientAuthorities every client of theirs may do everything') + '; set mode to Enforce and give rules, or take that field back'"
// +kubebuilder:validation:XValidation:fieldPath=".insecure",rule="!has(self.tls) || !has(self.insecure) || self.insecure != 'Accept' || !has(self.authorization) || self.authorization.mode != 'Enforce'",message="Accept has no effect with spec.security.authorization.mode Enforce: a client without TLS cannot prove who it is; remove insecure, or set mode to None until every client has TLS"
// +kubebuilder:validation:XValidation:fieldPath=".networkPolicy",rule="!has(self.networkPolicy) || has(self.networkPolicy.type) || has(self.tls) && !(has(self.insecure) && self.insecure == 'Accept') || !has(self.networkPolicy.clients) && !has(self.networkPolicy.monitoring)",message="clients and monitoring have no effect with type None, which is the default without spec.security.tls; set type to Restricted, or remove them"
type SecuritySpec struct {
	// insecure controls whether clients may connect without TLS: Refuse (the default) or Accept. Any client of the data port of
	// such a grid may submit, read and replace orders. For a laptop or a lab, and beside tls while clients change to it;
	// the condition Secure is False with it. A grid that was created before this field existed keeps running without it.
	// +optional
	Insecure InsecurePolicy `json:"insecure,omitempty"`

	// tls encrypts the traffic between grid nodes and with clients, with mutual authentication. Without it
	// the data port is plain TCP, which requires insecure: Accept. It can be added to a running grid, whose pods are then
	// replaced in stages, but not removed.
	// +optional
	TLS *TLSSpec `json:"tls,omitempty"`

	// authorization grants permissions to clients. Without it every accepted client may do everything: with tls, every client
	// with a certificate of the authority of the grid's nodes, which the issuer Operator gives to tls.clients alone.
	// +optional
	Authorization *AuthorizationSpec `json:"authorization,omitempty"`

	// networkPolicy restricts which pods reach the grid's pods.
	// +optional
	NetworkPolicy NetworkPolicySpec `json:"networkPolicy,omitempty,omitzero"`
}

// InsecurePolicy selects whether a grid accepts clients without TLS.
//
// +kubebuilder:validation:Enum=Refuse;Accept
type InsecurePolicy string

const (
	// InsecureRefuse requires spec.security.tls. Empty is the same.
	InsecureRefuse InsecurePolicy = "Refuse"
	// InsecureAccept accepts clients without TLS.
	InsecureAccept InsecurePolicy = "Accept"
)

// Open reports whether clients need no TLS: they are neither authenticated nor authorized.
func (s *SecuritySpec) Open() bool { return s.TLS == nil || s.Insecure == InsecureAccept }

// TakesTLS reports whether every node of the grid takes TLS, as far as the operator has reported.
func (g *OrderGrid) TakesTLS() bool {
	return g.Spec.Security.TLS != nil && (g.Status.TLS == nil || g.Status.TLS.Transition != TLSTransitionStarting)
}

// Enforced reports whether clients may do only what a rule gives them.
func (s *SecuritySpec) Enforced() bool {
	return s.Authorization != nil && s.Authorization.Mode == AuthorizationEnforce
}

// PolicyType is networkPolicy.type or its default.
func (s *SecuritySpec) PolicyType() NetworkPolicyType {
	switch {
	case s.NetworkPolicy.Type != "":
		return s.NetworkPolicy.Type
	case s.Open():
		return NetworkPolicyNone
	}
	return NetworkPolicyRestricted
}

// TLSSpec configures the source and validity of a grid's certificates. Certificates are replaced while
// everything runs: no pod is restarted and no connection is cut.
//
// +kubebuilder:validation:XValidation:fieldPath=".issuer",rule="self.issuer == oldSelf.issuer",messageExpression="'%s differs from %s: nodes with certificates of one would not trust those with certificates of the other; keep %s, or create a second OrderGrid and move the traffic'.format([self.issuer, oldSelf.issuer, oldSelf.issuer])"
// +kubebuilder:validation:XValidation:fieldPath=".certManager",rule="self.issuer != 'CertManager' || has(self.certManager)",message="issuer CertManager needs the Issuer that signs; set spec.security.tls.certManager.issuerRef"
// +kubebuilder:validation:XValidation:fieldPath=".certManager",rule="self.issuer == 'CertManager' || !has(self.certManager)",messageExpression="'has no effect with issuer %s; set issuer to CertManager, or remove certManager'.format([self.issuer])"
// +kubebuilder:validation:XValidation:fieldPath=".secrets",rule="self.issuer != 'Secret' || has(self.secrets)",message="issuer Secret needs the Secrets that hold the certificates; set spec.security.tls.secrets.nodes and tools"
// +kubebuilder:validation:XValidation:fieldPath=".secrets",rule="self.issuer == 'Secret' || !has(self.secrets)",messageExpression="'has no effect with issuer %s; set issuer to Secret, or remove secrets'.format([self.issuer])"
// +kubebuilder:validation:XValidation:fieldPath=".authority",rule="self.issuer == 'Operator' || !has(self.authority)",messageExpression="'has no effect with issuer %s, whose authority the operator does not keep; remove it'.format([self.issuer])"
// +kubebuilder:validation:XValidation:fieldPath=".clients",rule="self.issuer != 'Secret' || !has(self.clients)",message="certificates of clients cannot be issued from a Secret; remove clients, and give clients certificates of the same authority"
// +kubebuilder:validation:XValidation:fieldPath=".renewBefore",rule="duration(self.renewBefore) < duration(self.duration)",messageExpression="'%s is not less than spec.security.tls.duration %s, so a certificate would be due for renewal as soon as it is issued; give about a third of it'.format([self.renewBefore, self.duration])"
// +kubebuilder:validation:XValidation:fieldPath=".authority.duration",rule="!has(self.authority) || duration(self.authority.duration) >= duration(self.duration) + duration(self.authority.overlap) + duration(self.authority.overlap)",messageExpression="'%s does not hold one certificate of %s and twice the overlap of %s, so the authority would end before what it signed; give more'.format([self.authority.duration, self.duration, self.authority.overlap])"
type TLSSpec struct {
	// issuer is Operator (the operator keeps an authority for this grid alone), CertManager (cert-manager issues from
	// certManager.issuerRef) or Secret (certificates in secrets are managed externally). Default Operator.
	// +optional
	// +default="Operator"
	// +kubebuilder:default=Operator
	Issuer TLSIssuer `json:"issuer,omitempty"`

	// certManager configures the issuer CertManager.
	// +optional
	CertManager *CertManagerSpec `json:"certManager,omitempty"`

	// secrets configures the issuer Secret.
	// +optional
	Secrets *TLSSecretsSpec `json:"secrets,omitempty"`

	// duration is how long a certificate is valid. 1h to 8760h, default 2160h (90 days).
	// +optional
	// +default="2160h"
	// +kubebuilder:default="2160h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1h') && duration(self) <= duration('8760h')",messageExpression="'%s is not a duration from 1h to 8760h; write it as 2160h'.format([self])"
	Duration metav1.Duration `json:"duration,omitempty,omitzero"`

	// renewBefore is how long before its expiry a certificate is replaced. 5m to less than duration, default 720h (30 days);
	// give it together with a shorter duration.
	// +optional
	// +default="720h"
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('5m') && duration(self) <= duration('8760h')",messageExpression="'%s is not a duration from 5m to 8760h; write it as 720h'.format([self])"
	RenewBefore metav1.Duration `json:"renewBefore,omitempty,omitzero"`

	// authority configures the authority of the issuer Operator.
	// +optional
	Authority *AuthoritySpec `json:"authority,omitempty"`

	// clients are the names of clients that get a certificate each, in a Secret GRID.tls-client-NAME of the grid's
	// namespace with the keys tls.crt, tls.key and ca.crt. The name is the certificate's common name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && name != 'ordergrid-tools')",message="not all are names for a Secret; use at most 40 lowercase letters, digits and hyphens each, and not ordergrid-tools, which is the operator's own"
	Clients []string `json:"clients,omitempty"`

	// clientAuth is Require (the default: clients without a certificate of a trusted authority are refused) or None (clients
	// need none; the grid still authenticates to them). Grid nodes always need one.
	// +optional
	// +default="Require"
	// +kubebuilder:default=Require
	ClientAuth TLSClientAuth `json:"clientAuth,omitempty"`

	// clientAuthorities names a ConfigMap of the grid's namespace, key ca.crt, with further authorities that the
	// certificates of clients may be signed by. They are not trusted for grid nodes.
	// +optional
	ClientAuthorities *ConfigMapReference `json:"clientAuthorities,omitempty"`
}

// TLSIssuer names the source of certificates.
//
// +kubebuilder:validation:Enum=Operator;CertManager;Secret
type TLSIssuer string

const (
	// IssuerOperator is an authority that the operator keeps.
	IssuerOperator TLSIssuer = "Operator"
	// IssuerCertManager is cert-manager.
	IssuerCertManager TLSIssuer = "CertManager"
	// IssuerSecret is an external source.
	IssuerSecret TLSIssuer = "Secret"
)

// TLSClientAuth is what clients have to present.
//
// +kubebuilder:validation:Enum=Require;None
type TLSClientAuth string

const (
	// ClientAuthRequire refuses clients without a certificate.
	ClientAuthRequire TLSClientAuth = "Require"
	// ClientAuthNone requires no certificate of clients.
	ClientAuthNone TLSClientAuth = "None"
)

// CertManagerSpec names the issuer that signs.
type CertManagerSpec struct {
	// issuerRef names an Issuer of the grid's namespace or a ClusterIssuer. It has to sign for serverAuth and clientAuth
	// and to put its authority's certificate into ca.crt, as the types CA, Vault and Venafi do.
	// +required
	IssuerRef IssuerReference `json:"issuerRef"`
}

// IssuerReference names an object of cert-manager, or of an external issuer for it.
type IssuerReference struct {
	// name of the issuer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// kind of the issuer: Issuer (the default), ClusterIssuer, or that of an external issuer.
	// +optional
	// +default="Issuer"
	// +kubebuilder:default=Issuer
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// group of the issuer. Default cert-manager.io.
	// +optional
	// +default="cert-manager.io"
	// +kubebuilder:default="cert-manager.io"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
}

// TLSSecretsSpec names Secrets of the grid's namespace, each with the keys tls.crt, tls.key and ca.crt.
type TLSSecretsSpec struct {
	// nodes names the Secret of the grid nodes. Its certificate is for the DNS name GRID-client.NAMESPACE.svc and for both
	// extended key usages, serverAuth and clientAuth.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Nodes string `json:"nodes"`

	// tools names the Secret with which OrderProbes and FailoverDrills of the grid authenticate: extended key usage
	// clientAuth.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Tools string `json:"tools"`
}

// AuthoritySpec configures the validity of the operator's authority for a grid and its replacement: the next one is
// trusted for overlap before it signs, and the previous one for as long after its last signature.
type AuthoritySpec struct {
	// duration is how long an authority is valid. It is replaced early enough that no certificate is cut short. 4h to
	// 87600h, default 43800h (5 years).
	// +optional
	// +default="43800h"
	// +kubebuilder:default="43800h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('4h') && duration(self) <= duration('87600h')",messageExpression="'%s is not a duration from 4h to 87600h; write it as 43800h'.format([self])"
	Duration metav1.Duration `json:"duration,omitempty,omitzero"`

	// overlap is the time for clients to pick up a changed ca.crt. Grid nodes need a minute or two, and are asked whether they
	// have it. 3m to 8760h, default 24h.
	// +optional
	// +default="24h"
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('3m') && duration(self) <= duration('8760h')",messageExpression="'%s is not a duration from 3m to 8760h; write it as 24h'.format([self])"
	Overlap metav1.Duration `json:"overlap,omitempty,omitzero"`
}

// ConfigMapReference names a ConfigMap of the same namespace.
type ConfigMapReference struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// NetworkPolicySpec restricts which pods reach the grid's pods. It is effective where the network enforces NetworkPolicies,
// and for the pod network only, not for spec.fabric.
//
// +kubebuilder:validation:XValidation:fieldPath=".clients",rule="!has(self.type) || self.type == 'Restricted' || !has(self.clients)",message="has no effect with type None; set spec.security.networkPolicy.type to Restricted, or remove clients"
// +kubebuilder:validation:XValidation:fieldPath=".monitoring",rule="!has(self.type) || self.type == 'Restricted' || !has(self.monitoring)",message="has no effect with type None; set spec.security.networkPolicy.type to Restricted, or remove monitoring"
type NetworkPolicySpec struct {
	// type is None (the operator makes no NetworkPolicy) or Restricted (the data port is for the grid's own pods, its probes
	// and clients; the port of metrics and health for the operator and monitoring; grid nodes reach each other, DNS and the
	// API server). Default Restricted with spec.security.tls, None without.
	// +optional
	Type NetworkPolicyType `json:"type,omitempty"`

	// clients are the pods that may reach the data port. Default: the pods of the grid's namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Clients []PodPeers `json:"clients,omitempty"`

	// monitoring are the pods that may reach the port of metrics and health beside the operator. Default: those of
	// every namespace, because the operator cannot know which one scrapes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Monitoring []PodPeers `json:"monitoring,omitempty"`
}

// NetworkPolicyType selects the NetworkPolicy that the operator creates.
//
// +kubebuilder:validation:Enum=None;Restricted
type NetworkPolicyType string

const (
	// NetworkPolicyNone creates none.
	NetworkPolicyNone NetworkPolicyType = "None"
	// NetworkPolicyRestricted creates a policy per grid.
	NetworkPolicyRestricted NetworkPolicyType = "Restricted"
)

// PodPeers selects pods by their labels and those of their namespace, as a NetworkPolicy does.
//
// +kubebuilder:validation:XValidation:rule="has(self.namespaceSelector) || has(self.podSelector)",message="selects nothing; give namespaceSelector, podSelector or both; {} selects all"
type PodPeers struct {
	// namespaceSelector selects namespaces. Default: that of the grid.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// podSelector selects pods in them. Default: all.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
}

// TLSTransition is the stage of enabling TLS.
//
// +kubebuilder:validation:Enum=Starting;Both
type TLSTransition string

const (
	// TLSTransitionStarting: some node does not accept TLS.
	TLSTransitionStarting TLSTransition = "Starting"
	// TLSTransitionBoth: every node accepts TLS and plain connections.
	TLSTransitionBoth TLSTransition = "Both"
)

// TLSStatus is the status of the certificates of a grid.
type TLSStatus struct {
	// expires is when the present certificate of the grid nodes expires.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`

	// renews is when it is replaced.
	// +optional
	Renews *metav1.Time `json:"renews,omitempty"`

	// serial number of the certificate, in hexadecimal digits.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Serial string `json:"serial,omitempty"`

	// transition is the stage of enabling TLS: Starting (not every node accepts TLS yet, clients stay on plain TCP) or Both
	// (every node accepts TLS and plain connections, clients can switch). Empty: TLS only.
	// +optional
	Transition TLSTransition `json:"transition,omitempty"`

	// plainClients is the number of client connections without TLS while transition is Both.
	// +optional
	PlainClients *int32 `json:"plainClients,omitempty"`

	// authorityExpires is when its authority expires.
	// +optional
	AuthorityExpires *metav1.Time `json:"authorityExpires,omitempty"`
}
