// Package desk submits the orders of FIX sessions to a grid, and reports what came of
// them once that is replicated.
//
// The numbers of the sessions are in this process. When it ends, the sessions have to be
// reset by their counterparties (ResetSeqNumFlag), and an order whose report had not left
// may be in the grid. ADR 44 says how that changes.
package desk

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix"
)

// Config of a Desk. Client and Post are required.
type Config struct {
	Client *client.Client
	// Post runs a function on the goroutine of the sessions: acceptor.Server.Post.
	Post func(func(now fix.Now)) bool
	// MaxInFlight bounds the orders of a session that the grid has not answered; default
	// 512. More are refused.
	MaxInFlight int
	// Answered is called for each message that the grid was given, on the goroutine of the
	// sessions, when its report has been handed to the session; may be nil. took is the time
	// since the message was read, in nanoseconds.
	Answered func(msgType byte, fate client.Fate, took int64)
	Logger   *slog.Logger
}

// Desk is an application of FIX sessions.
type Desk struct {
	cfg      Config
	grid     []*client.Session // by partition
	inFlight map[*fix.Session]int
	under    int // orders under way, of all sessions
}

// New connects to every partition of the grid.
func New(cfg Config) (*Desk, error) {
	if cfg.Client == nil || cfg.Post == nil {
		return nil, errors.New("desk: Config.Client or Config.Post is nil, allowed: both set")
	}
	if cfg.MaxInFlight < 0 {
		return nil, fmt.Errorf("desk: Config.MaxInFlight is %d, allowed: 1 or more, or 0 for 512", cfg.MaxInFlight)
	}
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = 512
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Desk{cfg: cfg, inFlight: map[*fix.Session]int{}}
	for _, p := range cfg.Client.Table() {
		s, err := cfg.Client.Session(p.ID)
		if err != nil {
			return nil, fmt.Errorf("desk: session on %s: %w", p.ID, err)
		}
		d.grid = append(d.grid, s)
	}
	return d, nil
}

// request is a message that the grid has not answered.
type request struct {
	s              *fix.Session
	kind           byte // D, F, G
	order          fix.ReportedOrder
	qty, price     []byte
	ordType        byte
	timeInForce    byte
	receipt        client.Receipt
	err            error
	transactTimeNs int64
	readAt         int64 // Mono
}

// submit sends a message to its partition as it came. What comes back is handled on the
// sessions' goroutine.
func (d *Desk) submit(r *request, m *fix.Message) *fix.Refusal {
	if d.inFlight[r.s] >= d.cfg.MaxInFlight {
		return &fix.Refusal{Business: true, Why: fix.NotAvailable, RefID: string(r.order.ClOrdID),
			Words: fmt.Sprintf("too many orders under way: %d; allowed: %d; send again when others are answered", d.inFlight[r.s], d.cfg.MaxInFlight)}
	}
	p := d.cfg.Client.RouteClOrdID(r.order.ClOrdID)
	r.transactTimeNs, r.readAt = m.Now().Wall, m.Now().Mono
	err := d.grid[p].SubmitAsync(m.Raw(), func(receipt client.Receipt, err error) {
		r.receipt, r.err = receipt, err
		d.cfg.Post(func(now fix.Now) {
			d.under--
			if d.inFlight[r.s]--; d.inFlight[r.s] == 0 {
				delete(d.inFlight, r.s)
			}
			d.answer(now, r)
		})
	})
	if err != nil { // then the callback does not run
		r.err = err
		d.answer(m.Now(), r)
		return nil //nolint:nilerr // it is answered by a report
	}
	d.inFlight[r.s]++
	d.under++
	return nil
}

// InFlight returns how many messages the grid has not answered; of all sessions for nil.
// On the goroutine of the sessions only.
func (d *Desk) InFlight(s *fix.Session) int {
	if s == nil {
		return d.under
	}
	return d.inFlight[s]
}

// answer reports what came of a request. An outcome that is not known is not reported as
// one: the session ends, and the counterparty has to ask.
func (d *Desk) answer(now fix.Now, r *request) {
	fate := client.FateOf(r.err)
	if d.cfg.Answered != nil {
		defer func() { d.cfg.Answered(r.kind, fate, now.Mono-r.readAt) }()
	}
	switch fate {
	case client.FateAccepted:
		d.accepted(now, r)
	case client.FateRefused:
		d.refused(now, r)
	default:
		d.cfg.Logger.Error("outcome of an order is unknown", "session", r.s.ID().String(), "clOrdID", string(r.order.ClOrdID), "error", r.err)
		r.s.Logout(now, fmt.Sprintf("the outcome of ClOrdID %s is unknown: %v", r.order.ClOrdID, r.err))
	}
}

