package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OrderGatewaySpec is a set of equal pods before one grid.
//
// +kubebuilder:validation:XValidation:fieldPath=".sessionsFrom",rule="has(self.sessionsFrom) || !self.listeners.exists(l, l.protocol == 'FIX')",message="a listener of protocol FIX serves the sessions of a file; set sessionsFrom to the ConfigMap or Secret that has it"
// +kubebuilder:validation:XValidation:fieldPath=".auth",rule="!has(self.auth) || self.auth in ['Any', 'Password', 'Token'] || !self.listeners.exists(l, l.protocol == 'FIX' && !has(l.tls))",messageExpression="'%s needs certificates of counterparties, and listener %s has no TLS; set its tls.secretName, or auth to Password'.format([self.auth, self.listeners.filter(l, l.protocol == 'FIX' && !has(l.tls))[0].name])"
// +kubebuilder:validation:XValidation:fieldPath=".auth",rule="!has(self.auth) || self.auth != 'Token' || !self.listeners.exists(l, l.protocol == 'FIX' && !has(l.tls))",messageExpression="'Token needs TLS, since a token is good for more than this gateway, and listener %s has none; set its tls.secretName, or auth to Password'.format([self.listeners.filter(l, l.protocol == 'FIX' && !has(l.tls))[0].name])"
// +kubebuilder:validation:XValidation:fieldPath=".streams",rule="!has(self.streams) || self.listeners.exists(l, l.protocol == 'WebSocket')",message="streams has no effect without a listener of protocol WebSocket; add one, or remove streams"
// +kubebuilder:validation:XValidation:fieldPath=".streams",rule="(has(self.streams) && has(self.streams.clientsFrom)) || !self.listeners.exists(l, l.protocol == 'WebSocket' && !has(l.tls))",message="a listener of protocol WebSocket without TLS knows clients by the file of streams.clientsFrom only; set it, or tls.secretName of the listener"
// +kubebuilder:validation:XValidation:fieldPath=".streams.peersFrom.certificateName",rule="!has(self.streams) || !has(self.streams.peersFrom) || !has(self.streams.peersFrom.certificateName) || !self.listeners.exists(l, l.protocol == 'WebSocket' && !has(l.tls))",message="certificateName has no effect where the listener of protocol WebSocket has no TLS; remove it, or set tls.secretName of the listener"
// +kubebuilder:validation:XValidation:fieldPath=".sql",rule="!has(self.sql) || self.listeners.exists(l, l.protocol == 'PostgreSQL')",message="sql has no effect without a listener of protocol PostgreSQL; add one, or remove sql"
// +kubebuilder:validation:XValidation:fieldPath=".sql.usersFrom",rule="!has(self.sql) || !has(self.sql.usersFrom) || !self.listeners.exists(l, l.protocol == 'PostgreSQL' && !has(l.tls))",message="passwords are asked for over TLS only, and the listener of protocol PostgreSQL has none; set its tls.secretName, or remove sql.usersFrom"
// +kubebuilder:validation:XValidation:fieldPath=".cancelOnDisconnect",rule="!has(self.cancelOnDisconnect) || self.listeners.exists(l, l.protocol == 'FIX')",message="cancelOnDisconnect has no effect without a listener of protocol FIX; add one, or remove cancelOnDisconnect"
// +kubebuilder:validation:XValidation:fieldPath=".dropCopies",rule="!has(self.dropCopies) || self.listeners.exists(l, l.protocol == 'FIX')",message="dropCopies has no effect without a listener of protocol FIX; add one, or remove dropCopies"
type OrderGatewaySpec struct {
	// gridRef names the OrderGrid in the same namespace that the orders are for. A gateway of its own for each grid.
	// +required
	GridRef GridReference `json:"gridRef"`

	// replicas is the number of pods, 0 to 100. Default 1. Any pod serves any session: FIX sessions are in the log of the
	// grid.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 100",messageExpression="'%d is out of range; allowed are 0 to 100 pods'.format([self])"
	Replicas *int32 `json:"replicas,omitempty"`

	// maxSessions is how many sessions may be logged on to one pod at the same time; more are refused. 1 to 100000, default
	// 1000.
	// +optional
	// +default=1000
	// +kubebuilder:default=1000
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100000",messageExpression="'%d is out of range; allowed are 1 to 100000 sessions a pod'.format([self])"
	MaxSessions int32 `json:"maxSessions,omitempty"`

	// listeners are the ports that clients connect to, one for each protocol.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(l, self.exists_one(o, o.port == l.port))",message="two listeners have the same port; give each one of its own"
	// +kubebuilder:validation:XValidation:rule="self.all(l, self.exists_one(o, o.protocol == l.protocol))",message="two listeners have the same protocol; one serves all of its clients, remove the other"
	Listeners []GatewayListener `json:"listeners"`

	// sessionsFrom is the file of the FIX sessions, and their passwords. Changes reach the pods without a restart, within a
	// minute or two.
	// +optional
	SessionsFrom *GatewaySessions `json:"sessionsFrom,omitempty"`

	// auth is what a FIX session has to prove itself with: Any (the default: what its entry in the file has, a password or a
	// Kubernetes token, a certificate, or one of the former with a certificate), Password, Certificate, Both (a password and
	// a certificate) or Token, where the OrderGrid enforces spec.security.authorization and has tls.clientAuth None.
	// +optional
	// +default="Any"
	// +kubebuilder:default=Any
	Auth GatewayAuth `json:"auth,omitempty"`

	// cancelOnDisconnect is when the grid cancels the orders of a FIX session whose counterparty is gone. It is that of
	// sessions whose entry in the file says nothing else. The grid has to match (spec.execution of the OrderGrid): one that
	// stores orders refuses the logons. Default: none are cancelled.
	// +optional
	CancelOnDisconnect *GatewayCancel `json:"cancelOnDisconnect,omitempty"`

	// dropCopies are FIX sessions that get a copy of each ExecutionReport of others: for risk, compliance or a clearing
	// member. Which reports they get is in the log of the grid, so a copy is neither lost nor sent twice when a pod, a node or
	// a primary dies. A change counts from the next logon of the session, and restarts the pods. At most 16; the partitions of
	// the grid have room for 16 each.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(d, self.exists_one(o, o.session == d.session))",message="two drop copies are for the same session; give each a session of its own, or name all sessions in one"
	// +kubebuilder:validation:XValidation:rule="self.all(d, self.all(o, o.name == d.name || !has(o.sessions) || !(d.session in o.sessions)))",messageExpression="'%s gets copies itself, and has no reports that could be copied; remove it from the sessions of the others'.format([self.filter(d, self.exists(o, o.name != d.name && has(o.sessions) && d.session in o.sessions))[0].session])"
	DropCopies []GatewayDropCopy `json:"dropCopies,omitempty"`

	// streams is what the listener of protocol WebSocket serves, and to whom.
	// +optional
	Streams *GatewayStreams `json:"streams,omitempty"`

	// sql is to whom the listener of protocol PostgreSQL answers. The OrderGrid needs spec.views.
	// +optional
	SQL *GatewaySQL `json:"sql,omitempty"`

	// credentials are what the gateway proves itself to the grid with. Default where the OrderGrid has spec.security.tls: a
	// certificate of its own, which the operator has the grid issue, with the permissions that its listeners need: Submit,
	// Read and Gateway for FIX, Watch for WebSocket, Read and Query for PostgreSQL.
	// +optional
	Credentials *GatewayCredentials `json:"credentials,omitempty"`

	// service is the Service before the pods.
	// +optional
	Service GatewayService `json:"service,omitempty,omitzero"`

	// networkPolicy is Restricted (the default: the pods reach the grid and DNS servers, and are reached at their listeners
	// and for metrics) or None.
	// +optional
	// +default="Restricted"
	// +kubebuilder:default=Restricted
	NetworkPolicy NetworkPolicyType `json:"networkPolicy,omitempty"`

	// resources of a pod. Default: requests of 250m CPU and 256Mi, a limit of 1Gi.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// nodeSelector lists labels that a Kubernetes node must have.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// topologySpreadConstraints of the pods; a constraint without labelSelector is for the pods of this gateway. Default:
	// they should be on different Kubernetes nodes, and in different zones.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
}

