package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Errors to compare with errors.Is. The types below carry the details.
var (
	// ErrUnknownOutcome: the order was sent and not answered. It may or may not
	// have been accepted; GetByClOrdID answers once a primary serves again.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrNotSent: no byte of the order left this process, and none will.
	ErrNotSent = errors.New("not sent")
	// ErrWindowFull: SubmitAsync or TrySubmit found as many orders unanswered
	// as the session may have. Nothing was sent.
	ErrWindowFull = errors.New("window full")
	// ErrClosed: the client or session was closed.
	ErrClosed = errors.New("closed")
	// ErrSessionEvicted comes with ErrUnknownOutcome: the grid has forgotten the
	// session, so a retry could not be recognised and was not made.
	ErrSessionEvicted = errors.New("session evicted by the grid")
	// ErrNotFound: no committed order has the id asked for.
	ErrNotFound = errors.New("order not found")
	// ErrFreed: the order is not held any more, or may be one of those that are not:
	// every sink of the grid holds them. The error is a *FreedError.
	ErrFreed = errors.New("order freed")
	// ErrOtherOrder: the id is that of another order now. The error is an *OtherOrderError.
	ErrOtherOrder = errors.New("another order has the id")
	// ErrUnavailable: no node answered a read or a dial in time.
	ErrUnavailable = errors.New("unavailable")
	// ErrProtocol: the peer sent what the protocol does not allow.
	ErrProtocol = errors.New("protocol violation")
	// ErrUnauthenticated: the grid requires the client's identity, and the proof was missing or not
	// accepted: see Config.TLS and Config.Token.
	ErrUnauthenticated = errors.New("unauthenticated")
)

// One error per reject code, for errors.Is on a *RejectError.
var (
	ErrBadFIX             = errors.New("malformed FIX message")
	ErrDuplicateClOrdID   = errors.New("duplicate ClOrdID")
	ErrCapacity           = errors.New("memory limit reached")
	ErrOverloaded         = errors.New("overloaded")
	ErrSessionUnknown     = errors.New("session unknown")
	ErrSessionWindow      = errors.New("outside the session's window")
	ErrSequenceGap        = errors.New("gap in client sequence numbers")
	ErrDraining           = errors.New("node is draining")
	ErrInsufficientInSync = errors.New("too few in-sync copies")
	ErrTooLarge           = errors.New("message too large")
	ErrUnsupported        = errors.New("unsupported request")
	ErrSnapshotRequired   = errors.New("entries are freed")
	ErrSessionMoved       = errors.New("session is open on another connection")
	ErrSinkUnreadable     = errors.New("sink cannot be read")
	ErrNotPermitted       = errors.New("not permitted")
	ErrReaderUnknown      = errors.New("no outside reader has the name")
	ErrDiverged           = errors.New("another history")
	ErrReaderAhead        = errors.New("not committed there yet")
	ErrStandby            = errors.New("partition is a standby of another site")
	ErrNotStandby         = errors.New("partition is not a standby")
	ErrFenced             = errors.New("site was replaced by another")
	ErrFunctionRefused    = errors.New("a function of the grid refuses the order")
	ErrRegionUnknown      = errors.New("no region has the name")
	ErrFunctionAwaited    = errors.New("the primary has not the function yet")
	ErrFunctionUnknown    = errors.New("no function of kind Compute has the name")
	ErrFunctionFailed     = errors.New("the function has no result")
	ErrMapBound           = errors.New("a Map needs more than a bound of the node")
	ErrConditionFailed    = errors.New("the value is not the one required")
	ErrLimitRefused       = errors.New("a limit refuses the order")
	ErrVersionAwaited     = errors.New("a copy of the partition does not know the FIX version yet")
)

