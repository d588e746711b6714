package tlsrecord

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// Alerts of RFC 8446, section 6.
const (
	alertClose      = 0
	alertUnexpected = 10
	alertBadMAC     = 20
	alertOverflow   = 22
	alertIllegal    = 47
	alertDecode     = 50
	alertCanceled   = 90

	alertWarning = 1
	alertFatal   = 2
)

// ErrRecord says that what arrived is no record of the peer's, or not the next of them. The
// connection is of no use any more.
var ErrRecord = errors.New("TLS record")

// recordError is ErrRecord with its reason and the alert that tells it to the peer.
type recordError struct {
	alert tls.AlertError
	why   string
}

func (e *recordError) Error() string { return ErrRecord.Error() + ": " + e.why }

// Is matches ErrRecord.
func (e *recordError) Is(target error) bool { return target == ErrRecord }

// AlertError is an alert of the peer that is no end in order.
type AlertError struct{ Alert tls.AlertError }

func (e *AlertError) Error() string { return "remote error: " + e.Alert.Error() }

// Unwrap is the alert.
func (e *AlertError) Unwrap() error { return e.Alert }

// alertOf is the error of a record with an alert; nil of user_canceled, which comes before
// close_notify. The level is not looked at, as RFC 8446, section 6, wants.
func alertOf(inner []byte) error {
	switch {
	case len(inner) != 2:
		return &recordError{alertDecode, fmt.Sprintf("an alert of %d bytes, allowed: 2", len(inner))}
	case inner[1] == alertClose:
		return io.EOF
	case inner[1] == alertCanceled:
		return nil
	}
	return &AlertError{tls.AlertError(inner[1])}
}

// answer is the key update that this end owes: who reads says so to who writes.
type answer struct{ owed atomic.Bool }

func (a *answer) owe()        { a.owed.Store(true) }
func (a *answer) taken() bool { return a.owed.Load() && a.owed.CompareAndSwap(true, false) }
