package v1alpha1

// ExecutionSpec is what the grid does with orders beside keeping them. docs/exchange.md has how it matches.
//
// +kubebuilder:validation:XValidation:fieldPath=".instrumentsFrom",rule="self.?mode.orValue('Store') != 'Match' || has(self.instrumentsFrom)",message="mode is Match, and nothing says what is traded; set instrumentsFrom.name to an InstrumentSet of this namespace"
// +kubebuilder:validation:XValidation:fieldPath=".instrumentsFrom",rule="self.?mode.orValue('Store') == 'Match' || !has(self.instrumentsFrom)",message="mode is Store, and a grid that stores orders has no instruments; remove instrumentsFrom, or set mode to Match"
// +kubebuilder:validation:XValidation:fieldPath=".selfTrade",rule="self.?mode.orValue('Store') == 'Match' || !has(self.selfTrade)",message="mode is Store, and nothing trades in it; remove selfTrade, or set mode to Match"
type ExecutionSpec struct {
	// mode is Store (default: orders are stored) or Match: each copy of a partition also matches them by price and time, and
	// nothing is reported before all copies in sync have computed the same executions. Orders of a grid that matches are
	// spread over its partitions by their symbol. It never changes.
	// +optional
	// +default="Store"
	// +kubebuilder:default=Store
	Mode ExecutionMode `json:"mode,omitempty"`

	// instrumentsFrom names what is traded; required with mode Match.
	// +optional
	InstrumentsFrom *InstrumentsReference `json:"instrumentsFrom,omitempty"`

	// selfTrade is which orders never trade with each other in continuous trading: ByGroup (those with the same
	// SelfMatchPreventionID, tag 2362; what mode Match does if this is left out) or BySession (those of one session as well,
	// if they have no tag 2362).
	// +optional
	SelfTrade SelfTradePolicy `json:"selfTrade,omitempty"`
}

// ExecutionMode is what a grid does with orders.
//
// +kubebuilder:validation:Enum=Store;Match
type ExecutionMode string

const (
	// ExecutionStore stores orders.
	ExecutionStore ExecutionMode = "Store"
	// ExecutionMatch stores and matches them.
	ExecutionMatch ExecutionMode = "Match"
)

// SelfTradePolicy is which orders do not trade with each other.
//
// +kubebuilder:validation:Enum=ByGroup;BySession
type SelfTradePolicy string

const (
	// SelfTradeByGroup goes by tag 2362.
	SelfTradeByGroup SelfTradePolicy = "ByGroup"
	// SelfTradeBySession also keeps orders of one session apart.
	SelfTradeBySession SelfTradePolicy = "BySession"
)

// InstrumentsReference names an InstrumentSet of the grid's namespace.
type InstrumentsReference struct {
	// name of the InstrumentSet. Instruments that it is given later are traded while the grid runs.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Matches reports whether the grid matches orders.
func (s *OrderGridSpec) Matches() bool {
	return s.Execution != nil && s.Execution.Mode == ExecutionMatch
}