// GatewayCancel is when orders of a FIX session are cancelled because its counterparty is gone.
//
// +kubebuilder:validation:XValidation:fieldPath=".grace",rule="self.mode != 'None' || !has(self.grace)",message="grace has no effect with mode None; remove it, or set mode to OnDisconnect or OnDisconnectOrLogout"
type GatewayCancel struct {
	// mode is None, OnDisconnect (its connection or its gateway ended, and it had not logged out) or OnDisconnectOrLogout.
	// +required
	Mode GatewayCancelMode `json:"mode"`

	// grace is how long it may be gone: who logs on within it, at any pod, keeps the orders. 1s to 60s, default 10s. It should
	// be longer than a failover of the grid and a restart of the counterparty's connection take.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('60s')",messageExpression="'%s is not a duration from 1s to 60s; write it as 10s or 1.5s'.format([self])"
	Grace *metav1.Duration `json:"grace,omitempty"`
}

// GatewayCancelMode is when orders of a session that is gone are cancelled.
//
// +kubebuilder:validation:Enum=None;OnDisconnect;OnDisconnectOrLogout
type GatewayCancelMode string

const (
	// GatewayCancelNone is never.
	GatewayCancelNone GatewayCancelMode = "None"
	// GatewayCancelOnDisconnect is without a Logout of the counterparty.
	GatewayCancelOnDisconnect GatewayCancelMode = "OnDisconnect"
	// GatewayCancelOnLogout is after a Logout, too.
	GatewayCancelOnLogout GatewayCancelMode = "OnDisconnectOrLogout"
)

