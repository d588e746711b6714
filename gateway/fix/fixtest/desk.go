// Package fixtest has what tests and measurements of FIX sessions share.
package fixtest

import "github.com/ordergrid/ordergrid/gateway/fix"

// Desk is an application that reports each order as new, at once, and answers nothing else.
type Desk struct{}

// LoggedOn implements fix.Application.
func (Desk) LoggedOn(*fix.Session) {}

// LoggedOut implements fix.Application.
func (Desk) LoggedOut(*fix.Session, error) {}

// Takes implements fix.Application.
func (Desk) Takes([]byte) bool { return false }

// NewOrder implements fix.Application.
func (Desk) NewOrder(s *fix.Session, o *fix.NewOrderSingle) *fix.Refusal {
	now := o.Message.Now()
	s.Report(now, &fix.ExecutionReport{
		ReportedOrder: fix.ReportedOrder{OrderID: o.ClOrdID, ClOrdID: o.ClOrdID, Symbol: o.Symbol, Side: o.Side},
		ExecID:        o.ClOrdID, ExecType: '0', OrdStatus: '0', OrderQty: o.OrderQty, LeavesQty: o.OrderQty, TransactNs: now.Wall,
	})
	return nil
}

// Cancel implements fix.Application.
func (Desk) Cancel(*fix.Session, *fix.CancelRequest) *fix.Refusal { return nil }

// Replace implements fix.Application.
func (Desk) Replace(*fix.Session, *fix.ReplaceRequest) *fix.Refusal { return nil }

// Status implements fix.Application.
func (Desk) Status(*fix.Session, *fix.StatusRequest) *fix.Refusal { return nil }

// MassCancel implements fix.Application.
func (Desk) MassCancel(*fix.Session, *fix.MassCancelRequest) *fix.Refusal { return nil }

// Other implements fix.Application.
func (Desk) Other(*fix.Session, *fix.Message) *fix.Refusal { return nil }
