package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GridFunctionSpec is a WebAssembly module and what it is granted.
//
// +kubebuilder:validation:XValidation:fieldPath=".setTags",rule="self.kind == 'Pre' || !has(self.setTags)",message="only a function of kind Pre sets tags of orders: one of kind Post is called for an order that is an entry already, one of kind Compute for a key; remove setTags"
// +kubebuilder:validation:XValidation:fieldPath=".onError",rule="self.kind == 'Pre' || !has(self.onError)",message="only a function of kind Pre decides on orders, so no order is rejected when another one fails; remove onError"
// +kubebuilder:validation:XValidation:fieldPath=".reads",rule="self.kind != 'Compute' || self.?reads.orValue('Message') == 'Message'",message="a function of kind Compute is given a key, its value and arguments, and no order; remove reads and readTags"
// +kubebuilder:validation:XValidation:fieldPath=".readTags",rule="!has(self.readTags) || has(self.reads) && self.reads == 'Tags'",message="the function is given the whole message, so readTags means nothing; set reads to Tags, or remove readTags"
type GridFunctionSpec struct {
	// kind is Pre (it decides on an order on the primary, before the order is an entry of the log), Post (every copy calls it
	// for each order that it stores) or Compute (a client calls it with a key of a region, on the key's primary). It never
	// changes.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the kind of a function never changes: grids call it by its kind; create another GridFunction"
	Kind FunctionKind `json:"kind"`

	// module is the WebAssembly module, at most 1 MiB; of kind Post, 256 KiB. It is in a ConfigMap of the namespace, or the
	// operator fetches it once, from a registry or a web server that an administrator allows.
	// +required
	Module FunctionModule `json:"module"`

	// config is given to the function when it is loaded; of kind Post, at most 4 KiB.
	// +optional
	Config *FunctionFile `json:"config,omitempty"`

	// fuel of one call, about an instruction each: 1 to 1000000, about a millisecond. Default 100000.
	// +optional
	// +default=100000
	// +kubebuilder:default=100000
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1000000",messageExpression="'%d is out of range; allowed are 1 to 1000000'.format([self])"
	Fuel int32 `json:"fuel,omitempty"`

	// memoryPages is the function's memory in pages of 64 KiB, 1 to 64, default 16. Each node takes it twice from spec.memory of
	// the OrderGrid; of kind Post, for each of its partitions.
	// +optional
	// +default=16
	// +kubebuilder:default=16
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 64",messageExpression="'%d is out of range; allowed are 1 to 64'.format([self])"
	MemoryPages int32 `json:"memoryPages,omitempty"`

	// reads is what a module of kind Pre or Post may ask for beside the fields that every function gets (quantity, price, side, order type, time
	// in force, ClOrdID, Symbol and Account): Message (default: the whole message, and any tag) or Tags (those of readTags). A
	// module that asks for more is not Valid.
	// +optional
	// +default="Message"
	// +kubebuilder:default=Message
	Reads FunctionReads `json:"reads,omitempty"`

	// readTags are the tags that the module may ask for with reads Tags, at most 16. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t > 0 && t < 100000)",message="tags are 1 to 99999"
	ReadTags []int32 `json:"readTags,omitempty"`

	// setTags are tags that a function of kind Pre may set, at most 16. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, t > 0 && t < 100000 && !(t in [8, 9, 10, 11, 34, 35, 41, 43, 49, 52, 56, 97, 122]))",message="a function may not set tags of the envelope, the session or the order's identity (8, 9, 10, 11, 34, 35, 41, 43, 49, 52, 56, 97, 122), and tags are 1 to 99999; remove them"
	SetTags []int32 `json:"setTags,omitempty"`

	// onError is what happens to an order when a function of kind Pre fails: Reject (default) or Pass, which takes the order as
	// it was.
	// +optional
	OnError FunctionErrorPolicy `json:"onError,omitempty"`
}

// FunctionFile is a file with the digest of what it has to be.
type FunctionFile struct {
	// configMap is where the file is.
	// +required
	ConfigMap ConfigMapFile `json:"configMap"`

	// sha256 of the content, 64 hexadecimal digits, as sha256sum prints it. Another content is not given to any grid.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",messageExpression="'%s is no SHA-256; give the 64 lowercase hexadecimal digits that sha256sum prints'.format([self])"
	SHA256 string `json:"sha256"`
}