// GatewayListener is a port for clients of one protocol.
//
// +kubebuilder:validation:XValidation:fieldPath=".tls",rule="has(self.tls) || self.?insecure.orValue('Refuse') == 'Accept'",messageExpression="'listener %s has no TLS: passwords, tokens and orders would cross the network in the clear, from clients that are not authenticated otherwise; set tls.secretName, or write insecure: Accept beside it where the network is protected in another way'.format([self.name])"
// +kubebuilder:validation:XValidation:fieldPath=".insecure",rule="!has(self.tls) || self.?insecure.orValue('Refuse') != 'Accept'",messageExpression="'Accept has no effect in listener %s, which has TLS; remove insecure'.format([self.name])"
type GatewayListener struct {
	// name of the port, in the Service too: up to 15 lowercase letters, digits and hyphens, such as fix.
	// +required
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && !self.contains('--') && self != 'http'",messageExpression="'%s is no name of a port; use lowercase letters, digits and single hyphens, such as fix. http is that of the metrics'.format([self])"
	Name string `json:"name"`

	// protocol is FIX (FIX 4.2, FIX 4.4, and FIX 5.0 SP2 over FIXT 1.1), WebSocket (streams of orders, and a console for
	// browsers) or PostgreSQL (SQL about orders).
	// +required
	Protocol GatewayProtocol `json:"protocol"`

	// port of the pods and of the Service, 1024 to 65535 but 9404. Default 7440.
	// +optional
	// +default=7440
	// +kubebuilder:default=7440
	// +kubebuilder:validation:XValidation:rule="self >= 1024 && self <= 65535 && self != 9404",messageExpression="'%d cannot be listened on; allowed are 1024 to 65535, and not 9404, where the metrics are'.format([self])"
	Port int32 `json:"port,omitempty"`

	// tls is the certificate of the listener.
	// +optional
	TLS *GatewayTLS `json:"tls,omitempty"`

	// insecure is Refuse (the default: tls is required) or Accept: clients without TLS, whose passwords and tokens are then
	// sent in the clear. With PostgreSQL none are asked for: every client that reaches the port reads all orders.
	// +optional
	Insecure InsecurePolicy `json:"insecure,omitempty"`
}

// GatewayProtocol is what a listener speaks.
//
// +kubebuilder:validation:Enum=FIX;WebSocket;PostgreSQL
type GatewayProtocol string

const (
	// GatewayFIX is FIX 4.2, FIX 4.4, and FIX 5.0 SP2 over FIXT 1.1.
	GatewayFIX GatewayProtocol = "FIX"
	// GatewayWebSocket is the stream of orders.
	GatewayWebSocket GatewayProtocol = "WebSocket"
	// GatewayPostgreSQL is questions in SQL.
	GatewayPostgreSQL GatewayProtocol = "PostgreSQL"
)

