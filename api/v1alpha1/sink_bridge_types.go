package v1alpha1

// BridgeSinkSpec is the grid that a sink of type Bridge puts records onto: what GridFunctions of spec.callbacks.post make of
// orders becomes values of a region there, each record once, in the order of its partition. docs/bridge.md has the values.
//
// +kubebuilder:validation:XValidation:fieldPath=".tls",rule="has(self.tls) || self.?insecure.orValue('Refuse') == 'Accept'",message="without tls every record crosses the network in the clear, to nodes that are not authenticated; set tls.secretName, or write insecure: Accept beside it where that is meant, as in a lab"
// +kubebuilder:validation:XValidation:fieldPath=".insecure",rule="!has(self.tls) || self.?insecure.orValue('Refuse') != 'Accept'",message="Accept has no effect with tls; remove insecure"
type BridgeSinkSpec struct {
	// endpoints are where the other grid is found, host:port each, such as its client service.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=260
	// +kubebuilder:validation:XValidation:rule="self.all(b, b.matches('^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|[[][0-9A-Fa-f:]+[]]):[0-9]{1,5}$'))",message="not all are host:port; write each as risk-client.trading:7400"
	Endpoints []string `json:"endpoints"`

	// grid is the name of the other grid; nodes of any other one are refused.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Grid string `json:"grid"`

	// region of the other grid, which nothing else writes to. Default bridge.
	// +optional
	// +default="bridge"
	// +kubebuilder:default=bridge
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'%s is no name of a region; use lowercase letters, digits and hyphens, not beginning or ending with a hyphen'.format([self])"
	Region string `json:"region,omitempty"`

	// callback is the one of spec.callbacks.post whose records are taken. Default: those of all.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Callback string `json:"callback,omitempty"`

	// tls encrypts the connections and authenticates both ends. Required unless insecure is Accept.
	// +optional
	TLS *BridgeTLSSpec `json:"tls,omitempty"`

	// insecure is Refuse (the default: tls is required) or Accept: records are sent in the clear.
	// +optional
	Insecure InsecurePolicy `json:"insecure,omitempty"`
}

// BridgeTLSSpec names the certificates.
type BridgeTLSSpec struct {
	// secretName names a Secret of this grid's namespace: ca.crt is the authority of the other grid, tls.crt and tls.key are
	// a certificate that it knows, with the permissions Read, Write and Submit.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// serverName is the name in the certificates of the other grid's nodes: GRID-client.NAMESPACE.svc where its operator issues
	// them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$')",messageExpression="'%s is no DNS name; write it as risk-client.desk.svc'.format([self])"
	ServerName string `json:"serverName"`
}