// accepted reports that a message is in the log of the grid: an order as New, a cancel or
// replace as pending, since the grid does not execute.
func (d *Desk) accepted(now fix.Now, r *request) {
	state := byte('0')
	switch r.kind {
	case 'F':
		state = '6'
	case 'G':
		state = 'E'
	}
	id := r.receipt.ID().String()
	r.order.OrderID = fmt.Appendf(nil, "%s@%d", id, r.receipt.Epoch)
	r.s.Report(now, &fix.ExecutionReport{
		ReportedOrder: r.order, ExecID: append([]byte(id), ".1"...), ExecType: state, OrdStatus: state,
		OrderQty: r.qty, LeavesQty: r.qty, Price: r.price, OrdType: r.ordType, TimeInForce: r.timeInForce, TransactNs: r.transactTimeNs,
	})
}

// refused reports that a message is not in the log, and will not be.
func (d *Desk) refused(now fix.Now, r *request) {
	text := r.err.Error()
	if r.kind != 'D' {
		r.s.RejectCancel(now, &fix.CancelReject{ReportedOrder: r.order, OrdStatus: '8', ToReplace: r.kind == 'G', Reason: '2', Text: text, TransactNs: now.Wall})
		return
	}
	reason := byte('0')
	if errors.Is(r.err, client.ErrDuplicateClOrdID) {
		reason = '6'
	}
	r.order.OrderID = []byte("NONE")
	r.s.Report(now, &fix.ExecutionReport{
		ReportedOrder: r.order, ExecID: strconv.AppendInt([]byte("r"), now.Wall, 10), ExecType: '8', OrdStatus: '8',
		OrderQty: r.qty, Price: r.price, OrdType: r.ordType, TimeInForce: r.timeInForce, RejectCode: reason, Text: text, TransactNs: now.Wall,
	})
}

// reported copies what reports say of an order.
func reported(i *fix.Instruction, orig []byte) fix.ReportedOrder {
	return fix.ReportedOrder{ClOrdID: bytes.Clone(i.ClOrdID), OrigClOrdID: bytes.Clone(orig), Account: bytes.Clone(i.Account), Symbol: bytes.Clone(i.Symbol), Side: i.Side}
}

// NewOrder implements fix.Application.
func (d *Desk) NewOrder(s *fix.Session, o *fix.NewOrderSingle) *fix.Refusal {
	return d.submit(&request{s: s, kind: 'D', order: reported(&o.Instruction, nil), qty: bytes.Clone(o.OrderQty), price: bytes.Clone(o.Price), ordType: o.OrdType, timeInForce: o.TimeInForce}, o.Message)
}

// Cancel implements fix.Application.
func (d *Desk) Cancel(s *fix.Session, c *fix.CancelRequest) *fix.Refusal {
	return d.submit(&request{s: s, kind: 'F', order: reported(&c.Instruction, c.OrigClOrdID)}, c.Message)
}

// Replace implements fix.Application.
func (d *Desk) Replace(s *fix.Session, r *fix.ReplaceRequest) *fix.Refusal {
	return d.submit(&request{s: s, kind: 'G', order: reported(&r.Instruction, r.OrigClOrdID), qty: bytes.Clone(r.OrderQty), price: bytes.Clone(r.Price), ordType: r.OrdType, timeInForce: r.TimeInForce}, r.Message)
}

// LoggedOn implements fix.Application.
func (d *Desk) LoggedOn(s *fix.Session) { d.cfg.Logger.Info("logged on", "session", s.ID().String()) }

// LoggedOut implements fix.Application.
func (d *Desk) LoggedOut(s *fix.Session, why error) {
	d.cfg.Logger.Info("logged out", "session", s.ID().String(), "reason", why.Error())
}

// Takes implements fix.Application.
func (d *Desk) Takes([]byte) bool { return false }

// Status implements fix.Application: not built.
func (d *Desk) Status(*fix.Session, *fix.StatusRequest) *fix.Refusal { return notTaken }

// MassCancel implements fix.Application: the grid does not execute.
func (d *Desk) MassCancel(*fix.Session, *fix.MassCancelRequest) *fix.Refusal { return notTaken }

// Other implements fix.Application.
func (d *Desk) Other(*fix.Session, *fix.Message) *fix.Refusal { return notTaken }

var notTaken = &fix.Refusal{Business: true, Why: fix.UnsupportedType, Words: "Unsupported Message Type; allowed: D, F, G"}
