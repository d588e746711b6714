package desk

import (
	"strconv"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// MassCancelRejectReason (532).
const (
	massUnsupported = "0"
	massSymbol      = "1" // invalid or unknown security
	massOther       = "99"
)

// MassCancel implements fix.Application: the grid answers, and cancels at one place of the log.
func (d *Desk) MassCancel(s *fix.Session, r *fix.MassCancelRequest) *fix.Refusal {
	if x := s.Store().(*door); x.state == open && x.form < formMass {
		return &fix.Refusal{Business: true, Why: fix.NotAvailable, RefID: string(r.ClOrdID), Words: "The session began at a gateway of an older release",
			Allowed: "a mass cancel after a Logon with ResetSeqNumFlag=Y, or on the next day"}
	}
	return submit(s, 'q', r.Message)
}

// massCancelled makes the report of a mass cancel that the books took, or refuse. How many
// orders it cancelled is known unless it goes on in later entries.
func (x *former) massCancelled(v fix.Version, at place, f *order.FixReport, why match.Reason) fix.Sent {
	m := x.massReport(v, at)
	if m.OrderID = x.id; why == match.MassCancelling {
		m.Response = m.Kind
		if f.Value[0] == 1 {
			m.Total = strconv.AppendUint(nil, f.Value[1], 10)
		}
	} else {
		m.Reason, m.Text = massOther, why.String()
	}
	return x.massSent(at, &m)
}

// massRefused makes the report of a mass cancel that is refused without an execution.
func (x *former) massRefused(v fix.Version, at place, tag uint32, text string) fix.Sent {
	m := x.massReport(v, at)
	m.Text = text
	switch tag {
	case 35, 530:
		m.Reason = massUnsupported
	case 55:
		m.Reason = massSymbol
	default:
		m.Reason = massOther
	}
	return x.massSent(at, &m)
}

// massReport is what each report has of the request, refused.
func (x *former) massReport(v fix.Version, at place) fix.MassCancelReport {
	i := x.m.Instruction()
	m := fix.MassCancelReport{ClOrdID: i.ClOrdID, Symbol: i.Symbol, Side: i.Side, Response: '0', TransactNs: at.timeNs}
	if kind := x.m.Get(530); len(kind) == 1 {
		m.Kind = kind[0]
	}
	if v == fix.FIXT11 {
		m.ReportID = x.exec
	}
	return m
}

func (x *former) massSent(at place, m *fix.MassCancelReport) fix.Sent {
	x.body.Reset()
	x.body.MassCancelReport(m)
	return fix.Sent{TimeNs: at.timeNs, Type: "r", Body: x.body.Fields(), Kept: true, Refused: m.Response == '0'}
}