// ConfigMapFile is a key of a ConfigMap of the namespace. It is read once for each grid, which keeps a copy.
type ConfigMapFile struct {
	// name of the ConfigMap. A module is in its binaryData.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in the ConfigMap.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && self != '..'",messageExpression="'%s is no key of a ConfigMap; use letters, digits, hyphens, underscores and points'.format([self])"
	Key string `json:"key"`
}

// FunctionKind is when a grid calls a function.
//
// +kubebuilder:validation:Enum=Pre;Post;Compute
type FunctionKind string

const (
	// FunctionPre decides on an order before it is an entry of the log.
	FunctionPre FunctionKind = "Pre"
	// FunctionPost makes a record of an order on every copy.
	FunctionPost FunctionKind = "Post"
	// FunctionCompute makes the new value of a key of a region when a client calls it.
	FunctionCompute FunctionKind = "Compute"
)

// FunctionKinds are all kinds, in the order in which a grid is given its functions.
var FunctionKinds = []FunctionKind{FunctionPre, FunctionPost, FunctionCompute}

// FunctionReads is what a module may ask for.
//
// +kubebuilder:validation:Enum=Message;Tags
type FunctionReads string

const (
	// FunctionReadsMessage is the whole message.
	FunctionReadsMessage FunctionReads = "Message"
	// FunctionReadsTags are the tags that are listed.
	FunctionReadsTags FunctionReads = "Tags"
)

// FunctionErrorPolicy is what happens to an order whose function fails.
//
// +kubebuilder:validation:Enum=Reject;Pass
type FunctionErrorPolicy string

const (
	// FunctionReject refuses the order.
	FunctionReject FunctionErrorPolicy = "Reject"
	// FunctionPass takes the order as it was.
	FunctionPass FunctionErrorPolicy = "Pass"
)

// GridFunctionStatus is what the operator found out about the function.
type GridFunctionStatus struct {
	// observedGeneration is the generation of spec this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Valid and InUse.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// module is what the operator has loaded and checked; absent while Valid is not True.
	// +optional
	Module *FunctionModuleStatus `json:"module,omitempty"`

	// grids are the OrderGrids that name the function, or whose pods are given it still. At most 64 of them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Grids []FunctionGrid `json:"grids,omitempty"`
}

// FunctionModuleStatus is a module that was loaded.
type FunctionModuleStatus struct {
	// sha256 of the module, computed from what was read.
	// +required
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256"`

	// bytes of the module.
	// +required
	Bytes int32 `json:"bytes"`

	// asks is what the module asks for beside the fields that every function gets: Message, or Tags with the tags. Absent for
	// kind Compute.
	// +optional
	Asks FunctionReads `json:"asks,omitempty"`

	// tags that it asks for.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Tags []int32 `json:"tags,omitempty"`
}

// FunctionGrid is an OrderGrid that uses a function.
type FunctionGrid struct {
	// name of the OrderGrid.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// sha256 of the module that its pods are given; absent while they are given none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256,omitempty"`
}

// GridFunction is code of users that OrderGrids call, as a WebAssembly module. A change of it reaches every grid that names it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ogf,categories=ordergrid-all
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=".spec.kind"
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=".status.conditions[?(@.type=='Valid')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type=='Valid')].reason"
// +kubebuilder:printcolumn:name="Grids",type=string,JSONPath=".status.grids[*].name"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="SHA256",type=string,priority=1,JSONPath=".status.module.sha256"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Valid')].message"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 32 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'metadata.name: %s is no name of a function; use 1 to 32 lowercase letters, digits and hyphens'.format([self.metadata.name])"
type GridFunction struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the module and what it is granted.
	// +required
	Spec GridFunctionSpec `json:"spec"`

	// status is what the operator found out.
	// +optional
	Status GridFunctionStatus `json:"status,omitzero"`
}

// GridFunctionList is a list of GridFunctions.
//
// +kubebuilder:object:root=true
type GridFunctionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GridFunction `json:"items"`
}
