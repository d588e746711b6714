package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ScaleInSpec says when a shard that spec.shards no longer asks for is removed.
type ScaleInSpec struct {
	// policy is WhenDownstream (a shard is removed only once every sink holds each order it took, one of them in
	// files that outlive it) or DiscardOrders (what the sink does not hold is given up). Default WhenDownstream.
	// +optional
	// +default="WhenDownstream"
	// +kubebuilder:default=WhenDownstream
	Policy ScaleInPolicy `json:"policy,omitempty"`

	// keepDrained is how long a shard goes on answering reads and repeated orders after it has stopped to take new ones:
	// longer than the deadlines of the clients' orders, and than it takes them to ask for the partition table (10 s). 1s
	// to 24h; default 30s.
	// +optional
	// +default="30s"
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",messageExpression="'%s is not a duration from 1s to 24h; write it as 30s or 5m'.format([self])"
	KeepDrained metav1.Duration `json:"keepDrained,omitempty,omitzero"`
}

// ScaleInPolicy says what has to be true of the orders of a shard that is removed.
//
// +kubebuilder:validation:Enum=WhenDownstream;DiscardOrders
type ScaleInPolicy string

const (
	// ScaleInWhenDownstream removes a shard once all its orders are downstream.
	ScaleInWhenDownstream ScaleInPolicy = "WhenDownstream"
	// ScaleInDiscardOrders gives up what is not.
	ScaleInDiscardOrders ScaleInPolicy = "DiscardOrders"
)

// LeavingShard is a shard that spec.shards no longer asks for.
type LeavingShard struct {
	// shard is its number.
	// +required
	// +kubebuilder:validation:Minimum=0
	Shard int32 `json:"shard"`

	// stage is Draining (it takes no new orders) or Removing (its objects are being deleted, for good).
	// +required
	// +kubebuilder:validation:Enum=Draining;Removing
	Stage LeavingStage `json:"stage"`

	// ordersLeft is how many log entries its sink does not hold yet, all partitions together, as its primaries said last.
	// +optional
	OrdersLeft *int64 `json:"ordersLeft,omitempty"`

	// waitsFor says what has to happen before it is removed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	WaitsFor string `json:"waitsFor,omitempty"`
}

// LeavingStage is how far a shard that leaves has come.
type LeavingStage string

const (
	// LeavingDraining can be taken back.
	LeavingDraining LeavingStage = "Draining"
	// LeavingRemoving cannot.
	LeavingRemoving LeavingStage = "Removing"
)
