package limits

// Reason is why an operation was refused.
type Reason uint8

// Reasons, in the order in which they are looked for: the first that applies is given.
const (
	None Reason = iota
	UnknownParty
	TooManyMessages
	Killed
	Halted        // the algorithm, by its repeated executions
	NotAuthorised // the trader, or the client has no profile
	UnknownSymbol
	RestrictedSymbol
	BadField // side, kind
	BadQty   // not positive, or not above what is filled
	MaxVolume
	NoPrice // market order or collar without a price to go by
	PriceCollar
	Overflow // price x quantity x multiplier is above the largest int64
	MaxValue
	Duplicate
	ClientCredit
	TotalCredit
	BadID // 0, or in use
	Full  // no memory for another order
	UnknownOrder
	Beyond   // an execution of more than the order, or at a worse price than its limit
	Repeated // of Filled: applied, and the algorithm is halted from here on
	NoWho    // a change without an author
	BadChange
	NotOfficer // of the profile that halted the algorithm
	NotKilled
	AlreadyKilled
	NoCredit // to give
	BadGift  // not the next one of its partition
	reasons
)

// Reasons is how many there are, None included.
const Reasons = int(reasons)

var reasonText = [reasons]string{
	"none", "unknown party", "too many messages", "kill switch", "algorithm is halted after repeated executions",
	"person or client is not authorised", "unknown symbol", "symbol is restricted", "invalid field", "quantity is not positive, or not above what is filled",
	"quantity is above the limit", "no reference price or collar", "price is outside the collar", "value exceeds 63 bits",
	"value is above the limit", "duplicate of a recent order", "credit of the client", "credit in total", "order id is 0 or in use",
	"no memory for another order", "unknown order", "execution beyond the order", "repeated executions", "a change needs a person",
	"invalid change", "person may not enable the algorithm", "not killed", "already killed", "credit is in use or not here", "gift is not the next one",
}

func (r Reason) String() string {
	if r < reasons {
		return reasonText[r]
	}
	return "unknown reason"
}

var ruleNames = [reasons]string{
	TooManyMessages: "maxMessages", Killed: "killSwitch", Halted: "repeatedExecutions", NotAuthorised: "authorisedPersons",
	RestrictedSymbol: "restrictedSymbols", MaxVolume: "maxOrderVolume", NoPrice: "priceCollar", PriceCollar: "priceCollar",
	Overflow: "maxOrderValue", MaxValue: "maxOrderValue", Duplicate: "duplicateWindow", ClientCredit: "creditThreshold", TotalCredit: "creditThreshold",
	Full: "memory",
}

// Rule returns the name of the rule that refuses for a reason, as in a profile; "digits" for
// what no rule can be applied to.
func (r Reason) Rule() string {
	if r < reasons && ruleNames[r] != "" {
		return ruleNames[r]
	}
	return "digits"
}
