package v1alpha1

// GatewayDropCopy is a FIX session that gets a copy of each ExecutionReport of others.
//
// +kubebuilder:validation:XValidation:fieldPath=".sessions",rule="!has(self.sessions) || !(self.session in self.sessions)",messageExpression="'%s gets the copies, and has no reports that could be copied to it; remove it from sessions'.format([self.session])"
type GatewayDropCopy struct {
	// name of the drop copy, in messages: up to 40 lowercase letters, digits and hyphens, such as risk.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'%s is no name of a drop copy; use lowercase letters, digits and hyphens, such as risk'.format([self])"
	Name string `json:"name"`

	// session is the one that gets the copies, as version, SenderCompID and TargetCompID of its counterparty, such as
	// FIX.4.4:RISK->GRID. It is in the file of sessionsFrom, with its password or certificate, is of FIX.4.4 or FIXT.1.1, and
	// enters no orders.
	// +required
	// +kubebuilder:validation:MaxLength=140
	// +kubebuilder:validation:XValidation:rule="self.matches('^FIX(T[.]1[.]1|[.]4[.]4):.+->.+$')",messageExpression="'%s is no session that can get copies; write it as FIX.4.4:RISK->GRID, the CompIDs as its counterparty has them'.format([self])"
	Session string `json:"session"`

	// partition is where the session is, before a grid that stores orders: it gets copies of the sessions that are in this
	// partition, so a drop copy of all sessions is one for each partition. Default: the one that its CompIDs choose. Before
	// a grid that matches leave it out: the session's segment, in the file, is the market that it gets copies of.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 1023",messageExpression="'%d is no partition; allowed are 0 to 1023, below the number of partitions of the grid'.format([self])"
	Partition *int32 `json:"partition,omitempty"`

	// sessions are those whose reports are copied, written as session is, of FIX.4.2, FIX.4.4 or FIXT.1.1. One that the file
	// does not have has no reports. Its CompIDs have together at most 62 bytes, since they are in each copy. Default: all
	// sessions of the file that get no copies themselves.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=73
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^FIX(T[.]1[.]1|[.]4[.][24]):.+->.+$'))",messageExpression="'%s is no session; write it as FIX.4.4:BANK->GRID, the CompIDs as its counterparty has them'.format([self.filter(s, !s.matches('^FIX(T[.]1[.]1|[.]4[.][24]):.+->.+$'))[0]])"
	Sessions []string `json:"sessions,omitempty"`
}
