package v1alpha1

// FabricSpec is a second network of the pods, made by Multus, that orders and their copies travel on. Clients that submit
// orders have to be on it too; OrderProbes of the grid are.
type FabricSpec struct {
	// network names the NetworkAttachmentDefinition, one written by hand or one that the SR-IOV network operator made of a
	// SriovNetwork. The operator does not create it, because it configures the hosts' networks.
	// +required
	Network NetworkReference `json:"network"`

	// interface is the name the network's interface gets inside the pods. Default fabric0.
	// +optional
	// +default="fabric0"
	// +kubebuilder:default=fabric0
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9.-]*$') && !(self in ['lo', 'eth0'])",messageExpression="'%s is not a name for a second interface; use lowercase letters, digits, dots and hyphens, beginning with a letter, and neither lo nor eth0'.format([self])"
	Interface string `json:"interface,omitempty"`

	// resourceName is the device plugin's resource for the adapter's virtual functions, such as
	// openshift.io/ib_trading; each pod asks for one. Leave it out for networks without devices, such as macvlan, and where
	// the network resources injector sets it.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",messageExpression="'%s is not the name of an extended resource; write it as openshift.io/ib_trading, as in the allocatable resources of a node'.format([self])"
	ResourceName string `json:"resourceName,omitempty"`

	// transport is how bytes travel on the fabric. TCP, the default, is the only one so far.
	// +optional
	// +default="TCP"
	// +kubebuilder:default=TCP
	Transport FabricTransport `json:"transport,omitempty"`

	// fallback is the behaviour of a grid node without an address on the fabric: Refuse (the default: it does not start) or
	// PodNetwork (it uses the pod network, and condition FabricReady is False). Copies on different networks do not reach
	// each other: PodNetwork is for clusters in which no node has the fabric.
	// +optional
	// +default="Refuse"
	// +kubebuilder:default=Refuse
	Fallback FabricFallback `json:"fallback,omitempty"`
}

// NetworkReference names a NetworkAttachmentDefinition.
type NetworkReference struct {
	// name of the NetworkAttachmentDefinition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'%s is not the name of a NetworkAttachmentDefinition; use lowercase letters, digits, dots and hyphens; the namespace goes into namespace'.format([self])"
	Name string `json:"name"`

	// namespace of the NetworkAttachmentDefinition. Default: that of the OrderGrid.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'%s is not the name of a namespace; use lowercase letters, digits and hyphens'.format([self])"
	Namespace string `json:"namespace,omitempty"`
}

// FabricTransport names a way for bytes to travel.
//
// +kubebuilder:validation:Enum=TCP
type FabricTransport string

// FabricTCP is TCP over the fabric's interface.
const FabricTCP FabricTransport = "TCP"

// FabricFallback is the behaviour of a grid node without the fabric.
//
// +kubebuilder:validation:Enum=Refuse;PodNetwork
type FabricFallback string

const (
	// FallbackRefuse does not start.
	FallbackRefuse FabricFallback = "Refuse"
	// FallbackPodNetwork uses the pod network and reports it.
	FallbackPodNetwork FabricFallback = "PodNetwork"
)

// Annotations with the networks requested from Multus and their status.
const (
	AnnotationNetworks      = "k8s.v1.cni.cncf.io/networks"
	AnnotationNetworkStatus = "k8s.v1.cni.cncf.io/network-status"
)
