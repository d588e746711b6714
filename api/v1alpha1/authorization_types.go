package v1alpha1

// AuthorizationSpec grants permissions to clients. A client authenticates by its certificate (common name,
// organizations, URI names) or by a Kubernetes token. Changes reach the pods without a restart, within a minute or two;
// only a change of mode or tokenAudience replaces them, one by one.
//
// +kubebuilder:validation:XValidation:fieldPath=".rules",rule="self.mode == 'Enforce' || !has(self.rules)",messageExpression="'have no effect with mode %s, in which every client may do everything; set spec.security.authorization.mode to Enforce, or remove the rules'.format([self.mode])"
type AuthorizationSpec struct {
	// mode is None (every client that reaches the data port may do everything) or Enforce (a client may do only what rules
	// give it). Default None.
	// +optional
	// +default="None"
	// +kubebuilder:default=None
	Mode AuthorizationMode `json:"mode,omitempty"`

	// tokenAudience is the audience that a client's token must have. Grids of one audience can use the tokens their clients send to
	// them at each other: give grids that do not trust each other an audience each. Default ordergrid.dev.
	// +optional
	// +default="ordergrid.dev"
	// +kubebuilder:default="ordergrid.dev"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]+$')",messageExpression="'%s has characters that no audience has; use printable ASCII without spaces'.format([self])"
	TokenAudience string `json:"tokenAudience,omitempty"`

	// rules give permissions to clients. OrderProbes and FailoverDrills of this grid need none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Rules []AuthorizationRule `json:"rules,omitempty"`
}

// AuthorizationMode selects whether clients are authorized.
//
// +kubebuilder:validation:Enum=None;Enforce
type AuthorizationMode string

const (
	// AuthorizationNone allows every client everything.
	AuthorizationNone AuthorizationMode = "None"
	// AuthorizationEnforce lets a client do only what a rule gives it.
	AuthorizationEnforce AuthorizationMode = "Enforce"
)

// AuthorizationRule gives each of its subjects each of its permissions.
type AuthorizationRule struct {
	// subjects are clients.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Subjects []AuthorizationSubject `json:"subjects"`

	// permissions are Submit (open sessions and submit orders), Read (read an order by its id or ClOrdID), Admin (read the
	// whole log and the sink's files), Watch (follow the log as it grows), Sink (be a sink of type External: report the
	// position it holds; requires Watch as well), Link (send a standby the log of another site, in the name of all that
	// site's clients, and fence a site that was replaced), Query (ask questions about all orders), Gateway (speak for
	// every FIX session), Risk (read the limits, and use the kill switch) and Write (change the regions of the grid; a session
	// requires Submit as well). None of them includes another.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Permissions []AuthorizationPermission `json:"permissions"`
}

// AuthorizationPermission is what a client may do.
//
// +kubebuilder:validation:Enum=Submit;Read;Admin;Watch;Sink;Link;Query;Gateway;Risk;Write
type AuthorizationPermission string

const (
	// PermissionSubmit is to open sessions and submit orders.
	PermissionSubmit AuthorizationPermission = "Submit"
	// PermissionRead is to read an order.
	PermissionRead AuthorizationPermission = "Read"
	// PermissionAdmin is to read the whole log and the sink's files.
	PermissionAdmin AuthorizationPermission = "Admin"
	// PermissionWatch is to follow the log as it grows.
	PermissionWatch AuthorizationPermission = "Watch"
	// PermissionSink is to follow it as a sink of type External, and to say what that holds.
	PermissionSink AuthorizationPermission = "Sink"
	// PermissionLink is to send a standby the log of another site.
	PermissionLink AuthorizationPermission = "Link"
	// PermissionQuery is to ask questions about all orders.
	PermissionQuery AuthorizationPermission = "Query"
	// PermissionGateway is to speak for every FIX session.
	PermissionGateway AuthorizationPermission = "Gateway"
	// PermissionRisk is to read the limits, and to use the kill switch.
	PermissionRisk AuthorizationPermission = "Risk"
	// PermissionWrite is to change the regions of the grid.
	PermissionWrite AuthorizationPermission = "Write"
)

// AuthorizationSubject is one client or a group of clients, as in a RoleBinding.
//
// +kubebuilder:validation:XValidation:fieldPath=".namespace",rule="(self.kind == 'ServiceAccount') == has(self.namespace)",messageExpression="self.kind == 'ServiceAccount' ? 'ServiceAccount %s needs the namespace it is in; set namespace'.format([self.name]) : 'a %s is in no namespace; remove namespace'.format([self.kind])"
// +kubebuilder:validation:XValidation:fieldPath=".name",rule="self.kind != 'ServiceAccount' || self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'%s is no name of a ServiceAccount; use lowercase letters, digits, hyphens and dots, without its namespace'.format([self.name])"
type AuthorizationSubject struct {
	// kind is User (the common name or a URI name of a certificate, or the user name of a token), Group (an organization of a
	// certificate, or a group of a token) or ServiceAccount (of a token; certificates never match).
	// +required
	Kind AuthorizationSubjectKind `json:"kind"`

	// name of the subject, for example gateway, or spiffe://bank.example/ns/trading/sa/gateway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`

	// namespace of a ServiceAccount.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// AuthorizationSubjectKind is the kind of a subject's name.
//
// +kubebuilder:validation:Enum=User;Group;ServiceAccount
type AuthorizationSubjectKind string

const (
	// SubjectUser is one client by its name.
	SubjectUser AuthorizationSubjectKind = "User"
	// SubjectGroup is the clients of a group.
	SubjectGroup AuthorizationSubjectKind = "Group"
	// SubjectServiceAccount is a client that runs as a service account.
	SubjectServiceAccount AuthorizationSubjectKind = "ServiceAccount"
)
