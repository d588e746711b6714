package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// JournalSpec is the volume that each grid node keeps its journal on, a PersistentVolumeClaim per pod.
type JournalSpec struct {
	// size of the volume of each pod. 15/16 of it is for journals; when 7/8 of that is used new orders are refused. Give
	// spec.memory and a third, and 128Mi for each partition of a shard. At least 512Mi.
	// +required
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",messageExpression="'%s is not an amount; write it as 2Gi or 20Gi'.format([self])"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('512Mi')) >= 0",messageExpression="'%s is too little: a grid node needs 256Mi for journals, and the file system some of the volume; give at least 512Mi'.format([self])"
	Size resource.Quantity `json:"size"`

	// storageClassName of the claims: of disks whose fsync is fast and tells the truth. Default: the cluster's default class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// MaxBytes is what the journals of a grid node may take of its volume; the file system has the rest.
func (j *JournalSpec) MaxBytes() int64 {
	size := j.Size.Value()
	return size - size/16
}