var codeErrors = map[wire.Code]error{
	wire.CodeBadFIX: ErrBadFIX, wire.CodeDuplicateClOrdID: ErrDuplicateClOrdID, wire.CodeCapacity: ErrCapacity,
	wire.CodeOverloaded: ErrOverloaded, wire.CodeSessionUnknown: ErrSessionUnknown, wire.CodeSessionWindow: ErrSessionWindow,
	wire.CodeSequenceGap: ErrSequenceGap, wire.CodeDraining: ErrDraining, wire.CodeInsufficientInSync: ErrInsufficientInSync,
	wire.CodeTooLarge: ErrTooLarge, wire.CodeUnsupported: ErrUnsupported, wire.CodeSessionMoved: ErrSessionMoved,
	wire.CodeSnapshotRequired: ErrSnapshotRequired, wire.CodeSinkUnreadable: ErrSinkUnreadable,
	wire.CodeNotPermitted: ErrNotPermitted, wire.CodeReaderUnknown: ErrReaderUnknown, wire.CodeDiverged: ErrDiverged,
	wire.CodeReaderAhead: ErrReaderAhead, wire.CodeStandby: ErrStandby, wire.CodeNotStandby: ErrNotStandby, wire.CodeFenced: ErrFenced,
	wire.CodeFunctionRefused: ErrFunctionRefused,
	wire.CodeFunctionAwaited: ErrFunctionAwaited,
	wire.CodeFunctionUnknown: ErrFunctionUnknown, wire.CodeFunctionFailed: ErrFunctionFailed, wire.CodeMapBound: ErrMapBound,
	wire.CodeRegionUnknown: ErrRegionUnknown, wire.CodeConditionFailed: ErrConditionFailed,
	wire.CodeLimitRefused: ErrLimitRefused, wire.CodeVersionAwaited: ErrVersionAwaited,
}

// RejectError is a refusal. Returned by a Submit method it means that the order was not accepted
// and took no sequence number; as the cause of an UnknownOutcomeError, that a copy was refused by a
// node that had not checked whether an earlier one was accepted. errors.Is matches it with the Err
// value of its code.
type RejectError struct {
	Partition wire.PartitionID
	Code      wire.Code
	Tag       uint32 // FIX tag at fault, 0 if none
	Detail    uint64 // meaning depends on Code, see package wire
	Limit     uint64 // what is allowed, in the unit of Detail; 0 if the code has no limit
	Text      string // the node's words
	from      string // its address, where that matters
}

