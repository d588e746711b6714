package client

import "errors"

// Fate is what is known about an order after Submit returned.
type Fate uint8

const (
	// FateAccepted means committed on as many copies as the receipt says.
	FateAccepted Fate = iota
	// FateRefused means not accepted, and this submission never will be.
	FateRefused
	// FateUnknown means it may or may not have been accepted.
	FateUnknown
)

// String is the word docs/client.md uses.
func (f Fate) String() string { return [...]string{"accepted", "refused", "unknown"}[f%3] }

// FateOf reports what err, as returned by a Submit method or passed to a callback,
// means for the order. Errors of other origin are FateUnknown.
func FateOf(err error) Fate {
	var reject *RejectError
	switch {
	case err == nil:
		return FateAccepted
	case errors.Is(err, ErrUnknownOutcome):
		return FateUnknown
	case errors.Is(err, ErrNotSent), errors.Is(err, ErrWindowFull), errors.As(err, &reject):
		return FateRefused
	}
	return FateUnknown
}
