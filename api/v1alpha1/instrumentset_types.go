package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InstrumentSetSpec is what is traded.
type InstrumentSetSpec struct {
	// instruments are what is traded, 1 to 1024. More can be added at any time; one that is there never changes, because
	// the books of the grids that trade it were made for it.
	// +required
	// +listType=map
	// +listMapKey=symbol
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:XValidation:rule="size(self) >= size(oldSelf)",messageExpression="'%d instruments where there were %d: a grid that was given an instrument has its book in its log, for good; keep it (kubectl ordergrid market GRID SYMBOL halt ends its trading), or delete this InstrumentSet if no grid uses it'.format([size(self), size(oldSelf)])"
	Instruments []Instrument `json:"instruments"`

	// calendar tells which state the books of all instruments are to be in at which time of the day. Default: books stay as
	// they are until kubectl ordergrid market changes them. One that is taken out ends with the phase that books are in.
	// +optional
	Calendar *TradingCalendar `json:"calendar,omitempty"`
}

// TradingCalendar is the phases of a day of trading.
type TradingCalendar struct {
	// timeZone is the IANA name of the time zone of phases and days, such as Europe/Zurich. Default UTC. One that is not in the
	// database is not given to the nodes, and condition CalendarFollowed has the reason CalendarInvalid.
	// +optional
	// +default="UTC"
	// +kubebuilder:default="UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",messageExpression="self + ' is not the name of a time zone; write it as UTC or Europe/Zurich'"
	TimeZone string `json:"timeZone,omitempty"`

	// days are the days of the week that have phases. Default: Monday to Friday.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	Days []Weekday `json:"days,omitempty"`

	// holidays are dates without phases, such as 2026-12-25, at most 366. Books stay on them as the day before left them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=366
	// +kubebuilder:validation:items:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="self.all(d, d.matches('^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$'))",messageExpression="'%s is not a date; write it as 2026-12-25'.format([self.filter(d, !d.matches('^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$'))[0]])"
	Holidays []string `json:"holidays,omitempty"`

	// phases are what happens on such a day, 1 to 16, each at a time of its own. The order of the list means nothing.
	// +required
	// +listType=map
	// +listMapKey=at
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Phases []TradingPhase `json:"phases"`
}

// TradingPhase is the state of all books from a time of the day on.
type TradingPhase struct {
	// at is when it begins, such as 09:00.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",messageExpression="self + ' is not a time of day from 00:00 to 23:59; write it as 09:00'"
	At string `json:"at"`

	// state that books are in: Call collects orders for an auction, Open trades continuously, Closed accepts cancels only. The
	// phase behind a Call begins with its auction.
	// +required
	State InstrumentState `json:"state"`
}

// Instrument is what a book trades. Numbers are decimal text, such as "0.05".
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'%s is changed; a book is made for one tick, lot and band, and grids that have it would not follow; put it back as it was, and list what is to be traded otherwise under another symbol'.format([self.symbol])"
type Instrument struct {
	// symbol is Symbol(55) of its orders: 1 to 64 printable characters.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]([ -~]*[!-~])?$') && !self.contains('=')",messageExpression="'%s is no symbol; use printable ASCII characters but for =, and no blank at the ends'.format([self])"
	Symbol string `json:"symbol"`

	// tick is the price increment. Prices may have as many digits behind the point as it has.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,15}([.][0-9]{1,12})?$') && self.matches('[1-9]')",messageExpression="'%s is no price increment; write a positive decimal number, such as \"0.01\"'.format([self])"
	Tick string `json:"tick"`

	// lot is the quantity increment. Default 1. Quantities may have as many digits behind the point as it has.
	// +optional
	// +default="1"
	// +kubebuilder:default="1"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,15}([.][0-9]{1,12})?$') && self.matches('[1-9]')",messageExpression="'%s is no quantity increment; write a positive decimal number, such as \"1\"'.format([self])"
	Lot string `json:"lot,omitempty"`

	// band has all prices that the instrument can ever have: multiples of tick, at most 4194304 of them. Negative ones are
	// allowed.
	// +required
	Band InstrumentBand `json:"band"`

	// reference is the price that an auction before the first trade goes by: a multiple of tick in the band. Default: the
	// lowest.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?[0-9]{1,15}([.][0-9]{1,12})?$')",messageExpression="'%s is no price; write a decimal number, such as \"125.50\"'.format([self])"
	Reference string `json:"reference,omitempty"`

	// state that its book begins in: Open (default: continuous trading), Call (orders are collected for an auction) or Closed
	// (only cancels are accepted). kubectl ordergrid market changes it later.
	// +optional
	// +default="Open"
	// +kubebuilder:default=Open
	State InstrumentState `json:"state,omitempty"`
}

// InstrumentBand is the lowest and the highest price of an instrument.
type InstrumentBand struct {
	// low is the lowest price.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?[0-9]{1,15}([.][0-9]{1,12})?$')",messageExpression="'%s is no price; write a decimal number, such as \"0\"'.format([self])"
	Low string `json:"low"`

	// high is the highest price.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^-?[0-9]{1,15}([.][0-9]{1,12})?$')",messageExpression="'%s is no price; write a decimal number, such as \"1000\"'.format([self])"
	High string `json:"high"`
}

// InstrumentState is the state that a book begins in.
//
// +kubebuilder:validation:Enum=Open;Call;Closed
type InstrumentState string

const (
	// InstrumentOpen trades continuously.
	InstrumentOpen InstrumentState = "Open"
	// InstrumentCall collects orders for an auction.
	InstrumentCall InstrumentState = "Call"
	// InstrumentClosed accepts cancels only.
	InstrumentClosed InstrumentState = "Closed"
)

// InstrumentSet lists what OrderGrids with spec.execution.mode Match trade. It is configuration and has no status: condition
// InstrumentsLoaded of each OrderGrid that names it shows whether its nodes trade what it lists.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ogi,categories=ordergrid-all
// +kubebuilder:printcolumn:name="Symbols",type=string,JSONPath=".spec.instruments[*].symbol"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type InstrumentSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is traded.
	// +required
	Spec InstrumentSetSpec `json:"spec"`
}

// InstrumentSetList is a list of InstrumentSets.
//
// +kubebuilder:object:root=true
type InstrumentSetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InstrumentSet `json:"items"`
}
