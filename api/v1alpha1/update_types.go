package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpdateStrategySpec says how pods that were made from an older template are replaced.
type UpdateStrategySpec struct {
	// type is RollingUpdate (the operator replaces pods, one of a shard at a time, each only while every partition of
	// the shard has all its copies), Paused (an update stops after the pod that is under way) or OnDelete (a person
	// deletes pods). Default RollingUpdate. With spec.replicas 1 the operator replaces none, because the orders a pod
	// holds would be lost with it.
	// +optional
	// +default="RollingUpdate"
	// +kubebuilder:default=RollingUpdate
	Type UpdateStrategyType `json:"type,omitempty"`

	// maxUnavailableShards is how many shards may have a pod replaced at the same time. Shards that lack a copy for
	// another reason count. 1 to 256, default 1.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 256",messageExpression="'%s is out of range; allowed are 1 to 256'.format([self])"
	MaxUnavailableShards int32 `json:"maxUnavailableShards,omitempty"`

	// minReady is how long all pods of a shard have to have been ready, and so in sync, before the next is replaced. 0s
	// to 1h; default 10s.
	// +optional
	// +default="10s"
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) <= duration('1h')",messageExpression="'%s is not a duration from 0s to 1h; write it as 20ms or 1.5s'.format([self])"
	MinReady metav1.Duration `json:"minReady,omitempty,omitzero"`

	// progressDeadline is how long a replaced pod may take to be in sync before the update counts as stuck: no other pod
	// is replaced, and condition Stalled says why. Catching up takes about spec.memory divided by
	// spec.replication.learnerRate. 10s to 24h; default 10m.
	// +optional
	// +default="10m"
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('10s') && duration(self) <= duration('24h')",messageExpression="'%s is not a duration from 10s to 24h; write it as 20ms or 1.5s'.format([self])"
	ProgressDeadline metav1.Duration `json:"progressDeadline,omitempty,omitzero"`
}

// UpdateStrategyType says who replaces pods.
//
// +kubebuilder:validation:Enum=RollingUpdate;Paused;OnDelete
type UpdateStrategyType string

const (
	// UpdateRolling lets the operator replace pods.
	UpdateRolling UpdateStrategyType = "RollingUpdate"
	// UpdatePaused lets nobody replace pods for now.
	UpdatePaused UpdateStrategyType = "Paused"
	// UpdateOnDelete leaves it to persons.
	UpdateOnDelete UpdateStrategyType = "OnDelete"
)
