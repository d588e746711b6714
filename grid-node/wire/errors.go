package wire

import (
	"fmt"
	"strconv"
)

// FrameError names the invalid field of a frame. A node answers it with Goaway and closes
// the connection: the stream cannot be decoded further.
type FrameError struct {
	Type    Type   // 0 when the type is not known yet
	Field   string // field name as in docs/protocol.md
	Value   uint64 // what was read
	Allowed string // what is valid
}

func (e *FrameError) Error() string {
	if e.Type == 0 {
		return fmt.Sprintf("frame: %s is %d, allowed: %s", e.Field, e.Value, e.Allowed)
	}
	return fmt.Sprintf("frame %s: %s is %d, allowed: %s", e.Type, e.Field, e.Value, e.Allowed)
}

func sizeText(n int, exact bool) string {
	if exact {
		return "exactly " + strconv.Itoa(n) + " bytes"
	}
	return "at least " + strconv.Itoa(n) + " bytes"
}

// Code is why a request was rejected (Reject.Code).
type Code uint16

// Reject codes. "Retry" means: the same clientSeq may be sent again and can still succeed;
// nothing was applied.
//
// A node answers a Submit with SessionUnknown, SessionWindow, SessionMoved, Unsupported,
// NotPermitted or Standby without knowing whether another copy of the order was applied. Any other
// code is given after the session check: no copy was applied. A new code that is given
// before the session check must be added to client.decides.
const (
	CodeBadFIX             Code = 1  // the message is not a valid order; Tag is the field. Final.
	CodeDuplicateClOrdID   Code = 2  // another order of this partition has the ClOrdID; Detail is its seq. Final.
	CodeCapacity           Code = 3  // the memory limit is reached; Detail is the bytes used, Limit those allowed. Retry later.
	CodeOverloaded         Code = 4  // a queue is full. Retry at once, slower.
	CodeSessionUnknown     Code = 5  // no such session (evicted, or another lineage). Open a new one.
	CodeSessionWindow      Code = 6  // clientSeq is older than the replies kept; Detail is the lowest one kept.
	CodeSequenceGap        Code = 7  // clientSeq skips; Detail is the clientSeq expected. Send that one first.
	CodeDraining           Code = 8  // the node is stopping. Retry, elsewhere after the next NotPrimary.
	CodeInsufficientInSync Code = 9  // fewer in-sync copies than minInSync; Detail is how many there are. Retry later.
	CodeTooLarge           Code = 10 // the order is longer than the limit; Detail is the limit in bytes. Final.
	CodeUnsupported        Code = 11 // the request is not known to this version, or not served by this node. Other copies of the order may have been applied.
	CodeSessionMoved       Code = 12 // the session was opened on another connection since, or not on this one since this primary took over; Detail is the highest attempt seen. Open it again with a higher one.
	CodeSnapshotRequired   Code = 13 // the entries asked for are freed; Detail is the last one that is. Continue after it, freed entries are downstream.
	CodeSinkUnreadable     Code = 14 // the node has no file sink, no such file, or cannot read it.
	CodeNotPermitted       Code = 15 // the client lacks the permission that the request requires, the text names both. Final for this copy of an order, other copies may have been applied.

	// 16 meant in versions before 4 that the partition takes no new orders. It is not
	// reused.

	CodeReaderUnknown Code = 17 // the grid's configuration has no outside reader of that name.
	CodeDiverged      Code = 18 // what the reader holds is not in the log; Detail is the hash of the log's entry. Final.
	CodeReaderAhead   Code = 19 // the reader holds an entry that is not committed here; Detail is the last one that is. Retry later.
	CodeStandby       Code = 20 // the partition is a standby of another site, the text names it. Other copies of the order may have been applied.
	CodeNotStandby    Code = 21 // the partition takes no entries of another site; Detail is the term of its own.
	CodeFenced        Code = 22 // the site that sends was replaced; Detail is the term that is in force.

	CodeFunctionRefused Code = 23 // a function of the grid refuses the order; Detail is its OrdRejReason (103), the text its own. Final.

	CodeLimitRefused Code = 24 // a limit refuses the order; Detail is its OrdRejReason (103), the text names the rule, the value and the limit. Final.

	CodeFunctionAwaited Code = 25 // the node has no function of kind Compute with that name, and another copy of the partition has it, or has not said yet: pods are being replaced. Retry later.

	CodeRegionUnknown   Code = 26 // the partition has no region of that name. Final.
	CodeConditionFailed Code = 27 // the value is not the one required, or there is none; Detail is its version, 0 for none. Final.

	CodeMapBound Code = 28 // a Map needs more than a bound of the node: Detail is what it had, Limit the bound, the text names it. Final.

	CodeUnknownInstrument Code = 30 // the partition has no book of that symbol. Final.

	CodeVersionAwaited Code = 32 // the order is of a FIX version that a copy of the partition does not know, or has not said yet that it knows: nodes are being replaced. Tag is 8. Retry later.

	CodeFunctionUnknown Code = 33 // no copy of the partition has a function of kind Compute with that name. Final.
	CodeFunctionFailed  Code = 34 // the function has no result, nothing was applied; Detail is the error that it returned, 0 for a fault, the text says which. Final.

	lastCode = CodeFunctionFailed
)

