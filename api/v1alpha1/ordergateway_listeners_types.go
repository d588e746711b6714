package v1alpha1

import "slices"

// GatewayStreams is what a listener of protocol WebSocket serves, and to whom.
//
// +kubebuilder:validation:XValidation:fieldPath=".peersFrom",rule="has(self.clientsFrom) || !has(self.peersFrom)",message="peersFrom has no effect without clientsFrom: only clients of that file may publish; set clientsFrom, or remove peersFrom"
type GatewayStreams struct {
	// clientsFrom is the file of the clients, by token or certificate, and the topics that each may read. Beside it, where
	// the OrderGrid enforces spec.security.authorization and the listener has TLS, a certificate or Kubernetes token with the
	// permission Watch may read all orders. Changes reach the pods without a restart, within a minute or two.
	// +optional
	ClientsFrom *GatewayClients `json:"clientsFrom,omitempty"`

	// origins are those of web pages that may connect, beside the listener's own, such as https://desk.example.com.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^https?://[^/, ]+$')",messageExpression="'%s is no origin; use scheme and host, such as https://desk.example.com'.format([self])"
	Origins []string `json:"origins,omitempty"`

	// console is Enabled (the default: the listener serves a page for browsers) or Disabled.
	// +optional
	// +default="Enabled"
	// +kubebuilder:default=Enabled
	Console GatewayConsole `json:"console,omitempty"`

	// maxClients is how many clients may be connected to one pod at the same time; more are refused. 1 to 100000, default
	// 10000.
	// +optional
	// +default=10000
	// +kubebuilder:default=10000
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 100000",messageExpression="'%d is out of range; allowed are 1 to 100000 clients a pod'.format([self])"
	MaxClients int32 `json:"maxClients,omitempty"`

	// follow is what the pods follow of the grid's logs: All (the default: clients that come back find what they lack in the
	// pod), or Wanted, which is what subscriptions of the moment are for: less to send where clients want a small part.
	// +optional
	// +default="All"
	// +kubebuilder:default=All
	Follow GatewayFollow `json:"follow,omitempty"`

	// regions are those whose changes are streamed, as topics region.NAME.KEY, by the names that the grid has for them, or *
	// alone for all. Default: none. Who may read which is in the file of the clients.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || self.matches('^[a-z][a-z0-9_]*$')",messageExpression="'%s is no name of a region; use lowercase letters, digits and underscores, a letter first, or * alone'.format([self])"
	// +kubebuilder:validation:XValidation:rule="size(self) == 1 || !self.exists(r, r == '*')",message="* stands for all regions; remove the other names, or *"
	Regions []string `json:"regions,omitempty"`

	// publishRegions are those that clients may publish to with replicated, likewise. Default: none. Who may publish to which
	// keys is in the file of the clients.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=48
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || self.matches('^[a-z][a-z0-9_]*$')",messageExpression="'%s is no name of a region; use lowercase letters, digits and underscores, a letter first, or * alone'.format([self])"
	// +kubebuilder:validation:XValidation:rule="size(self) == 1 || !self.exists(r, r == '*')",message="* stands for all regions; remove the other names, or *"
	PublishRegions []string `json:"publishRegions,omitempty"`

	// peersFrom has a token by which the pods know each other: what a client publishes at one pod then comes to clients of
	// all. Without it, it comes to clients of that pod. Who may publish to what is in the file of the clients.
	// +optional
	PeersFrom *GatewayPeers `json:"peersFrom,omitempty"`
}

// GatewayPeers is by what the pods of a gateway know each other.
type GatewayPeers struct {
	// secretName names a Secret of the namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// key whose value is the token, in one line of at least 16 bytes. Default token. Changes reach the pods without a restart,
	// within a minute or two.
	// +optional
	// +default="token"
	// +kubebuilder:default=token
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",messageExpression="'%s is no key of a Secret; use letters, digits, dots, hyphens and underscores'.format([self])"
	Key string `json:"key,omitempty"`

	// certificateName is a name that the certificate of the listener is valid for, where it has TLS; ca.crt of its Secret has
	// the authority of that certificate then. Default the name of the Service, NAME-gateway.NAMESPACE.svc.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?$')",messageExpression="'%s is no name of a host; use one such as desk.example.com'.format([self])"
	CertificateName string `json:"certificateName,omitempty"`
}

// GatewayFollow is what is followed of the grid's logs.
//
// +kubebuilder:validation:Enum=All;Wanted
type GatewayFollow string

const (
	// FollowAll follows every entry.
	FollowAll GatewayFollow = "All"
	// FollowWanted follows what clients want.
	FollowWanted GatewayFollow = "Wanted"
)

