package v1alpha1

// CallbacksSpec is code of users that the grid calls. docs/functions.md has the interface.
//
// +kubebuilder:validation:XValidation:rule="has(self.pre) || has(self.post)",message="neither pre nor post is set; name a function, or leave callbacks out"
// +kubebuilder:validation:XValidation:fieldPath=".stampTag",rule="!has(self.stampTag) || has(self.pre)",message="a stamp is set in orders that functions of pre accept, and there are none; leave it out"
// +kubebuilder:validation:XValidation:fieldPath=".stampTag",rule="!has(self.stampTag) || !has(self.pre) || self.pre.all(f, !has(f.tags) || !(self.stampTag in f.tags))",messageExpression="'%d is in tags of a function too, which could forge the stamp; use another tag'.format([self.stampTag])"
type CallbacksSpec struct {
	// pre are functions that decide on orders before they are entries of the log: they accept, refuse or set tags. They are
	// called in this order, each with the order as those before it have changed it. 1 to 8.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Pre []PreCallback `json:"pre,omitempty"`

	// post are functions that every copy calls for each order that it stores, in this order: they make records of orders.
	// They have no floating point, and what they remember is part of a partition's state. Once all pods have been replaced,
	// the log of each partition changes to them, with one entry. 1 to 8.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Post []PostCallback `json:"post,omitempty"`

	// stampTag is a tag that is set in each order that the functions accept, to the first 16 digits of the SHA-256 of all that
	// decides. 5000 to 99999; without it orders are not stamped.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 5000 && self <= 99999",messageExpression="'%d is out of range; allowed are 5000 to 99999, the tags for users'.format([self])"
	StampTag int32 `json:"stampTag,omitempty"`
}

// PreCallback is one function and what it is granted.
type PreCallback struct {
	// name of the function in metrics, logs and refusals: lowercase letters, digits and hyphens.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'%s is no name of a function; use 1 to 32 lowercase letters, digits and hyphens'.format([self])"
	Name string `json:"name"`

	// module is the WebAssembly module. Nodes refuse one of another digest.
	// +required
	Module PinnedFile `json:"module"`

	// config is given to the function when it is loaded.
	// +optional
	Config *PinnedFile `json:"config,omitempty"`

	// fuel of one call, about an instruction each: 1 to 1000000, about a millisecond. Default 100000.
	// +optional
	// +default=100000
	// +kubebuilder:default=100000
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000",messageExpression="'%d is out of range; allowed are 1 to 1000000'.format([self])"
	Fuel int32 `json:"fuel,omitempty"`

	// memoryPages is the function's memory in pages of 64 KiB, 1 to 64, default 16. Each node takes it twice from
	// spec.memory.
	// +optional
	// +default=16
	// +kubebuilder:default=16
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 64",messageExpression="'%d is out of range; allowed are 1 to 64'.format([self])"
	MemoryPages int32 `json:"memoryPages,omitempty"`

	// tags that the function may set, at most 16. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t > 0 && t < 100000 && !(t in [8, 9, 10, 11, 34, 35, 41, 43, 49, 52, 56, 97, 122]))",message="a function may not set tags of the envelope, the session or the order's identity (8, 9, 10, 11, 34, 35, 41, 43, 49, 52, 56, 97, 122), and tags are 1 to 99999; remove them"
	Tags []int32 `json:"tags,omitempty"`

	// onError is what happens to an order when the function fails: Reject (default) or Pass, which takes it as it was.
	// +optional
	// +default="Reject"
	// +kubebuilder:default=Reject
	OnError CallbackErrorPolicy `json:"onError,omitempty"`
}

// PostCallback is one function that every copy calls, and what it is granted.
type PostCallback struct {
	// name of the function in records, metrics and logs: lowercase letters, digits and hyphens.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'%s is no name of a function; use 1 to 32 lowercase letters, digits and hyphens'.format([self])"
	Name string `json:"name"`

	// module is the WebAssembly module, at most 256 KiB. Nodes refuse one of another digest.
	// +required
	Module PinnedFile `json:"module"`

	// config is given to the function when it begins, at most 4 KiB.
	// +optional
	Config *PinnedFile `json:"config,omitempty"`

	// fuel of one call, about an instruction each: 1 to 1000000, about a millisecond on every copy. Default 100000.
	// +optional
	// +default=100000
	// +kubebuilder:default=100000
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000",messageExpression="'%d is out of range; allowed are 1 to 1000000'.format([self])"
	Fuel int32 `json:"fuel,omitempty"`

	// memoryPages is the function's memory in pages of 64 KiB, 1 to 64, default 16. Each node takes it twice from
	// spec.memory for each of its partitions.
	// +optional
	// +default=16
	// +kubebuilder:default=16
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 64",messageExpression="'%d is out of range; allowed are 1 to 64'.format([self])"
	MemoryPages int32 `json:"memoryPages,omitempty"`
}

// PinnedFile is a key of a ConfigMap of the grid's namespace, with the digest of what it has to be.
type PinnedFile struct {
	// configMapName names the ConfigMap. A module is in its binaryData.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMapName string `json:"configMapName"`

	// key in the ConfigMap.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && self != '..'",messageExpression="'%s is no key of a ConfigMap; use letters, digits, hyphens, underscores and points'.format([self])"
	Key string `json:"key"`

	// sha256 of the content, 64 hexadecimal digits, as sha256sum prints it. A change of it replaces the pods, one at a time.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",messageExpression="'%s is no SHA-256; give the 64 lowercase hexadecimal digits that sha256sum prints'.format([self])"
	SHA256 string `json:"sha256"`
}

// CallbackErrorPolicy is what happens to an order whose function fails.
//
// +kubebuilder:validation:Enum=Reject;Pass
type CallbackErrorPolicy string

const (
	// CallbackReject refuses the order.
	CallbackReject CallbackErrorPolicy = "Reject"
	// CallbackPass takes the order as it was.
	CallbackPass CallbackErrorPolicy = "Pass"
)