func (e *RejectError) Error() string {
	s := fmt.Sprintf("%s: refused (%s)", e.Partition, e.Code)
	if e.Tag != 0 {
		s += fmt.Sprintf(", tag %d", e.Tag)
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	if hint := rejectHints[e.Code]; hint != "" {
		s += "; " + hint
	}
	return s
}

// rejectHints says what to do; the node's text says what happened.
var rejectHints = map[wire.Code]string{
	wire.CodeBadFIX:             "correct the message; the same bytes are refused again",
	wire.CodeDuplicateClOrdID:   "use a new ClOrdID, or read the order that has it with GetByClOrdID",
	wire.CodeOverloaded:         "submit again, slower",
	wire.CodeInsufficientInSync: "submit again once a backup has joined, or lower minInSync",
	wire.CodeTooLarge:           "send fewer bytes",
	wire.CodeSnapshotRequired:   "read from the entry after them; the sink has the freed ones",
	wire.CodeNotPermitted:       "ask for a rule in spec.security.authorization.rules of the OrderGrid",
	wire.CodeVersionAwaited:     "submit again when all nodes of the grid are updated; nothing was stored",
	wire.CodeFunctionUnknown:    "status.functions of the OrderGrid has those that its pods are given",
	wire.CodeStandby:            "connect to the other site, or promote this one if that is lost",
	wire.CodeUnsupported:        "use a client and a node of neighbouring releases",
}

// As converts a refusal for lack of memory to *CapacityError.
func (e *RejectError) As(target any) bool {
	full, ok := target.(**CapacityError)
	if !ok || e.Code != wire.CodeCapacity {
		return false
	}
	*full = &CapacityError{Partition: e.Partition, Used: e.Detail, Limit: e.Limit, reject: e}
	return true
}

// FreedError means that a partition does not hold the order asked for and that it may have held it:
// by an order's id it did, by a ClOrdID that is no longer known.
type FreedError struct {
	Partition wire.PartitionID
	Freed     uint64 // last sequence number that is freed
	What      string // what was asked for
}

func freedError(p wire.PartitionID, request *wire.Get, freed uint64) error {
	what := fmt.Sprintf("order %d", request.Seq)
	if request.By == wire.ByClOrdID {
		what = fmt.Sprintf("ClOrdID %.80q", request.Key)
	}
	if request.By == wire.ByFix {
		what = fmt.Sprintf("ClOrdID %.80q of a FIX session", request.Key[fixKeyFixed:])
	}
	return &FreedError{Partition: p, Freed: freed, What: what}
}

func (e *FreedError) Error() string {
	return fmt.Sprintf("%s: %s is not held: entries up to %d of %s are freed, every sink of the grid holds them", e.Partition, e.What, e.Freed, e.Partition)
}

// Is matches ErrFreed.
func (e *FreedError) Is(target error) bool { return target == ErrFreed }

// OtherOrderError means that the id asked for with Of or OfEpoch is that of another order now.
type OtherOrderError struct {
	ID      wire.OrderID
	Epoch   uint64 // asked for
	Hash    uint64 // asked for, 0: any
	Found   string // name of the order that has the id
	Lineage uint32 // of the partition at present
}

func (e *OtherOrderError) Error() string {
	return fmt.Sprintf("client: order %s is not held: another order, %s, has the id. The partition is of lineage %d: the loss of data was accepted since, the grid was made again under its name, or its record went back in time. "+
		"Look for the order's ClOrdID (GetByClOrdID, kubectl ordergrid get GRID CLORDID), and for its line in the files of a sink that were set aside", named(e.ID, e.Epoch, e.Hash), e.Found, e.Lineage)
}

// Is matches ErrOtherOrder.
func (e *OtherOrderError) Is(target error) bool { return target == ErrOtherOrder }

// CapacityError reports how full a grid is that refused an order for lack of memory. errors.As
// finds it in what Submit returns.
type CapacityError struct {
	Partition wire.PartitionID
	Used      uint64 // bytes that orders take on the primary's node, all its partitions together
	Limit     uint64 // bytes they may take there
	reject    *RejectError
}

func (e *CapacityError) Error() string { return e.reject.Error() }

// Unwrap is the refusal.
func (e *CapacityError) Unwrap() error { return e.reject }

// Is matches the Err value of the code.
func (e *RejectError) Is(target error) bool { return codeErrors[e.Code] == target }

// UnknownOutcomeError means that an order was sent but its answer never came.
// The session does not send the order again after this error; what was sent
// before may still be accepted.
type UnknownOutcomeError struct {
	Partition wire.PartitionID
	ClientSeq uint64        // number of the order in its session
	Waited    time.Duration // since Submit was called
	Cause     error         // why waiting ended: a context error, a timeout, ErrSessionEvicted, ErrClosed …
}

func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("%s: outcome unknown after %s: order %d of the session was sent and its fate was not answered (%v); it may or may not have been accepted, ask GetByClOrdID before submitting it again",
		e.Partition, e.Waited.Round(time.Microsecond), e.ClientSeq, e.Cause)
}

// Is matches ErrUnknownOutcome.
func (e *UnknownOutcomeError) Is(target error) bool { return target == ErrUnknownOutcome }

// Unwrap is the cause.
func (e *UnknownOutcomeError) Unwrap() error { return e.Cause }

// NotSentError means that an order never left the process, and never will.
type NotSentError struct {
	Partition wire.PartitionID
	Waited    time.Duration
	Cause     error
}

func (e *NotSentError) Error() string {
	return fmt.Sprintf("%s: not sent after %s (%v); it was not accepted and can be submitted again",
		e.Partition, e.Waited.Round(time.Microsecond), e.Cause)
}

