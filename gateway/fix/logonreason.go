package fix

import "errors"

// LogonReason is why a connection ended without a logon, for counters and conditions.
type LogonReason string

// Reasons of the session layer. An Authenticate function may have others, by LogonError.
const (
	LogonGarbled        LogonReason = "Garbled"        // what came is no FIX message
	LogonNotFirst       LogonReason = "NoLogon"        // the first message is not a Logon of a known version
	LogonUnknownSession LogonReason = "UnknownSession" // no session has these CompIDs
	LogonInUse          LogonReason = "InUse"          // the session has a connection
	LogonFields         LogonReason = "Fields"         // a field is missing or wrong
	LogonTime           LogonReason = "SendingTime"    // too far from the clock
	LogonCredentials    LogonReason = "Credentials"    // password, certificate or token
	LogonNotJudged      LogonReason = "NotJudged"      // who logs on was not found out, such as whose token it is
	LogonSequence       LogonReason = "Sequence"       // MsgSeqNum or NextExpectedMsgSeqNum
	LogonNoGrid         LogonReason = "NoGrid"         // the grid does not answer
	LogonTimeout        LogonReason = "Timeout"        // no Logon in time
	LogonClosed         LogonReason = "Closed"         // the other side left before a Logon, as health checks do
)

// LogonError is a refused logon. It is ErrLogon.
type LogonError struct {
	Reason LogonReason
	ID     ID // zero: no session is known by these CompIDs
	Err    error
}

func (e *LogonError) Error() string { return e.Err.Error() }

// Unwrap returns the cause, which has what was wrong and what is allowed.
func (e *LogonError) Unwrap() error { return e.Err }

// LogonFailure returns why a link ended without a logon: the error of Config.Event for a
// link without a session.
func LogonFailure(err error) (LogonReason, ID) {
	var refused *LogonError
	switch {
	case errors.As(err, &refused):
		return refused.Reason, refused.ID
	case errors.Is(err, ErrTimeout):
		return LogonTimeout, ID{}
	case errors.Is(err, ErrLogon):
		return LogonGarbled, ID{}
	}
	return LogonClosed, ID{}
}

// logonRefused gives an error its reason, unless it has one; s may be nil.
func logonRefused(s *Session, why LogonReason, err error) error {
	var has *LogonError
	if !errors.As(err, &has) {
		has = &LogonError{Reason: why, Err: err}
		err = has
	}
	if s != nil {
		has.ID = s.profile.ID
	}
	return err
}
