package v1alpha1

// CallbacksSpec is code of users that the grid calls: GridFunctions of its namespace. docs/functions.md has the interface.
//
// +kubebuilder:validation:XValidation:rule="has(self.pre) || has(self.post) || has(self.compute)",message="none of pre, post and compute is set; name a GridFunction, or leave callbacks out"
// +kubebuilder:validation:XValidation:fieldPath=".stampTag",rule="!has(self.stampTag) || has(self.pre)",message="a stamp is set in orders that functions of pre accept, and there are none; leave it out"
type CallbacksSpec struct {
	// pre are GridFunctions of kind Pre. They decide on orders before they are entries of the log: they accept, refuse or set
	// tags. They are called in this order, each with the order as those before it have changed it. 1 to 8.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Pre []CallbackReference `json:"pre,omitempty"`

	// post are GridFunctions of kind Post. Every copy calls them for each order that it stores, in this order: they make records
	// of orders. What they remember is part of a partition's state. Once all pods have been replaced, the log of each partition
	// changes to them, with one entry. 1 to 8.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Post []CallbackReference `json:"post,omitempty"`

	// compute are GridFunctions of kind Compute. A client calls one with a key of a region: on the key's primary, it makes the new
	// value of the key, and a reply. They need spec.regions. 1 to 8.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Compute []CallbackReference `json:"compute,omitempty"`

	// stampTag is a tag that is set in each order that the functions accept, to the first 16 digits of the SHA-256 of all that
	// decides. 5000 to 99999; without it orders are not stamped.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 5000 && self <= 99999",messageExpression="'%d is out of range; allowed are 5000 to 99999, the tags for users'.format([self])"
	StampTag int32 `json:"stampTag,omitempty"`
}

// CallbackReference names a GridFunction of the namespace.
type CallbackReference struct {
	// name of the GridFunction. It is the name of the function in metrics, logs, records and refusals, too.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'%s is no name of a GridFunction; use 1 to 32 lowercase letters, digits and hyphens'.format([self])"
	Name string `json:"name"`
}

// Names returns the GridFunctions that are named for a kind, in the order of the list. c may be nil.
func (c *CallbacksSpec) Names(kind FunctionKind) (names []string) {
	if c == nil {
		return nil
	}
	list := c.Pre
	switch kind {
	case FunctionPost:
		list = c.Post
	case FunctionCompute:
		list = c.Compute
	}
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}

// AllNames returns the GridFunctions that are named, those of each kind after one another. c may be nil.
func (c *CallbacksSpec) AllNames() (names []string) {
	for _, kind := range FunctionKinds {
		names = append(names, c.Names(kind)...)
	}
	return names
}
