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

// ErrRecord means that the received data is not the next record of the peer. The
// connection is unusable.
var ErrRecord = errors.New("TLS record")

// recordError is ErrRecord with its reason and the alert to send.
type recordError struct {
	alert tls.AlertError
	why   string
}

func (e *recordError) Error() string { return ErrRecord.Error() + ": " + e.why }

// Is matches ErrRecord.
func (e *recordError) Is(target error) bool { return target == ErrRecord }

// AlertError is an alert of the peer other than a regular end.
type AlertError struct{ Alert tls.AlertError }

func (e *AlertError) Error() string { return "remote error: " + e.Alert.Error() }

// Unwrap returns the alert.
func (e *AlertError) Unwrap() error { return e.Alert }

// alertOf returns the error of a record with an alert; nil for user_canceled, which
// precedes close_notify. The level is ignored, as RFC 8446, section 6, requires.
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

// answer is the key update that this end owes, passed from the reader to the writer.
type answer struct{ owed atomic.Bool }

func (a *answer) owe()        { a.owed.Store(true) }
func (a *answer) taken() bool { return a.owed.Load() && a.owed.CompareAndSwap(true, false) }
