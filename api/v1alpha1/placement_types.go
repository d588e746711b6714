package v1alpha1

import corev1 "k8s.io/api/core/v1"

// GridPlacement selects Kubernetes nodes and processors for grid nodes.
//
// Each pod of a shard is primary of one partition and backup of the others, and primaries move: there is no pool for
// primaries and none for backups.
type GridPlacement struct {
	// pool requires Kubernetes nodes with certain hardware, by the labels that Node Feature Discovery writes.
	// +optional
	// +kubebuilder:default={cpu: "Any", network: "Any"}
	Pool NodePool `json:"pool,omitempty,omitzero"`

	// nodeSelector lists further labels a Kubernetes node must have, such as that of a cloud's node pool. A label that
	// pool requires as well is taken from here.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// spread controls whether the copies of a shard must run on different Kubernetes nodes (Required, the default),
	// or should (Preferred).
	// +optional
	// +default="Required"
	// +kubebuilder:default=Required
	Spread SpreadPolicy `json:"spread,omitempty"`

	// separateBy keeps the copies of a shard apart by further labels of Kubernetes nodes: zones, racks, power feeds.
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +kubebuilder:validation:MaxItems=4
	SeparateBy []Separation `json:"separateBy,omitempty"`

	// shardSpread controls whether the pods of all shards should (Preferred, the default) or must (Required) be spread evenly,
	// by one pod more or less, over the Kubernetes nodes that fit.
	// +optional
	// +default="Preferred"
	// +kubebuilder:default=Preferred
	ShardSpread SpreadPolicy `json:"shardSpread,omitempty"`

	// cpu controls whether a grid node shares its processors.
	// +optional
	// +kubebuilder:default={policy: "Shared"}
	CPU CPUPlacement `json:"cpu,omitempty,omitzero"`
}

// SpreadPolicy is how strictly pods are kept apart.
//
// +kubebuilder:validation:Enum=Required;Preferred
type SpreadPolicy string

const (
	// SpreadRequired leaves a pod waiting rather than have it too close to another.
	SpreadRequired SpreadPolicy = "Required"
	// SpreadPreferred allows a pod too close to another rather than leave it waiting.
	SpreadPreferred SpreadPolicy = "Preferred"
)

// Separation keeps the copies of a shard on Kubernetes nodes with different values of a label.
type Separation struct {
	// topologyKey is the label, such as topology.kubernetes.io/zone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",messageExpression="'%s is not the name of a label; write it as topology.kubernetes.io/zone'.format([self])"
	// +kubebuilder:validation:XValidation:rule="self != 'kubernetes.io/hostname'",message="kubernetes.io/hostname is what spec.placement.spread is for; remove it here and set spread"
	TopologyKey string `json:"topologyKey"`

	// policy is Required (the default: copies never share a value, and nodes without the label are not used) or
	// Preferred.
	// +optional
	// +default="Required"
	// +kubebuilder:default=Required
	Policy SpreadPolicy `json:"policy,omitempty"`
}

// NodePool requires certain hardware.
type NodePool struct {
	// cpu is Any (the default), Intel (label feature.node.kubernetes.io/cpu-model.vendor_id=Intel) or Xeon (besides,
	// feature.node.kubernetes.io/cpu-cpuid.AVX512F=true, which Intel's server processors have).
	// +optional
	// +default="Any"
	// +kubebuilder:default=Any
	CPU PoolCPU `json:"cpu,omitempty"`

	// network is Any (the default), SRIOV (label feature.node.kubernetes.io/network-sriov.configured=true), RDMA
	// (feature.node.kubernetes.io/rdma.available=true) or InfiniBand (besides,
	// feature.node.kubernetes.io/pci-0207_15b3.present=true, an InfiniBand adapter of NVIDIA/Mellanox).
	// +optional
	// +default="Any"
	// +kubebuilder:default=Any
	Network PoolNetwork `json:"network,omitempty"`
}

// PoolCPU names a kind of processor.
//
// +kubebuilder:validation:Enum=Any;Intel;Xeon
type PoolCPU string

const (
	// PoolCPUAny is any processor.
	PoolCPUAny PoolCPU = "Any"
	// PoolCPUIntel is one of Intel's.
	PoolCPUIntel PoolCPU = "Intel"
	// PoolCPUXeon is one of Intel's for servers.
	PoolCPUXeon PoolCPU = "Xeon"
)

// PoolNetwork names a kind of network adapter.
//
// +kubebuilder:validation:Enum=Any;SRIOV;RDMA;InfiniBand
type PoolNetwork string

const (
	// PoolNetworkAny is any adapter.
	PoolNetworkAny PoolNetwork = "Any"
	// PoolNetworkSRIOV is one that has virtual functions.
	PoolNetworkSRIOV PoolNetwork = "SRIOV"
	// PoolNetworkRDMA is one with remote direct memory access.
	PoolNetworkRDMA PoolNetwork = "RDMA"
	// PoolNetworkInfiniBand is an InfiniBand adapter.
	PoolNetworkInfiniBand PoolNetwork = "InfiniBand"
)

// Labels of Node Feature Discovery that pools are made of.
const (
	LabelCPUVendor     = "feature.node.kubernetes.io/cpu-model.vendor_id"
	LabelCPUAVX512     = "feature.node.kubernetes.io/cpu-cpuid.AVX512F"
	LabelSRIOV         = "feature.node.kubernetes.io/network-sriov.configured"
	LabelRDMA          = "feature.node.kubernetes.io/rdma.available"
	LabelInfiniBandPCI = "feature.node.kubernetes.io/pci-0207_15b3.present"
)

// CPUPlacement controls whether a grid node shares its processors.
//
// +kubebuilder:validation:XValidation:fieldPath=".cores",rule="self.policy != 'Exclusive' || has(self.cores)",message="missing: with policy Exclusive a grid node gets whole processors of its own; give their number, at least 2, one of which is for the orders"
// +kubebuilder:validation:XValidation:fieldPath=".cores",rule="self.policy == 'Exclusive' || !has(self.cores)",messageExpression="'%d has no effect with policy %s; set policy to Exclusive, or remove cores and set spec.resources.requests.cpu'.format([self.cores, self.policy])"
type CPUPlacement struct {
	// policy is Shared (the default: as in spec.resources; no limit by default, because throttling
	// shows up as latency) or Exclusive: requests are limits and whole cores, so that a kubelet whose CPU manager has the
	// policy static gives the grid node processors that nothing else runs on, and, with a topology manager, memory and
	// network adapter of the same NUMA node.
	// +optional
	// +default="Shared"
	// +kubebuilder:default=Shared
	Policy CPUPolicy `json:"policy,omitempty"`

	// cores is the number of exclusive processors of a grid node with policy Exclusive, 2 to 256.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 2 && self <= 256",messageExpression="'%s is out of range; allowed are 2 to 256: one processor for the orders, the others for everything else'.format([self])"
	Cores int32 `json:"cores,omitempty"`
}

// CPUPolicy selects whether processors are shared.
//
// +kubebuilder:validation:Enum=Shared;Exclusive
type CPUPolicy string

const (
	// CPUShared runs on whatever processor is free.
	CPUShared CPUPolicy = "Shared"
	// CPUExclusive has processors of its own.
	CPUExclusive CPUPolicy = "Exclusive"
)