var codeNames = [...]string{1: "BadFIX", 2: "DuplicateClOrdID", 3: "Capacity", 4: "Overloaded", 5: "SessionUnknown",
	6: "SessionWindow", 7: "SequenceGap", 8: "Draining", 9: "InsufficientInSync", 10: "TooLarge", 11: "Unsupported", 12: "SessionMoved", 13: "SnapshotRequired", 14: "SinkUnreadable", 15: "NotPermitted",
	17: "ReaderUnknown", 18: "Diverged", 19: "ReaderAhead", 20: "Standby", 21: "NotStandby", 22: "Fenced",
	23: "FunctionRefused", 24: "LimitRefused", 25: "FunctionAwaited", 26: "RegionUnknown", 27: "ConditionFailed", 28: "MapBound", 30: "UnknownInstrument",
	32: "VersionAwaited", 33: "FunctionUnknown", 34: "FunctionFailed"}

// String returns the name docs/protocol.md uses.
func (c Code) String() string {
	if int(c) < len(codeNames) && codeNames[c] != "" {
		return codeNames[c]
	}
	return "Code" + strconv.Itoa(int(c))
}

// Goaway codes.
const (
	GoawayProtocol uint16 = 1 // a frame could not be decoded
	GoawayVersion  uint16 = 2 // no common protocol version
	GoawayGrid     uint16 = 3 // the Hello names another grid
	GoawayDraining uint16 = 4 // the node is stopping
	GoawayLimit    uint16 = 5 // too many connections
	GoawayRole     uint16 = 6 // a frame that this role may not send
	GoawayTLS      uint16 = 7 // the port requires TLS and got none, or vice versa

	GoawayUnauthenticated uint16 = 8  // the client is not authenticated: no certificate and no token in time, or an invalid token
	GoawayNotPermitted    uint16 = 9  // the client is known and has no permission on this grid
	GoawayAuthRetry       uint16 = 10 // a token cannot be reviewed now, or has expired: reconnect, with the present one
)

// JoinReply codes.
const (
	JoinAccepted   uint16 = 0 // Prepare frames from FromSeq follow; the state before it is requested by SnapshotRequest
	JoinNotPrimary uint16 = 1 // ask the primary of the epoch given
	JoinBusy       uint16 = 2 // another learner is being served; retry later
	JoinDiverged   uint16 = 3 // the learner's log is not a prefix: discard it and join empty
	JoinTruncated  uint16 = 4 // the log no longer reaches back to the learner: discard it and join empty, a snapshot is sent then
	JoinReleased   uint16 = 5 // a learner that is about to stop is no longer needed: it may exit
)
