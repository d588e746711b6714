package sink

import (
	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/match"
)

// ExecutionText is what targets write of an execution, beside its names: fields are empty, or 0, where it has none.
type ExecutionText struct {
	Side                                string // FIX tag 54
	Price, Quantity, Leaves, Cumulative string // decimal numbers
	Reason                              string // of a rejection or cancel
	// Other is the entry of the other order of a trade, or of the one that replaced the order.
	Other uint64
}

// TextOf returns the text of an execution.
func TextOf(e *client.Executed) (t ExecutionText) {
	filled := e.Kind == client.ExecFilled
	if e.Side != 0 {
		t.Side = string(rune('0' + e.Side))
	}
	if filled || e.Price != 0 {
		t.Price = client.Decimal(e.Price, e.PriceDigits)
	}
	if filled || e.Qty != 0 {
		t.Quantity = client.Decimal(e.Qty, e.QtyDigits)
	}
	if filled || e.Leaves != 0 || e.Cum != 0 {
		t.Leaves, t.Cumulative = client.Decimal(e.Leaves, e.QtyDigits), client.Decimal(e.Cum, e.QtyDigits)
	}
	if e.Reason != 0 {
		t.Reason = match.Reason(e.Reason).String()
	}
	if filled || e.Kind == client.ExecReplaced {
		t.Other = e.Other
	}
	return t
}