// GatewayConsole is whether the page for browsers is served.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type GatewayConsole string

const (
	// ConsoleEnabled serves it.
	ConsoleEnabled GatewayConsole = "Enabled"
	// ConsoleDisabled serves none.
	ConsoleDisabled GatewayConsole = "Disabled"
)

// GatewayClients is where the clients of streams are.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.secret)",message="the file of the clients is in one place; set configMap or secret, and not both"
type GatewayClients struct {
	// configMap has the file. Tokens are never in it.
	// +optional
	ConfigMap *GatewayClientsFile `json:"configMap,omitempty"`

	// secret has the file, where the names of clients are not for everyone's eyes.
	// +optional
	Secret *GatewayClientsFile `json:"secret,omitempty"`

	// tokensFrom names a Secret whose keys are the names in tokenFile of the clients, and whose values are their tokens.
	// +optional
	TokensFrom *GatewayCredentials `json:"tokensFrom,omitempty"`
}

// GatewayClientsFile is a key of a ConfigMap or Secret of the namespace.
type GatewayClientsFile struct {
	// name of the ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key whose value is the file. Default clients.json.
	// +optional
	// +default="clients.json"
	// +kubebuilder:default=clients.json
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",messageExpression="'%s is no key of a ConfigMap or Secret; use letters, digits, dots, hyphens and underscores'.format([self])"
	Key string `json:"key,omitempty"`
}

// GatewaySQL is to whom a listener of protocol PostgreSQL answers, and how much. Who may ask is decided by the rules of the
// OrderGrid: its permission Query, and Read for regions.
type GatewaySQL struct {
	// usersFrom is the file of users with passwords, beside Kubernetes tokens and certificates. Changes reach the pods
	// without a restart, within a minute or two.
	// +optional
	UsersFrom *GatewayUsersFile `json:"usersFrom,omitempty"`

	// maxConnections is how many connections one pod takes at the same time; more are refused. 1 to 10000, default 200.
	// +optional
	// +default=200
	// +kubebuilder:default=200
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000",messageExpression="'%d is out of range; allowed are 1 to 10000 connections a pod'.format([self])"
	MaxConnections int32 `json:"maxConnections,omitempty"`
}

// GatewayUsersFile is a key of a Secret of the namespace.
type GatewayUsersFile struct {
	// secretName names the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// key whose value is the file, with a SCRAM-SHA-256 verifier of each user. Default users.json.
	// +optional
	// +default="users.json"
	// +kubebuilder:default=users.json
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",messageExpression="'%s is no key of a Secret; use letters, digits, dots, hyphens and underscores'.format([self])"
	Key string `json:"key,omitempty"`
}

// GatewayListenerStatus is what the pods report of a listener.
type GatewayListenerStatus struct {
	// name of the listener.
	// +required
	// +kubebuilder:validation:MaxLength=15
	Name string `json:"name"`

	// protocol of the listener.
	// +optional
	Protocol GatewayProtocol `json:"protocol,omitempty"`

	// servingPods is how many pods report this listener and nothing that keeps it from serving.
	// +optional
	ServingPods int32 `json:"servingPods,omitempty"`

	// clients is how many sessions, WebSocket clients or SQL connections there are, all pods together; rounded down to 1, 2
	// or 5 times a power of ten.
	// +optional
	Clients int64 `json:"clients,omitempty"`

	// message is what keeps the first pod that does not serve from it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// Listener returns that of a protocol; nil without one.
func (s *OrderGatewaySpec) Listener(protocol GatewayProtocol) *GatewayListener {
	for i := range s.Listeners {
		if s.Listeners[i].Protocol == protocol {
			return &s.Listeners[i]
		}
	}
	return nil
}

// GridPermissions are what the listeners need in the grid, each once.
func (s *OrderGatewaySpec) GridPermissions() (list []AuthorizationPermission) {
	add := func(protocol GatewayProtocol, permissions ...AuthorizationPermission) {
		for _, p := range permissions {
			if s.Listener(protocol) != nil && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	add(GatewayFIX, PermissionSubmit, PermissionRead, PermissionGateway)
	add(GatewayWebSocket, PermissionWatch)
	if s.Streams != nil && len(s.Streams.Regions) > 0 {
		add(GatewayWebSocket, PermissionRead)
	}
	if s.Streams != nil && len(s.Streams.PublishRegions) > 0 {
		add(GatewayWebSocket, PermissionSubmit, PermissionWrite)
	}
	add(GatewayPostgreSQL, PermissionRead, PermissionQuery)
	return list
}
