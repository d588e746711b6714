package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GridLinkSpec is one link. It keeps no position, so all of it may change at any time.
type GridLinkSpec struct {
	// from is the grid whose log is carried.
	// +required
	From LinkEnd `json:"from"`

	// to is the standby that gets it.
	// +required
	To LinkEnd `json:"to"`

	// reader is the name of the sink of type External in both grids, which holds the log of the source. Default link.
	// +optional
	// +default="link"
	// +kubebuilder:default=link
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && self != 'file'",messageExpression="'%s is no name of a sink of type External; give the name that it has in spec.sinks of both grids, such as link'.format([self])"
	Reader string `json:"reader,omitempty"`

	// batch is how many entries are sent at once, at most. 1 to 1048576, default 1024.
	// +optional
	// +default=1024
	// +kubebuilder:default=1024
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1048576",messageExpression="'%s is out of range; allowed are 1 to 1048576 entries'.format([self])"
	Batch int32 `json:"batch,omitempty"`

	// delay is how long an entry may wait for others, up to 1m. Default 0s: each is sent at once.
	// +optional
	// +default="0s"
	// +kubebuilder:default="0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) <= duration('1m')",messageExpression="'%s is not a duration from 0s to 1m; write it as 20ms or 1s'.format([self])"
	Delay metav1.Duration `json:"delay,omitempty,omitzero"`

	// maxBandwidth is how many bytes of entries are sent a second at most, all partitions together. At least 64Ki; without
	// it there is no limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('64Ki')) >= 0 && quantity(string(self)).compareTo(quantity('1Ti')) <= 0",messageExpression="'%s is not a rate from 64Ki to 1Ti bytes a second; write it as 12500k for 100 Mbit/s, or leave it out'.format([self])"
	MaxBandwidth *resource.Quantity `json:"maxBandwidth,omitempty"`

	// maxLag is the lag above which condition Lagging is True. 1s to 24h, default 1m.
	// +optional
	// +default="1m"
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",messageExpression="'%s is not a duration from 1s to 24h; write it as 30s or 5m'.format([self])"
	MaxLag metav1.Duration `json:"maxLag,omitempty,omitzero"`

	// networkPolicy is Restricted (the default: the pod reaches both grids and DNS servers, and is reached for metrics) or
	// None.
	// +optional
	// +default="Restricted"
	// +kubebuilder:default=Restricted
	NetworkPolicy NetworkPolicyType `json:"networkPolicy,omitempty"`

	// resources of the pod. Default: requests of 100m CPU and 256Mi, a limit of 1Gi.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// LinkEnd is one of the two grids: an OrderGrid of the namespace, or one elsewhere.
//
// +kubebuilder:validation:XValidation:fieldPath=".gridRef",rule="has(self.gridRef) != has(self.endpoints)",message="a grid is in one place: set gridRef for an OrderGrid of this namespace, or grid and endpoints for one elsewhere, and not both"
// +kubebuilder:validation:XValidation:fieldPath=".grid",rule="has(self.grid) == has(self.endpoints)",message="grid is the name of a grid elsewhere and goes with endpoints; set both, or gridRef alone"
// +kubebuilder:validation:XValidation:fieldPath=".credentials",rule="!has(self.endpoints) || has(self.credentials) || self.?insecure.orValue('Refuse') == 'Accept'",message="without credentials every order crosses the network in the clear, to a grid that is not authenticated; set credentials.secretName, or write insecure: Accept beside it where that is meant, as in a lab"
// +kubebuilder:validation:XValidation:fieldPath=".insecure",rule="self.?insecure.orValue('Refuse') != 'Accept' || (has(self.endpoints) && !has(self.credentials))",message="Accept has no effect with credentials or gridRef, whose security is that of its OrderGrid; remove insecure"
// +kubebuilder:validation:XValidation:fieldPath=".tlsName",rule="!has(self.tlsName) || has(self.credentials) && has(self.endpoints)",message="tlsName is the name in the certificates of a grid elsewhere and goes with endpoints and credentials; remove it, or set them"
type LinkEnd struct {
	// gridRef names an OrderGrid of this namespace.
	// +optional
	GridRef *GridReference `json:"gridRef,omitempty"`

	// grid is the name of a grid elsewhere.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'%s is no name of a grid; use lowercase letters, digits and hyphens'.format([self])"
	Grid string `json:"grid,omitempty"`

	// endpoints are where that grid is found first, host:port each: its client Service, or nodes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=260
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.matches('^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|[[][0-9A-Fa-f:]+[]]):[0-9]{1,5}$'))",message="not all are host:port; write each as orders.b.example.com:7400"
	Endpoints []string `json:"endpoints,omitempty"`

	// tlsName is the DNS name in the certificates of all nodes of that grid. Default: each is for the address it is dialled at.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	TLSName string `json:"tlsName,omitempty"`

	// credentials are what the link proves itself with. Default for gridRef where the OrderGrid has spec.security.tls: the
	// Secret GRID.tls-client-NAME with the certificate of the client NAME of spec.security.tls.clients, NAME being the
	// name of this GridLink.
	// +optional
	Credentials *LinkCredentials `json:"credentials,omitempty"`

	// insecure is Refuse (the default: credentials are required) or Accept: a grid elsewhere without TLS.
	// +optional
	Insecure InsecurePolicy `json:"insecure,omitempty"`
}

