package v1alpha1

// OrderArrival describes how orders arrive: a union discriminated by type.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'Hawkes' || !has(self.hawkes)",messageExpression="'hawkes is for type Hawkes, and type is %s; remove arrival.hawkes, or set type: Hawkes'.format([self.type])"
// +kubebuilder:validation:XValidation:rule="self.type == 'Replay' || !has(self.replay)",messageExpression="'replay is for type Replay, and type is %s; remove arrival.replay, or set type: Replay'.format([self.type])"
// +kubebuilder:validation:XValidation:rule="self.type != 'Replay' || has(self.replay)",message="type Replay needs arrival.replay with the recording to play, such as replay: {format: Lobster, source: {configMap: {name: recording, key: message.csv}}}"
// +union
type OrderArrival struct {
	// type is Steady (evenly spaced, as in the published tests), Hawkes (self-exciting bursts), Day (a trading day
	// compressed to the measured time) or Replay (as in a recording).
	// +unionDiscriminator
	// +required
	Type ArrivalType `json:"type"`

	// hawkes describes the bursts of type Hawkes.
	// +optional
	Hawkes *HawkesArrival `json:"hawkes,omitempty"`

	// replay describes the recording of type Replay.
	// +optional
	Replay *ReplayArrival `json:"replay,omitempty"`

	// seed of all random choices: the same seed gives the same orders. 1 to 9007199254740991. Default: 1.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 9007199254740991",messageExpression="'%s is out of range; allowed are 1 to 9007199254740991'.format([self])"
	Seed *int64 `json:"seed,omitempty"`
}

// ArrivalType names how orders arrive.
//
// +kubebuilder:validation:Enum=Steady;Hawkes;Day;Replay
type ArrivalType string

const (
	// ArrivalSteady is evenly spaced orders.
	ArrivalSteady ArrivalType = "Steady"
	// ArrivalHawkes is a self-exciting process, fitted to a public record of order events.
	ArrivalHawkes ArrivalType = "Hawkes"
	// ArrivalDay is the curve of a trading day: opening, lull, close.
	ArrivalDay ArrivalType = "Day"
	// ArrivalReplay plays a recording.
	ArrivalReplay ArrivalType = "Replay"
)

// HawkesArrival describes bursts.
type HawkesArrival struct {
	// branchingPercent is how many of 100 orders are triggered by an earlier one. 10 to 99. Default: 95, as fitted.
	// +optional
	// +default=95
	// +kubebuilder:default=95
	// +kubebuilder:validation:XValidation:rule="self >= 10 && self <= 99",messageExpression="'%s is out of range; allowed are 10 to 99'.format([self])"
	BranchingPercent *int32 `json:"branchingPercent,omitempty"`
}

// ReplayArrival describes a recording and how it is played.
type ReplayArrival struct {
	// source is where the recording is.
	// +required
	Source ReplaySource `json:"source"`

	// format is Lobster (a LOBSTER message file: time,type,order id,size,price,direction) or FIX (lines of FIX messages,
	// fields ended by SOH or '|').
	// +required
	Format ReplayFormat `json:"format"`

	// speeds are how many times as fast as recorded it is played, one step after the other. 1 to 8 each.
	// Default: the scenario's; 1 in a published one.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(s, s >= 1 && s <= 8)",messageExpression="'%s is out of range; allowed are 1 to 8 times the recorded speed'.format([self.filter(s, s < 1 || s > 8)])"
	Speeds []int32 `json:"speeds,omitempty"`

	// maxMessages is how many messages are read from the recording, at most. 1 to 5000000. Default: 100000.
	// +optional
	// +default=100000
	// +kubebuilder:default=100000
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 5000000",messageExpression="'%s is out of range; allowed are 1 to 5000000'.format([self])"
	MaxMessages *int32 `json:"maxMessages,omitempty"`
}

// ReplayFormat names a kind of recording.
//
// +kubebuilder:validation:Enum=Lobster;FIX
type ReplayFormat string

const (
	// ReplayLobster is a LOBSTER message file.
	ReplayLobster ReplayFormat = "Lobster"
	// ReplayFIX is a log of FIX messages.
	ReplayFIX ReplayFormat = "FIX"
)

// ReplaySource is where a recording is: exactly one of its members.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.volumeClaim)",message="name exactly one of configMap and volumeClaim"
type ReplaySource struct {
	// configMap in the namespace of the OrderProbe; it holds at most 1 MiB.
	// +optional
	ConfigMap *ReplayConfigMap `json:"configMap,omitempty"`

	// volumeClaim in the namespace of the OrderProbe, mounted for reading by every probe pod.
	// +optional
	VolumeClaim *ReplayVolumeClaim `json:"volumeClaim,omitempty"`
}

// ReplayConfigMap is a key of a ConfigMap.
type ReplayConfigMap struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key whose value is the recording.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",messageExpression="'%s is not a key of a ConfigMap; use letters, digits, hyphens, underscores and dots'.format([self])"
	Key string `json:"key"`
}

// ReplayVolumeClaim is a file on a volume.
type ReplayVolumeClaim struct {
	// claimName of the PersistentVolumeClaim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`

	// path of the recording on the volume, without a leading slash.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/\\\\x00]+(/[^/\\\\x00]+)*$') && !self.split('/').exists(p, p == '..' || p == '.')",messageExpression="'%s is not a path on the volume; write it as file.csv or folder/file.csv, without a leading slash and without ..'.format([self])"
	Path string `json:"path"`
}

// OrderKind selects the orders that are sent.
//
// +kubebuilder:validation:Enum=Uniform;Varied
type OrderKind string

const (
	// OrdersUniform is the 305-byte order of the published tests, repeated.
	OrdersUniform OrderKind = "Uniform"
	// OrdersVaried is new orders, cancels and replaces of many symbols, sizes and prices.
	OrdersVaried OrderKind = "Varied"
)
