package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpdateStrategySpec configures how pods of an older template are replaced.
type UpdateStrategySpec struct {
	// type is RollingUpdate (the operator replaces pods, one of a shard at a time, each only while every partition of
	// the shard has all its copies), Paused (an update stops after the pod that is under way) or OnDelete (the user
	// deletes pods). Default RollingUpdate. With spec.replicas 1 the operator replaces none, because the orders a pod
	// holds would be lost with it.
	// +optional
	// +default="RollingUpdate"
	// +kubebuilder:default=RollingUpdate
	Type UpdateStrategyType `json:"type,omitempty"`

	// maxUnavailableShards is the number of shards that may have a pod replaced at the same time. Shards that lack a copy for
	// another reason count. 1 to 256, default 1.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 256",messageExpression="'%s is out of range; allowed are 1 to 256'.format([self])"
	MaxUnavailableShards int32 `json:"maxUnavailableShards,omitempty"`

	// minReady is how long all pods of a shard must be ready, and so in sync, before the next is replaced. 0s
	// to 1h; default 10s.
	// +optional
	// +default="10s"
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 0s to 1h; write it as 20ms or 1.5s'.format([self])"
	MinReady metav1.Duration `json:"minReady,omitempty,omitzero"`

	// progressDeadline is how long a replaced pod may take to be in sync before the update is stalled: no other pod
	// is replaced, and condition Stalled has the reason. Catching up takes about spec.memory divided by
	// spec.replication.learnerRate. 10s to 24h; default 10m.
	// +optional
	// +default="10m"
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('10s') && duration(self) <= duration('24h')",messageExpression="'%s is not a duration from 10s to 24h; write it as 20ms or 1.5s'.format([self])"
	ProgressDeadline metav1.Duration `json:"progressDeadline,omitempty,omitzero"`

	// surge is how many copies more than spec.replicas a shard of two copies gets before one of its pods is replaced: 1
	// (default) brings a third copy in sync first, so that every order stays on two copies throughout, and removes it
	// afterwards; 0 leaves orders on one copy while a pod is replaced. The same applies to pods on a Kubernetes node that is
	// cordoned: until the third copy is in sync the PodDisruptionBudget refuses their eviction, with any type. The third
	// pod takes room: a Kubernetes node of its own where spec.placement.spread is Required. A shard of three copies keeps
	// two anyway and gets no fourth. With type OnDelete no copy is added.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 1",messageExpression="'%s is out of range; allowed are 0 (orders are on one copy while a pod is replaced) and 1 (a third copy comes first)'.format([self])"
	Surge *int32 `json:"surge,omitempty"`

	// withoutRoom is the behaviour when no Kubernetes node has had room for the pod of surge for progressDeadline: Wait
	// (default: no pod is replaced or drained, and condition Stalled has the reason NoRoomForSurge) or Proceed (pods are
	// replaced and drained as with surge 0, and orders are on one copy meanwhile).
	// +optional
	// +default="Wait"
	// +kubebuilder:default=Wait
	WithoutRoom WithoutRoomPolicy `json:"withoutRoom,omitempty"`

	// objective is the service level that orders must meet for an update to begin and to go on. While they do not, no pod is
	// replaced, condition Progressing has the reason ObjectiveMissed, and after progressDeadline so has Stalled; the
	// update resumes once they have met it for objective.window. Pods of a reverted template are
	// replaced regardless. Default: only copies count.
	// +optional
	Objective *UpdateObjective `json:"objective,omitempty"`
}

// UpdateObjective is compared with the order metrics of the grid nodes, shard by shard, over the last window
// before each pod is replaced. A shard with fewer than 100 orders in it is not judged; a grid without any judged shard goes
// on.
//
// +kubebuilder:validation:XValidation:rule="has(self.p99) || has(self.errors)",message="nothing is to be kept to; set p99 (such as 1ms), errors (such as 0.1%) or both, or remove objective"
type UpdateObjective struct {
	// p99 is the highest 99th percentile of the time from the arrival of an order at the primary until every copy has it.
	// 1us to 1m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1us') && duration(self) <= duration('1m')",messageExpression="'%s is not a duration from 1us to 1m; write it as 500us or 1.5ms'.format([self])"
	P99 *metav1.Duration `json:"p99,omitempty"`

	// errors is the largest part of orders that may be refused, such as 0.1%. An order that is answered with the address
	// of another node, or sent again by its client, is none.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,3}([.][0-9]{1,3})?%$') && double(self.replace('%', '')) <= 100.0",messageExpression="self + ' is not a part from 0% to 100%; write it as 1% or 0.1%'"
	Errors Percentage `json:"errors,omitempty"`

	// window is how long orders are measured before each pod. 1s to 1h; default 30s.
	// +optional
	// +default="30s"
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 1s to 1h; write it as 30s or 1.5m'.format([self])"
	Window metav1.Duration `json:"window,omitempty,omitzero"`
}

// WithoutRoomPolicy is the behaviour of an update whose third copy finds no Kubernetes node.
//
// +kubebuilder:validation:Enum=Wait;Proceed
type WithoutRoomPolicy string

const (
	// WithoutRoomWait replaces no pod until there is room.
	WithoutRoomWait WithoutRoomPolicy = "Wait"
	// WithoutRoomProceed replaces pods, with orders on one copy meanwhile.
	WithoutRoomProceed WithoutRoomPolicy = "Proceed"
)

// UpdateStrategyType selects how pods are replaced.
//
// +kubebuilder:validation:Enum=RollingUpdate;Paused;OnDelete
type UpdateStrategyType string

const (
	// UpdateRolling lets the operator replace pods.
	UpdateRolling UpdateStrategyType = "RollingUpdate"
	// UpdatePaused suspends the replacement of pods.
	UpdatePaused UpdateStrategyType = "Paused"
	// UpdateOnDelete replaces pods that the user deletes.
	UpdateOnDelete UpdateStrategyType = "OnDelete"
)