// Is matches ErrNotSent.
func (e *NotSentError) Is(target error) bool { return target == ErrNotSent }

// Unwrap is the cause.
func (e *NotSentError) Unwrap() error { return e.Cause }

// ProtocolError means that a peer broke the protocol. The connection it came
// over was closed; orders in flight on it are retried on a new one.
type ProtocolError struct {
	Address string // of the peer
	What    string // field, value and what is allowed
	Cause   error  // the decoder's error, if there is one
}

func (e *ProtocolError) Error() string {
	s := "protocol violation by " + e.Address + ": " + e.What
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Is matches ErrProtocol.
func (e *ProtocolError) Is(target error) bool { return target == ErrProtocol }

// Unwrap is the decoder's error.
func (e *ProtocolError) Unwrap() error { return e.Cause }

// OldNodeError is a request that a node does not know: it is of a release before. It was not sent. Update the nodes first.
type OldNodeError struct {
	Address string
	Frame   wire.Type // of the request
}

func (e *OldNodeError) Error() string {
	return fmt.Sprintf("%s does not know the request %s: it is of a release before; update the nodes first", e.Address, e.Frame)
}

// GoawayError is a node's reason for closing the connection.
type GoawayError struct {
	Address string
	Code    uint16 // wire.Goaway*
	Text    string
}

func (e *GoawayError) Error() string {
	return fmt.Sprintf("%s closed the connection (goaway %d): %s", e.Address, e.Code, e.Text)
}

// permanent reports whether trying the same node again cannot help.
func (e *GoawayError) permanent() bool {
	switch e.Code {
	case wire.GoawayVersion, wire.GoawayGrid, wire.GoawayRole, wire.GoawayUnauthenticated, wire.GoawayNotPermitted:
		return true
	}
	return false
}

// Is matches ErrUnauthenticated and ErrNotPermitted.
func (e *GoawayError) Is(target error) bool {
	return e.Code == wire.GoawayUnauthenticated && target == ErrUnauthenticated || e.Code == wire.GoawayNotPermitted && target == ErrNotPermitted
}

// notPrimaryError carries the hint of a NotPrimary frame to the retrying caller.
type notPrimaryError struct {
	partition wire.PartitionID
	address   string // of the node that answered
	epoch     uint64
	hint      string // address of the primary, empty if that node knows none
}

func (e *notPrimaryError) Error() string {
	if e.hint == "" {
		return fmt.Sprintf("%s: %s is not the primary at epoch %d and knows none", e.partition, e.address, e.epoch)
	}
	return fmt.Sprintf("%s: %s is not the primary at epoch %d, %s is", e.partition, e.address, e.epoch, e.hint)
}

// timeoutError is the cause when Config.RequestTimeout ran out. It also carries the last failure,
// because that is what the operator has to fix.
type timeoutError struct {
	limit time.Duration
	last  error
}

func (e *timeoutError) Error() string {
	if e.last == nil {
		return fmt.Sprintf("deadline of %s passed", e.limit)
	}
	return fmt.Sprintf("deadline of %s passed; last failure: %v", e.limit, e.last)
}

// Is matches context.DeadlineExceeded, also when RequestTimeout set the deadline.
func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout makes it a net.Error-like timeout.
func (e *timeoutError) Timeout() bool { return true }

// Unwrap is the last failure.
func (e *timeoutError) Unwrap() error { return e.last }

// Temporary completes net.Error; a retry with the same deadline may succeed.
func (e *timeoutError) Temporary() bool { return true }

// causes are several errors on one line.
type causes []error

// join is errors.Join on one line, nil if all are nil.
func join(errs ...error) error {
	var out causes
	for _, err := range errs {
		if err != nil {
			out = append(out, err)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (c causes) Error() string {
	text := make([]string, 0, len(c))
	for _, err := range c {
		text = append(text, err.Error())
	}
	return strings.Join(text, "; ")
}

// Unwrap is for errors.Is and errors.As.
func (c causes) Unwrap() []error { return c }