// GatewayTLS is the certificate of a listener.
type GatewayTLS struct {
	// secretName names a Secret with tls.crt and tls.key of the listener, and ca.crt, the authorities of the certificates that
	// counterparties present; as cert-manager writes it. It is read anew when it changes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// GatewaySessions is where the FIX sessions are.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.secret)",message="the file of the sessions is in one place; set configMap or secret, and not both"
type GatewaySessions struct {
	// configMap has the file. Passwords are never in it.
	// +optional
	ConfigMap *GatewayFile `json:"configMap,omitempty"`

	// secret has the file, where the CompIDs are not for everyone's eyes.
	// +optional
	Secret *GatewayFile `json:"secret,omitempty"`

	// passwordsFrom names a Secret whose keys are the names in passwordFile of the sessions, and whose values are their
	// passwords.
	// +optional
	PasswordsFrom *GatewayCredentials `json:"passwordsFrom,omitempty"`
}

// GatewayFile is a key of a ConfigMap or Secret of the namespace.
type GatewayFile struct {
	// name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key whose value is the file. Default sessions.json.
	// +optional
	// +default="sessions.json"
	// +kubebuilder:default=sessions.json
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",messageExpression="'%s is no key of a ConfigMap or Secret; use letters, digits, dots, hyphens and underscores'.format([self])"
	Key string `json:"key,omitempty"`
}

// GatewayCredentials names a Secret of the namespace.
type GatewayCredentials struct {
	// secretName names the Secret. For the grid it has ca.crt, tls.crt and tls.key.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// GatewayAuth is what every FIX session has to have.
//
// +kubebuilder:validation:Enum=Any;Password;Certificate;Both;Token
type GatewayAuth string

const (
	// GatewayAuthAny is what the entry of a session has.
	GatewayAuthAny GatewayAuth = "Any"
	// GatewayAuthPassword is tags 553 and 554.
	GatewayAuthPassword GatewayAuth = "Password"
	// GatewayAuthCertificate is a client certificate.
	GatewayAuthCertificate GatewayAuth = "Certificate"
	// GatewayAuthBoth is a certificate and a password.
	GatewayAuthBoth GatewayAuth = "Both"
	// GatewayAuthToken is a token in tag 554, which the grid judges, and maybe a certificate.
	GatewayAuthToken GatewayAuth = "Token"
)

// GatewayService is the Service before the pods.
type GatewayService struct {
	// type is ClusterIP (the default), NodePort or LoadBalancer.
	// +optional
	// +default="ClusterIP"
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`

	// annotations of the Service, for controllers of load balancers or DNS records.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Port returns the port of a protocol; 0 without such a listener.
func (s *OrderGatewaySpec) Port(protocol GatewayProtocol) int32 {
	if l := s.Listener(protocol); l != nil {
		return l.Port
	}
	return 0
}

// Pods returns spec.replicas or its default.
func (s *OrderGatewaySpec) Pods() int32 {
	if s.Replicas == nil {
		return 1
	}
	return *s.Replicas
}

// OrderGatewayStatus is what the operator observes of the gateway's pods.
type OrderGatewayStatus struct {
	// observedGeneration is the generation of spec this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, GridReachable, SessionsLoaded, SessionsRefused, ClientsLoaded and PeersConnected.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// replicas is the number of pods, and readyReplicas how many of them serve.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// readyReplicas is the number of pods that serve.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// selector selects the pods, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Selector string `json:"selector,omitempty"`

	// sessions is how many sessions are logged on, all pods together. It is coarse, to limit the rate of status writes:
	// rounded down to 1, 2 or 5 times a power of ten. The metric ordergrid_gateway_fix_sessions is exact.
	// +optional
	Sessions int64 `json:"sessions,omitempty"`

	// configured is the number of FIX sessions in the file.
	// +optional
	Configured int32 `json:"configured,omitempty"`

	// listeners is what the pods report of each listener.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Listeners []GatewayListenerStatus `json:"listeners,omitempty"`

	// endpoint is the name of the Service and its first port, for clients in the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=300
	Endpoint string `json:"endpoint,omitempty"`
}

// OrderGateway serves clients of a grid that speak a protocol of the field.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=ogw,categories=ordergrid-all
// +kubebuilder:printcolumn:name="Grid",type=string,JSONPath=".spec.gridRef.name"
// +kubebuilder:printcolumn:name="Pods",type=integer,JSONPath=".status.readyReplicas"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=".status.conditions[?(@.type=='GridReachable')].status"
// +kubebuilder:printcolumn:name="Refused",type=string,JSONPath=".status.conditions[?(@.type=='SessionsRefused')].status"
// +kubebuilder:printcolumn:name="Sessions",type=integer,JSONPath=".status.sessions"
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=".status.endpoint"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'metadata.name: %s cannot name a Service and a client of a grid; use at most 40 lowercase letters, digits and hyphens, beginning with a letter'.format([self.metadata.name])"
type OrderGateway struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the gateway.
	// +required
	Spec OrderGatewaySpec `json:"spec"`

	// status is what the operator observes.
	// +optional
	Status OrderGatewayStatus `json:"status,omitzero"`
}

// OrderGatewayList is a list of OrderGateways.
//
// +kubebuilder:object:root=true
type OrderGatewayList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OrderGateway `json:"items"`
}
