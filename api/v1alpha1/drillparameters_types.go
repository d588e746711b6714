package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NetworkFault describes how packets are disturbed.
type NetworkFault struct {
	// latency is added to each packet. 1ms to 1m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('1m')",messageExpression="'%s is not a duration from 1ms to 1m; write it as 20ms or 1.5s'.format([self])"
	Latency *metav1.Duration `json:"latency,omitempty"`

	// jitter is how far latency varies. 0s to 1m; default 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('0s') && duration(self) <= duration('1m')",messageExpression="'%s is not a duration from 0s to 1m; write it as 20ms or 1.5s'.format([self])"
	Jitter *metav1.Duration `json:"jitter,omitempty"`

	// loss is the part of packets that is dropped, such as 25%.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,3}([.][0-9]{1,3})?%$') && double(self.replace('%', '')) <= 100.0",messageExpression="self + ' is not a part from 0% to 100%; write it as 25% or 0.5%'"
	Loss Percentage `json:"loss,omitempty"`

	// duplicate is the part of packets that is sent twice.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,3}([.][0-9]{1,3})?%$') && double(self.replace('%', '')) <= 100.0",messageExpression="self + ' is not a part from 0% to 100%; write it as 25% or 0.5%'"
	Duplicate Percentage `json:"duplicate,omitempty"`

	// corrupt is the part of packets in which a bit is flipped.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,3}([.][0-9]{1,3})?%$') && double(self.replace('%', '')) <= 100.0",messageExpression="self + ' is not a part from 0% to 100%; write it as 25% or 0.5%'"
	Corrupt Percentage `json:"corrupt,omitempty"`

	// correlation is the correlation with what happened to the previous packet. Default 0%.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,3}([.][0-9]{1,3})?%$') && double(self.replace('%', '')) <= 100.0",messageExpression="self + ' is not a part from 0% to 100%; write it as 25% or 0.5%'"
	Correlation Percentage `json:"correlation,omitempty"`

	// rate is the bits a second that the link lets through. 10k to 100G.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).compareTo(quantity('10k')) >= 0 && quantity(self).compareTo(quantity('100G')) <= 0",messageExpression="'%s is not a rate from 10k to 100G bits a second; write it as 10M'.format([self])"
	Rate Amount `json:"rate,omitempty"`

	// direction is To (packets the target sends), From (packets it receives) or Both. Default Both.
	// +optional
	// +default="Both"
	// +kubebuilder:default=Both
	Direction NetworkDirection `json:"direction,omitempty"`
}

// Percentage is a part of a whole, such as 25% or 0.5%.
type Percentage string

// Number is the percentage without its sign, "0" where there is none.
func (p Percentage) Number() string {
	if p == "" {
		return "0"
	}
	return strings.TrimSuffix(string(p), "%")
}

// Amount is a quantity such as 10M or 256Mi: a string of bounded length, because the API server estimates the cost of
// rules from it.
type Amount string

// Value is the amount as a number, 0 where there is none or none can be read.
func (a Amount) Value() int64 {
	q, err := resource.ParseQuantity(string(a))
	if err != nil {
		return 0
	}
	return q.Value()
}

// NetworkDirection selects packets, as seen from the target.
//
// +kubebuilder:validation:Enum=To;From;Both
type NetworkDirection string

const (
	// DirectionTo is what the target sends to its peer.
	DirectionTo NetworkDirection = "To"
	// DirectionFrom is what it receives from there.
	DirectionFrom NetworkDirection = "From"
	// DirectionBoth is both.
	DirectionBoth NetworkDirection = "Both"
)

// ClockFault shifts clocks.
type ClockFault struct {
	// offset is added to the clock. -24h to 24h, not 0s.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('-24h') && duration(self) <= duration('24h') && duration(self) != duration('0s')",messageExpression="'%s is not an offset from -24h to 24h other than 0s; write it as 500ms or -10s'.format([self])"
	Offset metav1.Duration `json:"offset"`

	// clocks that are off: Realtime, Monotonic. Default: Realtime.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Clocks []DrillClock `json:"clocks,omitempty"`
}

// DrillClock names a clock of a process.
//
// +kubebuilder:validation:Enum=Realtime;Monotonic
type DrillClock string

const (
	// ClockRealtime is CLOCK_REALTIME: the time of day.
	ClockRealtime DrillClock = "Realtime"
	// ClockMonotonic is CLOCK_MONOTONIC, which leases and timeouts use.
	ClockMonotonic DrillClock = "Monotonic"
)

// StressFault describes the load on a pod.
type StressFault struct {
	// cpuWorkers is the number of busy threads. 1 to 256.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 256",messageExpression="'%s is out of range; allowed are 1 to 256'.format([self])"
	CPUWorkers *int32 `json:"cpuWorkers,omitempty"`

	// cpuLoad is the part of a CPU that each of them takes. Default 100%.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,3}([.][0-9]{1,3})?%$') && double(self.replace('%', '')) <= 100.0",messageExpression="self + ' is not a part from 0% to 100%; write it as 25% or 0.5%'"
	CPULoad Percentage `json:"cpuLoad,omitempty"`

	// memory that is taken beyond what the pod uses. At least 1Mi; beyond the limit of the pod the
	// kernel kills it.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).compareTo(quantity('1Mi')) >= 0",messageExpression="'%s is not an amount of at least 1Mi; write it as 256Mi'.format([self])"
	Memory Amount `json:"memory,omitempty"`
}

// IOFault disturbs calls on the files of the sink.
type IOFault struct {
	// path of the files below the sink's directory; * stands for anything. Default: all files.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..' || p == '.')",messageExpression="'%s is not a path below the sink\\'s directory; write it without a leading slash and without ..'.format([self])"
	Path string `json:"path,omitempty"`

	// delay of each call. 1ms to 1m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('1m')",messageExpression="'%s is not a duration from 1ms to 1m; write it as 20ms or 1.5s'.format([self])"
	Delay *metav1.Duration `json:"delay,omitempty"`

	// errno is the error each call returns, such as 5 (input/output error) or 28 (no space left). 1 to 133.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 133",messageExpression="'%s is out of range; allowed are 1 to 133'.format([self])"
	Errno *int32 `json:"errno,omitempty"`

	// percent is the part of the calls that is affected. Default 100%.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,3}([.][0-9]{1,3})?%$') && double(self.replace('%', '')) <= 100.0",messageExpression="self + ' is not a part from 0% to 100%; write it as 25% or 0.5%'"
	Percent Percentage `json:"percent,omitempty"`
}
