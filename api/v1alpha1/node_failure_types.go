package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeFailureSpec is how a pod on a lost Kubernetes node is handled. Kubernetes itself leaves such a pod of a
// StatefulSet Terminating until the node is back, and the shard without a copy for as long.
type NodeFailureSpec struct {
	// policy is ReplacePods (the operator gives the pod up, and its StatefulSet creates the next one on another node) or Wait
	// (until the pod is deleted by force, or the node is back). Default ReplacePods. A pod is given up only if the other
	// pods of its shard have taken it out of every partition and hold all its orders; with spec.replicas 1 none is.
	// +optional
	// +default="ReplacePods"
	// +kubebuilder:default=ReplacePods
	Policy NodeFailurePolicy `json:"policy,omitempty"`

	// podReplaceAfter is how long the node must be unreachable, counted from when Kubernetes marked it so, which is
	// 40 to 50 seconds after the last heartbeat in most clusters. A node with the taint node.kubernetes.io/out-of-service is lost
	// at once. 0s to 24h; default 30s.
	// +optional
	// +default="30s"
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) <= duration('24h')",messageExpression="'%s is not a duration from 0s to 24h; write it as 20ms or 1.5s'.format([self])"
	PodReplaceAfter metav1.Duration `json:"podReplaceAfter,omitempty,omitzero"`
}

// NodeFailurePolicy selects how pods on lost nodes are given up.
//
// +kubebuilder:validation:Enum=ReplacePods;Wait
type NodeFailurePolicy string

const (
	// NodeFailureReplace lets the operator give pods up.
	NodeFailureReplace NodeFailurePolicy = "ReplacePods"
	// NodeFailureWait waits for manual deletion.
	NodeFailureWait NodeFailurePolicy = "Wait"
)
