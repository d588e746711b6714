package v1alpha1

// SiteRole is what a partition is in a pair of sites.
//
// +kubebuilder:validation:Enum=Active;Standby
type SiteRole string

const (
	// SiteActive makes its entries itself.
	SiteActive SiteRole = "Active"
	// SiteStandby gets its entries from another site.
	SiteStandby SiteRole = "Standby"
)

// PartitionSite is the part of a partition in a pair of sites, and what an administrator decided about it.
type PartitionSite struct {
	// role is what the first claim makes of the partition: Active, or Standby, which gets its entries from another site.
	// status.site has the present one. Default Active.
	// +optional
	// +default="Active"
	// +kubebuilder:default=Active
	Role SiteRole `json:"role,omitempty"`

	// source is the other site, its name and endpoints, for the error that clients get at a standby.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=120
	Source string `json:"source,omitempty"`

	// promote decides that a standby makes the entries. It counts while its term is above that of status.site.
	// +optional
	Promote *SitePromotion `json:"promote,omitempty"`

	// demote decides that an active site makes no more entries, so that the other one can be promoted without a loss.
	// +optional
	Demote *SiteDemotion `json:"demote,omitempty"`
}

// SitePromotionMode is how a standby is promoted.
//
// +kubebuilder:validation:Enum=Clean;Forced
type SitePromotionMode string

const (
	// PromoteClean waits for the last entry of the other site, which was demoted.
	PromoteClean SitePromotionMode = "Clean"
	// PromoteForced begins with what the standby has, in a new lineage.
	PromoteForced SitePromotionMode = "Forced"
)

// SitePromotion is a decision to promote a standby.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'Clean' || (!has(self.seq) && !has(self.hash))",message="Forced takes no token: remove seq and hash, or set mode to Clean"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Forced' || has(self.seq) == has(self.hash)",message="seq and hash are one token, the last entry of the demoted site: give both, or none if its log is empty"
type SitePromotion struct {
	// term of the site from then on, above those of both sites. It fences the other one.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Term int64 `json:"term"`

	// mode is Clean (the other site was demoted, and its last entry is waited for: nothing is lost) or Forced (what this
	// site lacks is lost).
	// +required
	Mode SitePromotionMode `json:"mode"`

	// seq is the number of the last entry of the demoted site.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Seq int64 `json:"seq,omitempty"`

	// hash of that entry, 16 lowercase hexadecimal digits.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{16}$`
	Hash string `json:"hash,omitempty"`
}

// SiteDemotion is a decision to demote an active site.
type SiteDemotion struct {
	// term in which the site is active: in any later one the decision has no effect.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Term int64 `json:"term"`
}

// PartitionSiteStatus is the part of a partition in a pair of sites. The grid nodes change it together with the epoch.
type PartitionSiteStatus struct {
	// role is Active or Standby.
	// +required
	Role SiteRole `json:"role"`

	// term rises when a standby is promoted, and when a site learns that the other one was. It never falls.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Term int64 `json:"term"`
}
