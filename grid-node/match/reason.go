package match

// Reason is why an order was rejected or cancelled.
type Reason uint8

// Reasons.
const (
	None Reason = iota
	Requested
	BadID       // 0
	DuplicateID // of an order in the book
	UnknownInstrument
	UnknownOrder   // none in the book with this id and owner
	BadField       // side, type, time in force, or a combination that there is not
	BadQty         // not a positive multiple of the lot
	QtyTooLarge    // more than MaxLots
	BadDisplay     // not a multiple of the lot up to the quantity
	OutsideBand    // price
	OffTick        // price
	Overflow       // price x quantity is above the largest int64
	NotInState     // the state of the book does not allow it
	WouldCross     // post-only
	TriggerPassed  // a stop that the last trade has reached
	QtyFilled      // replace to no more than is filled
	Full           // no memory for another order or page
	Unfilled       // the rest of an IOC or market order, or a FOK
	SelfMatch      // of the same group
	WorkLimit      // more counterparties than one operation may visit
	MassCancelling // a mass cancel includes the order
	Busy           // too many mass cancels are pending, or one is before an auction
	Expired        // a halt reached its end
	Killed         // the kill switch includes the order
	Disconnected   // the connection of its owner has ended, for longer than the grace
	Reasons        // how many there are
)

var reasonText = [Reasons]string{
	"none", "requested", "order id is 0, allowed: any other", "order id is in use", "unknown instrument", "unknown order",
	"invalid field or combination", "quantity is not a positive multiple of the lot", "quantity is above 4294967295 lots",
	"display quantity is not a multiple of the lot up to the quantity", "price is outside the price band",
	"price is not a multiple of the tick", "price x quantity exceeds 63 bits", "not allowed in this state of the book",
	"post-only order would trade", "stop price is reached already", "quantity is not above what is filled",
	"no memory for another order", "unfilled", "self-match prevention", "more counterparties than an operation may visit",
	"mass cancel", "too many mass cancels are pending", "halt ended", "kill switch", "cancel on disconnect",
}

func (r Reason) String() string {
	if r < Reasons {
		return reasonText[r]
	}
	return "unknown reason"
}
