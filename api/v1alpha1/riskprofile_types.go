package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RiskProfileSpec is what is checked before an order becomes an entry: docs/limits.md. What is left out is no limit; an empty
// spec lifts all. Prices, quantities and values are decimal text.
type RiskProfileSpec struct {
	// priceDigits is how many digits behind the point a price may have. Default 4. In a grid that matches it never changes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8
	PriceDigits *int32 `json:"priceDigits,omitempty"`

	// quantityDigits is the same of quantities. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8
	QuantityDigits *int32 `json:"quantityDigits,omitempty"`

	// traderTag is the FIX tag that has the trader, such as 50 (SenderSubID). Default: none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TraderTag *int32 `json:"traderTag,omitempty"`

	// deskTag is the FIX tag that has the desk. Default: none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	DeskTag *int32 `json:"deskTag,omitempty"`

	// algorithmTag is the FIX tag that has the algorithm. Default: none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	AlgorithmTag *int32 `json:"algorithmTag,omitempty"`

	// maxOrderVolume is the largest quantity of an order.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,18}([.][0-9]{1,16})?$') && self.matches('[1-9]')",messageExpression="'%s is no volume; write a positive decimal number, such as \"10000\"'.format([self])"
	MaxOrderVolume string `json:"maxOrderVolume,omitempty"`

	// maxOrderValue is the largest price x quantity of an order.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,18}([.][0-9]{1,16})?$') && self.matches('[1-9]')",messageExpression="'%s is no value; write a positive decimal number, such as \"1000000\"'.format([self])"
	MaxOrderValue string `json:"maxOrderValue,omitempty"`

	// priceCollar bounds how far a price may be from the reference price or from that of the last trade.
	// +optional
	PriceCollar *RiskCollar `json:"priceCollar,omitempty"`

	// maxMessages bounds the messages of each session.
	// +optional
	MaxMessages *RiskMessages `json:"maxMessages,omitempty"`

	// duplicateWindow is for how long an equal order of the same party is refused. 1ms to 24h, in whole milliseconds.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('24h')",messageExpression="'%s is not a duration from 1ms to 24h; write it as 500ms or 1s'.format([self])"
	DuplicateWindow *metav1.Duration `json:"duplicateWindow,omitempty"`

	// repeatedExecutions halts an algorithm after so many executions; in a grid that matches.
	// +optional
	RepeatedExecutions *RiskRepeatedExecutions `json:"repeatedExecutions,omitempty"`

	// creditThreshold bounds what orders and executions of a day use in each partition; in a grid that matches.
	// +optional
	CreditThreshold *RiskCredit `json:"creditThreshold,omitempty"`

	// referencePrices are what priceCollar.referenceBps goes by, at most 2048.
	// +optional
	// +listType=map
	// +listMapKey=symbol
	// +kubebuilder:validation:MaxItems=2048
	ReferencePrices []RiskReferencePrice `json:"referencePrices,omitempty"`

	// restrictedSymbols may not be traded, at most 2048.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2048
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	RestrictedSymbols []string `json:"restrictedSymbols,omitempty"`

	// authorisedPersons are the traders who may enter orders, at most 2048. Default: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2048
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	AuthorisedPersons []string `json:"authorisedPersons,omitempty"`
}

// RiskCollar is in hundredths of a percent.
type RiskCollar struct {
	// referenceBps is the distance from the reference price; symbols without one are refused. Default: no such collar.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	ReferenceBps *int32 `json:"referenceBps,omitempty"`

	// lastBps is the distance from the price of the last trade; in a grid that matches. Default: no such collar.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	LastBps *int32 `json:"lastBps,omitempty"`

	// least is the distance that is allowed in any case.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,18}([.][0-9]{1,16})?$') && self.matches('[1-9]')",messageExpression="'%s is no distance; write a positive decimal number, such as \"0.05\"'.format([self])"
	Least string `json:"least,omitempty"`
}

// RiskMessages bounds messages of a session.
//
// +kubebuilder:validation:XValidation:fieldPath=".reserve",rule="!has(self.reserve) || self.reserve < (has(self.burst) ? self.burst : self.perSecond)",message="cancels alone would use all messages that may come at once; make reserve less than burst, which is perSecond if it is left out"
type RiskMessages struct {
	// perSecond is the rate.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	PerSecond int32 `json:"perSecond"`

	// burst is how many may come at once. Default: perSecond.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	Burst *int32 `json:"burst,omitempty"`

	// reserve is the part of burst that cancels alone may use. Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Reserve *int32 `json:"reserve,omitempty"`
}

// RiskRepeatedExecutions halts an algorithm.
type RiskRepeatedExecutions struct {
	// count of executions after which it is halted, until kubectl ordergrid unkill enables it.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`

	// window that they are counted in. 1ms to 24h, in whole milliseconds. Default: since it was enabled.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(us|ms|s|m|h))+$') && duration(self) >= duration('1ms') && duration(self) <= duration('24h')",messageExpression="'%s is not a duration from 1ms to 24h; write it as 500ms or 1m'.format([self])"
	Window *metav1.Duration `json:"window,omitempty"`
}

// RiskCredit bounds use of credit in each partition.
type RiskCredit struct {
	// total is that of all clients together. Default: no bound.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,18}([.][0-9]{1,16})?$')",messageExpression="'%s is no amount; write a decimal number, such as \"1000000\"'.format([self])"
	Total string `json:"total,omitempty"`

	// default is that of a client who is not in clients. Default: no bound.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,18}([.][0-9]{1,16})?$')",messageExpression="'%s is no amount; write a decimal number, such as \"1000000\"'.format([self])"
	Default string `json:"default,omitempty"`

	// clients have a credit of their own, at most 2048.
	// +optional
	// +listType=map
	// +listMapKey=client
	// +kubebuilder:validation:MaxItems=2048
	Clients []RiskClient `json:"clients,omitempty"`
}

// RiskClient is the credit of one client.
type RiskClient struct {
	// client is the Account (1) of its orders.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Client string `json:"client"`

	// amount that it may use; "0" is none.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{1,18}([.][0-9]{1,16})?$`
	Amount string `json:"amount"`
}

// RiskReferencePrice is the reference price of a symbol.
type RiskReferencePrice struct {
	// symbol is Symbol (55) of its orders.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Symbol string `json:"symbol"`

	// price is a positive number.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9]{1,18}([.][0-9]{1,8})?$`
	Price string `json:"price"`
}

// RiskProfile has the limits of the OrderGrids that name it in spec.riskProfile. It is configuration and has no status:
// condition LimitsLoaded of each such OrderGrid shows whether they are in force.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ogr,categories=ordergrid-all
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=".spec.maxOrderVolume"
// +kubebuilder:printcolumn:name="Value",type=string,JSONPath=".spec.maxOrderValue"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type RiskProfile struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the limits. An empty one lifts all.
	// +required
	Spec RiskProfileSpec `json:"spec"`
}

// RiskProfileList is a list of RiskProfiles.
//
// +kubebuilder:object:root=true
type RiskProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RiskProfile `json:"items"`
}

// RiskProfileReference names a RiskProfile of the grid's namespace.
type RiskProfileReference struct {
	// name of the RiskProfile. Its changes take effect while the grid runs.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}
