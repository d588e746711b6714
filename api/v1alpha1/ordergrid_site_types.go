package v1alpha1

// GridSiteSpec is the part of a grid in a pair of sites, fixed when it is created. docs/multi-site.md has the steps.
//
// +kubebuilder:validation:XValidation:fieldPath=".source",rule="!has(self.source) || !self.source.matches('[[:cntrl:]]')",message="has control characters, and stands in the error that clients get; write the name and endpoints of the other site, such as site a, orders.a.example.com:7400"
type GridSiteSpec struct {
	// role is what the partitions of the grid begin as: Active, or Standby, which hold the log of a grid in another site and
	// take no orders. It never changes; status.site has the present one, which promotions and demotions change.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'%s differs from %s, which the partitions began as; keep it. kubectl ordergrid promote and demote change the role of a running grid'.format([self, oldSelf])"
	Role SiteRole `json:"role"`

	// source is the other site, its name and endpoints, for the error that clients get at a standby.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=120
	Source string `json:"source,omitempty"`
}

// GridSiteRole is what a grid is in a pair of sites at present.
//
// +kubebuilder:validation:Enum=Active;Standby;Mixed
type GridSiteRole string

const (
	// GridSiteActive makes the entries of all its partitions.
	GridSiteActive GridSiteRole = "Active"
	// GridSiteStandby makes those of none.
	GridSiteStandby GridSiteRole = "Standby"
	// GridSiteMixed makes those of some: partitions are being promoted or demoted, or the sites mirror each other.
	GridSiteMixed GridSiteRole = "Mixed"
)

// GridSiteStatus is what the partitions' records have of a pair of sites.
type GridSiteStatus struct {
	// role is Active, Standby, or Mixed where it is not that of all partitions.
	// +required
	Role GridSiteRole `json:"role"`

	// standbys is the number of partitions that get their entries from another site.
	// +required
	// +kubebuilder:validation:Minimum=0
	Standbys int32 `json:"standbys"`

	// term is the highest of the partitions' terms.
	// +required
	// +kubebuilder:validation:Minimum=0
	Term int64 `json:"term"`
}
