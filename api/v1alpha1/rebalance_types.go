package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RebalanceSpec bounds how partitions move between shards.
type RebalanceSpec struct {
	// maxConcurrent is how many partitions move at a time. 1 to 16, default 2.
	// +optional
	// +default=2
	// +kubebuilder:default=2
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 16",messageExpression="'%s is out of range; allowed are 1 to 16'.format([self])"
	MaxConcurrent int32 `json:"maxConcurrent,omitempty"`

	// bandwidth is how many bytes a second all moves under way copy together at most. 1Mi to 16Gi. Default: as many as
	// replication.learnerRate lets each pod send. Missing copies are made at that rate, regardless of bandwidth.
	// +optional
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",messageExpression="'%s is not an amount; write it as 512Mi or 2Gi'.format([self])"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('16Gi')) <= 0",messageExpression="'%s is not a rate from 1Mi to 16Gi bytes a second; write it as 64Mi'.format([self])"
	Bandwidth *resource.Quantity `json:"bandwidth,omitempty"`

	// window is when partitions may begin to move, those of a change of spec.shards included. Moves under way continue after
	// it. Default: at any time. The annotation ordergrid.dev/rebalance-now starts pending moves now.
	// +optional
	Window *RebalanceWindow `json:"window,omitempty"`
}

// RebalanceWindow opens on some days of the week.
type RebalanceWindow struct {
	// start is the time of day at which it opens, such as 22:00.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",messageExpression="self + ' is not a time of day from 00:00 to 23:59; write it as 22:00'"
	Start string `json:"start"`

	// duration is how long it is open, 1m to 24h. It may end on the next day. With 24h it is open for whole days.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",messageExpression="'%s is not a duration from 1m to 24h; write it as 90m or 6h'.format([self])"
	Duration metav1.Duration `json:"duration"`

	// timeZone is the IANA name of the time zone of start, such as Europe/Zurich. Default UTC. With a name that is not in
	// the database nothing moves, and condition Stalled has the reason RebalanceWindowInvalid.
	// +optional
	// +default="UTC"
	// +kubebuilder:default="UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",messageExpression="self + ' is not the name of a time zone; write it as UTC or Europe/Zurich'"
	TimeZone string `json:"timeZone,omitempty"`

	// days are the days of the week on which it opens. Default: every day.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	Days []Weekday `json:"days,omitempty"`
}

// Weekday is a day of the week.
//
// +kubebuilder:validation:Enum=Monday;Tuesday;Wednesday;Thursday;Friday;Saturday;Sunday
type Weekday string
