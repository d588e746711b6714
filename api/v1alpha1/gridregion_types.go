package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RegionsSpec is the regions of a grid: keyed objects beside orders, docs/regions.md.
type RegionsSpec struct {
	// memory of each grid node for regions, beside spec.memory: half for their present state and half for the one behind the
	// freed log, an equal part of it for each of spec.partitions. At least 128Ki for each of those, at most spec.memory, default
	// 256Mi.
	// +optional
	// +kubebuilder:default="256Mi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('128Ki')) >= 0",messageExpression="'%s is too little for regions, or no amount; give at least 128Ki for each of spec.partitions'.format([self])"
	Memory resource.Quantity `json:"memory,omitempty,omitzero"`

	// gridRegions names the GridRegions of the namespace that the grid has. One that is added is there without new pods. The
	// entries of one that is taken out stay, with the bounds that they had. At most 64.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	GridRegions []RegionReference `json:"gridRegions,omitempty"`
}

// RegionReference names a GridRegion of the namespace.
type RegionReference struct {
	// name of the GridRegion. Its changes take effect while the grid runs.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Names returns the GridRegions that are named. s may be nil.
func (s *RegionsSpec) Names() (names []string) {
	if s == nil {
		return nil
	}
	for i := range s.GridRegions {
		names = append(names, s.GridRegions[i].Name)
	}
	return names
}

// GridRegionSpec is a region and its bounds.
type GridRegionSpec struct {
	// region is its name in the grid, by which clients ask for it: 1 to 48 lowercase letters, digits and underscores, a letter
	// first. It never changes. Default: metadata.name.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]{0,47}$')",messageExpression="'%s is no name of a region; use 1 to 48 lowercase letters, digits and underscores, a letter first'.format([self])"
	Region string `json:"region,omitempty"`

	// maxBytes is what its entries may take on a copy of all partitions together, in blocks of 128 bytes; a put beyond it is
	// refused. At least 4Ki. Default: what spec.regions.memory of the grid leaves.
	// +optional
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('4Ki')) >= 0 && quantity(string(self)).compareTo(quantity('1Ti')) <= 0",messageExpression="'%s is no bound of a region; give 4Ki to 1Ti, or leave it out'.format([self])"
	MaxBytes *resource.Quantity `json:"maxBytes,omitempty"`

	// life is how long a value lives whose put names no other time. 1ms to 87600h. Default: for ever. A change is for values that
	// are put later.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('87600h')",messageExpression="'%s is not a duration from 1ms to 87600h; write it as 30s or 10m'.format([self])"
	Life *metav1.Duration `json:"life,omitempty"`
}

// GridRegionStatus is what the operator found out about the region.
type GridRegionStatus struct {
	// observedGeneration is the generation of spec this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// entries of the region in all those grids, to two significant digits in each.
	// +optional
	Entries int64 `json:"entries,omitempty"`

	// bytes that they take on a copy of each partition.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// conditions are Valid, InUse and AcceptsWrites.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// grids are the OrderGrids that name the region. At most 64 of them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Grids []RegionGrid `json:"grids,omitempty"`
}

// RegionGrid is an OrderGrid that names a region.
type RegionGrid struct {
	// name of the OrderGrid.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// regionsLoaded is the status of condition RegionsLoaded of the grid, which is about all regions that it names;
	// Unknown while it has none of its present spec.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	RegionsLoaded metav1.ConditionStatus `json:"regionsLoaded"`

	// entries that the grid has of the region, to two significant digits.
	// +optional
	Entries int64 `json:"entries,omitempty"`

	// bytes that they take on a copy of each partition, to two significant digits.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// writes is Refused while the grid refuses a change of the region, Taken while it does not, and Unknown otherwise.
	// +optional
	Writes RegionWrites `json:"writes,omitempty"`
}

// GridRegion is a region of the OrderGrids that name it in spec.regions: a map of keys to values. Each of those grids has
// entries of its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ogreg,categories=ordergrid-all
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=".spec.region"
// +kubebuilder:printcolumn:name="MaxBytes",type=string,JSONPath=".spec.maxBytes"
// +kubebuilder:printcolumn:name="Life",type=string,JSONPath=".spec.life"
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=".status.conditions[?(@.type=='Valid')].status"
// +kubebuilder:printcolumn:name="Entries",type=integer,JSONPath=".status.entries"
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=".status.bytes"
// +kubebuilder:printcolumn:name="Writes",type=string,JSONPath=".status.conditions[?(@.type=='AcceptsWrites')].status"
// +kubebuilder:printcolumn:name="Grids",type=string,JSONPath=".status.grids[*].name"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Valid')].message"
// +kubebuilder:validation:XValidation:rule="has(self.spec.region) || self.metadata.name.matches('^[a-z][a-z0-9]{0,47}$')",messageExpression="'metadata.name: %s is no name of a region, and spec.region is not set; set spec.region to 1 to 48 lowercase letters, digits and underscores, a letter first'.format([self.metadata.name])"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.region) ? self.spec.region : self.metadata.name) == (has(oldSelf.spec.region) ? oldSelf.spec.region : oldSelf.metadata.name)",messageExpression="'spec.region: %s differs from %s, which the logs of grids know; put it back, or create another GridRegion'.format([has(self.spec.region) ? self.spec.region : self.metadata.name, has(oldSelf.spec.region) ? oldSelf.spec.region : oldSelf.metadata.name])"
type GridRegion struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the region and its bounds.
	// +required
	Spec GridRegionSpec `json:"spec"`

	// status is what the operator found out.
	// +optional
	Status GridRegionStatus `json:"status,omitzero"`
}

// RegionName returns the name of the region in grids.
func (g *GridRegion) RegionName() string {
	if g.Spec.Region != "" {
		return g.Spec.Region
	}
	return g.Name
}

// GridRegionList is a list of GridRegions.
//
// +kubebuilder:object:root=true
type GridRegionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GridRegion `json:"items"`
}
