package v1alpha1

// ExternalPort is where a grid node serves clients outside the cluster, where spec.externalAccess asks for it.
const ExternalPort = 7401

// DefaultHostPort is the first port of Kubernetes nodes with spec.externalAccess.type HostPort.
const DefaultHostPort = 17400

// LabelExternalPod is on the Service by which clients outside the cluster reach a pod; its value is the pod's name.
const LabelExternalPod = "ordergrid.dev/external-pod"

// MaxExternalShards is how many shards a grid with spec.externalAccess may have: the addresses of all pods stand in the
// record of each shard.
const MaxExternalShards = 64

// ExternalAccessSpec gives every pod an address for clients outside the cluster, where pod addresses and names of
// Services are not reachable. Such clients use a separate port (7401 of the pods), and receive these addresses.
//
// +kubebuilder:validation:XValidation:fieldPath=".loadBalancer",rule="self.type == 'LoadBalancer' || !has(self.loadBalancer)",messageExpression="'has no effect with type %s; set type to LoadBalancer, or remove loadBalancer'.format([self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".hostPort",rule="self.type == 'HostPort' || !has(self.hostPort)",messageExpression="'has no effect with type %s; set type to HostPort, or remove hostPort'.format([self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".nodeAddress",rule="self.type != 'LoadBalancer' || !has(self.nodeAddress)",message="has no effect with type LoadBalancer, whose Services have addresses of their own; remove it, or set type to NodePort or HostPort"
// +kubebuilder:validation:XValidation:fieldPath=".nodeAddress",rule="!has(self.nodeAddress) || !has(self.host)",message="is not used where spec.externalAccess.host gives the address for clients; remove one of the two"
// +kubebuilder:validation:XValidation:fieldPath=".annotations",rule="self.type != 'HostPort' || !has(self.annotations)",message="has no effect with type HostPort, which needs no Services; remove it"
// +kubebuilder:validation:XValidation:fieldPath=".trafficPolicy",rule="self.type != 'HostPort' || !has(self.trafficPolicy)",message="has no effect with type HostPort, which needs no Services; remove it"
// +kubebuilder:validation:XValidation:fieldPath=".sourceRanges",rule="!has(self.sourceRanges) || !has(self.trafficPolicy) || self.trafficPolicy != 'Cluster'",message="needs trafficPolicy Local: with Cluster a pod sees the address of a Kubernetes node in place of the client's, and would refuse them all; set Local, or remove sourceRanges"
// +kubebuilder:validation:XValidation:fieldPath=".host",rule="!has(self.host) || self.type != 'LoadBalancer' || self.host.contains('{pod}')",messageExpression="'%s is the same for every pod, but every pod has a load balancer of its own; put {pod} into it'.format([self.host])"
// +kubebuilder:validation:XValidation:fieldPath=".host",rule="!has(self.host) || self.type != 'HostPort' || self.host.contains('{node}')",messageExpression="'%s does not say on which Kubernetes node a pod is, and its host port is open on that one only; put {node} into it'.format([self.host])"
// +kubebuilder:validation:XValidation:fieldPath=".host",rule="!has(self.host) || self.type != 'NodePort' || self.host.contains('{node}') || has(self.trafficPolicy) && self.trafficPolicy == 'Cluster'",messageExpression="'%s does not say on which Kubernetes node a pod is, and with trafficPolicy Local its port answers on that one only; put {node} into it, or set trafficPolicy to Cluster'.format([self.host])"
type ExternalAccessSpec struct {
	// type is LoadBalancer (a Service with a load balancer for each pod), NodePort (a Service with a node port for each
	// pod) or HostPort (a port of the Kubernetes node that a pod runs on; no Service, no hop, and not allowed by the
	// Baseline Pod Security Standard).
	// +required
	Type ExternalAccessType `json:"type"`

	// host is given to clients in place of an address: a DNS name or IP address in which {pod} stands for the pod's name
	// and {node} for that of its Kubernetes node, such as {pod}.trades.example.com. The user has to make the names
	// resolve. Default: the address of the load balancer, or that of the Kubernetes node (see nodeAddress).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=180
	// +kubebuilder:validation:XValidation:rule="self.replace('{pod}', 'p').replace('{node}', 'n').matches('^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$')",messageExpression="'%s is not a host; write a DNS name or an IPv4 address without a port, in which {pod} and {node} may stand'.format([self])"
	Host string `json:"host,omitempty"`

	// nodeAddress is which address of a Kubernetes node clients receive with NodePort and HostPort: InternalIP
	// (default) or ExternalIP, which requires an operator that reads Kubernetes nodes (chart value preflight).
	// +optional
	NodeAddress NodeAddressType `json:"nodeAddress,omitempty"`

	// trafficPolicy of the Services: Local (default: no second hop, and the pod sees the client's address) or Cluster
	// (any Kubernetes node answers for any pod).
	// +optional
	TrafficPolicy ExternalTrafficPolicy `json:"trafficPolicy,omitempty"`

	// sourceRanges are the networks that clients may come from, as CIDRs; they go into the load balancers' and into
	// spec.security.networkPolicy. Default: any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",messageExpression="'%s is not a network; write it as 192.0.2.0/24'.format([self])"
	SourceRanges []string `json:"sourceRanges,omitempty"`

	// annotations of the Services, for controllers of load balancers or DNS records. In a value {pod} stands for
	// the pod's name.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`

	// loadBalancer configures type LoadBalancer.
	// +optional
	LoadBalancer *ExternalLoadBalancer `json:"loadBalancer,omitempty"`

	// hostPort configures type HostPort.
	// +optional
	HostPort *ExternalHostPort `json:"hostPort,omitempty"`
}

