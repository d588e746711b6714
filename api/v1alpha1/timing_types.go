package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TimingSpec are the intervals of failure detection. Durations are written as in "20ms" or "1.5s".
//
// +kubebuilder:validation:XValidation:fieldPath=".lease",rule="!(self.lease.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && self.grace.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$')) || duration(self.lease) < duration(self.grace)",messageExpression="'%s is not shorter than spec.timing.grace %s, so a backup could take over while the old primary still believes in its lease; make lease shorter or grace longer'.format([self.lease, self.grace])"
// +kubebuilder:validation:XValidation:fieldPath=".beaconInterval",rule="!(self.beaconInterval.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && self.lease.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$')) || duration(self.beaconInterval) + duration(self.beaconInterval) + duration(self.beaconInterval) <= duration(self.lease)",messageExpression="'%s fits less than three times into spec.timing.lease %s, so one lost beacon would cost a copy; make beaconInterval shorter or lease longer'.format([self.beaconInterval, self.lease])"
type TimingSpec struct {
	// beaconInterval is the heartbeat interval between primary and backups. 1ms to 1s; default 20ms.
	// +optional
	// +default="20ms"
	// +kubebuilder:default="20ms"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('1s')",messageExpression="'%s is not a duration from 1ms to 1s; write it as 20ms or 1.5s'.format([self])"
	BeaconInterval metav1.Duration `json:"beaconInterval,omitempty,omitzero"`

	// lease is how long a primary waits for a backup's answer before it drops the backup, and how long it may
	// answer leased reads. At least three beacon intervals, at most 10s; default 200ms.
	// +optional
	// +default="200ms"
	// +kubebuilder:default="200ms"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('3ms') && duration(self) <= duration('10s')",messageExpression="'%s is not a duration from 3ms to 10s; write it as 20ms or 1.5s'.format([self])"
	Lease metav1.Duration `json:"lease,omitempty,omitzero"`

	// grace is how long a backup waits for a silent primary before it takes over. Longer than lease, at most 30s; default 300ms.
	// +optional
	// +default="300ms"
	// +kubebuilder:default="300ms"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('4ms') && duration(self) <= duration('30s')",messageExpression="'%s is not a duration from 4ms to 30s; write it as 20ms or 1.5s'.format([self])"
	Grace metav1.Duration `json:"grace,omitempty,omitzero"`

	// claimDelay is how long a pod waits for the preferred pod to claim a partition that never had a primary.
	// 1s to 10m; default 10s.
	// +optional
	// +default="10s"
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('10m')",messageExpression="'%s is not a duration from 1s to 10m; write it as 20ms or 1.5s'.format([self])"
	ClaimDelay metav1.Duration `json:"claimDelay,omitempty,omitzero"`

	// handOverDelay is how long the preferred pod must be in sync before the present primary hands over
	// to it. 100ms to 10m; default 5s.
	// +optional
	// +default="5s"
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('10m')",messageExpression="'%s is not a duration from 100ms to 10m; write it as 20ms or 1.5s'.format([self])"
	HandOverDelay metav1.Duration `json:"handOverDelay,omitempty,omitzero"`

	// drainTimeout is how long a stopping pod takes at most to finish accepted orders and hand its partitions
	// over. 1s to 10m; default 20s.
	// +optional
	// +default="20s"
	// +kubebuilder:default="20s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('10m')",messageExpression="'%s is not a duration from 1s to 10m; write it as 20ms or 1.5s'.format([self])"
	DrainTimeout metav1.Duration `json:"drainTimeout,omitempty,omitzero"`
}