// LinkCredentials names a Secret of the namespace.
type LinkCredentials struct {
	// secretName names the Secret. ca.crt is the authority of the grid; tls.crt and tls.key, or token, are those of the link.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// type is Certificate (the default: tls.crt and tls.key) or Token (token).
	// +optional
	// +default="Certificate"
	// +kubebuilder:default=Certificate
	Type LinkCredentialsType `json:"type,omitempty"`
}

// LinkCredentialsType is what a link proves itself with.
//
// +kubebuilder:validation:Enum=Certificate;Token
type LinkCredentialsType string

const (
	// LinkCertificate is a client certificate.
	LinkCertificate LinkCredentialsType = "Certificate"
	// LinkToken is a token that the grid verifies.
	LinkToken LinkCredentialsType = "Token"
)

// Name of the grid at this end.
func (e *LinkEnd) Name() string {
	if e.GridRef != nil {
		return e.GridRef.Name
	}
	return e.Grid
}

// GridLinkStatus is what the operator observes of the link's pod.
type GridLinkStatus struct {
	// observedGeneration is the generation of spec this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Connected and Lagging.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// from and to are the names of the grids.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from,omitempty"`
	// to is the name of the standby.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to,omitempty"`

	// partitions is how many partitions the link carries, and open how many of them can flow.
	// +optional
	Partitions int32 `json:"partitions,omitempty"`
	// open is how many of them are connected at both ends.
	// +optional
	Open int32 `json:"open,omitempty"`

	// lag is how far the standby is behind; absent while the link's pod does not answer.
	// +optional
	Lag *LinkLag `json:"lag,omitempty"`
}

// LinkLag is how far a standby is behind: what a forced promotion would lose. It is coarse, to limit the rate of status
// writes: figures are rounded down to 1, 2 or 5 times a power of ten. The metrics ordergrid_link_lag_… are exact.
type LinkLag struct {
	// entries that are committed at the source and not at the standby, all partitions together.
	// +required
	Entries int64 `json:"entries"`
	// bytes of those entries, as far as the link has read them.
	// +required
	Bytes int64 `json:"bytes"`
	// seconds since the oldest of them was made, in the partition that is furthest behind.
	// +required
	Seconds int64 `json:"seconds"`
	// partition that is furthest behind: "p1"; empty: none is.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Partition string `json:"partition,omitempty"`
}

// GridLink carries the committed log of a grid to a standby, which may be in another cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gl,categories=ordergrid-all
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=".status.from"
// +kubebuilder:printcolumn:name="To",type=string,JSONPath=".status.to"
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=".status.conditions[?(@.type=='Connected')].status"
// +kubebuilder:printcolumn:name="Lagging",type=string,JSONPath=".status.conditions[?(@.type=='Lagging')].status"
// +kubebuilder:printcolumn:name="Entries",type=integer,JSONPath=".status.lag.entries"
// +kubebuilder:printcolumn:name="Seconds",type=integer,JSONPath=".status.lag.seconds"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Connected')].message"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'metadata.name: %s cannot name a client of a grid; use at most 40 lowercase letters, digits and hyphens'.format([self.metadata.name])"
// +kubebuilder:validation:XValidation:fieldPath=".spec.to.gridRef",rule="!has(self.spec.from.gridRef) || !has(self.spec.to.gridRef) || self.spec.from.gridRef.name != self.spec.to.gridRef.name",messageExpression="'%s is the source, too; name the standby'.format([self.spec.to.gridRef.name])"
type GridLink struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the link.
	// +required
	Spec GridLinkSpec `json:"spec"`

	// status is what the operator observes.
	// +optional
	Status GridLinkStatus `json:"status,omitzero"`
}

// GridLinkList is a list of GridLinks.
//
// +kubebuilder:object:root=true
type GridLinkList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GridLink `json:"items"`
}