// ExternalAccessType names a way into the cluster.
//
// +kubebuilder:validation:Enum=LoadBalancer;NodePort;HostPort
type ExternalAccessType string

const (
	// ExternalLoadBalancers gives each pod a Service with a load balancer.
	ExternalLoadBalancers ExternalAccessType = "LoadBalancer"
	// ExternalNodePorts gives each pod a Service with a node port.
	ExternalNodePorts ExternalAccessType = "NodePort"
	// ExternalHostPorts gives each pod a port of its Kubernetes node.
	ExternalHostPorts ExternalAccessType = "HostPort"
)

// NodeAddressType names an address of a Kubernetes node.
//
// +kubebuilder:validation:Enum=InternalIP;ExternalIP
type NodeAddressType string

const (
	// NodeInternalIP is the address used inside the cluster.
	NodeInternalIP NodeAddressType = "InternalIP"
	// NodeExternalIP is the address used outside the cluster.
	NodeExternalIP NodeAddressType = "ExternalIP"
)

// ExternalTrafficPolicy selects which Kubernetes nodes answer for a pod.
//
// +kubebuilder:validation:Enum=Local;Cluster
type ExternalTrafficPolicy string

const (
	// TrafficLocal: the pod's own.
	TrafficLocal ExternalTrafficPolicy = "Local"
	// TrafficCluster: all.
	TrafficCluster ExternalTrafficPolicy = "Cluster"
)

// ExternalLoadBalancer configures Services of type LoadBalancer.
type ExternalLoadBalancer struct {
	// class is the loadBalancerClass of the Services. It cannot change while they exist. Default: the cluster's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'%s differs from %s, and the class of a Service cannot change; remove spec.externalAccess, and add it again when its Services are gone'.format([self, oldSelf])"
	Class string `json:"class,omitempty"`
}

// ExternalHostPort configures ports of Kubernetes nodes.
type ExternalHostPort struct {
	// first is the port of the pods of shard 0; those of shard n use first + n, because pods of different shards may
	// share a Kubernetes node. 1024 to 65472; default 17400.
	// +optional
	// +default=17400
	// +kubebuilder:default=17400
	// +kubebuilder:validation:XValidation:rule="self >= 1024 && self <= 65472",messageExpression="'%s is out of range; allowed are 1024 to 65472'.format([self])"
	First int32 `json:"first,omitempty"`
}

// ExternalAddress is where clients outside the cluster reach a pod.
type ExternalAddress struct {
	// podName is the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	PodName string `json:"podName"`

	// address is host:port.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Address string `json:"address"`
}

// ExternalServiceName names the Service by which clients outside the cluster reach a pod.
func ExternalServiceName(pod string) string { return pod + "-external" }
