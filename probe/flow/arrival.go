package flow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Type of arrival.
type Type string

// Types.
const (
	Steady Type = "steady" // evenly spaced, as in the published tests
	Hawkes Type = "hawkes" // self-exciting bursts
	Day    Type = "day"    // the curve of a trading day, compressed
	Replay Type = "replay" // as in a recording
)

// Types lists them.
func Types() []Type { return []Type{Steady, Hawkes, Day, Replay} }

// Arrival is how orders of a step arrive. The zero value is steady.
type Arrival struct {
	Type Type `json:"type"`
	// Branching of Hawkes: of 100 orders, how many are triggered by an earlier one.
	Branching int `json:"branching,omitempty"`
	// Seed of all random choices. Steps, repeats and probes differ regardless.
	Seed uint64 `json:"seed,omitempty"`
	// Recording is the name of what Replay plays; MaxMessages bounds how many of
	// its messages a step plays.
	Recording   string `json:"recording,omitempty"`
	MaxMessages int    `json:"maxMessages,omitempty"`
}

// Limits and defaults of an Arrival; the OrderProbe kind has the same.
const (
	MinBranching       = 10
	MaxBranching       = 99
	DefaultSeed        = 1
	DefaultMaxMessages = 100_000
	MaxMessages        = 5_000_000
	MinSpeed           = 1
	MaxSpeed           = 8
)

// ParseType reads a type.
func ParseType(s string) (Type, error) {
	if t := Type(strings.ToLower(s)); slices.Contains(Types(), t) {
		return t, nil
	}
	return "", fmt.Errorf("arrival %.40q: there are steady, hawkes, day and replay", s)
}

// IsSteady is also true of the zero value.
func (a Arrival) IsSteady() bool { return a.Type == "" || a.Type == Steady }

// Defaulted sets the defaults.
func (a Arrival) Defaulted() Arrival {
	if a.Type == "" {
		a.Type = Steady
	}
	if a.Type == Hawkes && a.Branching == 0 {
		a.Branching = DefaultBranching
	}
	if a.Type == Replay && a.MaxMessages == 0 {
		a.MaxMessages = DefaultMaxMessages
	}
	if a.Seed == 0 {
		a.Seed = DefaultSeed
	}
	return a
}

// Check validates an Arrival after defaulting.
func (a Arrival) Check() error {
	var errs []error
	if _, err := ParseType(string(a.Type)); err != nil {
		return err
	}
	only := func(t Type, set bool, what string) {
		if set && a.Type != t {
			errs = append(errs, fmt.Errorf("%s: only for arrival %s, this one is %s; leave it out", what, t, a.Type))
		}
	}
	only(Hawkes, a.Branching != 0, "branching")
	only(Replay, a.MaxMessages != 0, "max-messages")
	only(Replay, a.Recording != "", "replay")
	if a.Type == Hawkes && (a.Branching < MinBranching || a.Branching > MaxBranching) {
		errs = append(errs, fmt.Errorf("branching %d: must be %d to %d, of 100 orders how many are triggered by an earlier one", a.Branching, MinBranching, MaxBranching))
	}
	if a.Type == Replay && (a.MaxMessages < 1 || a.MaxMessages > MaxMessages) {
		errs = append(errs, fmt.Errorf("max-messages %d: must be 1 to %d", a.MaxMessages, MaxMessages))
	}
	return errors.Join(errs...)
}

// String is a short description for the head of a report.
func (a Arrival) String() string {
	switch a.Type {
	case Hawkes:
		return fmt.Sprintf("hawkes, branching 0.%02d, seed %d", a.Branching, a.Seed)
	case Day:
		return fmt.Sprintf("day, seed %d", a.Seed)
	case Replay:
		if a.Recording == "" {
			return "replay"
		}
		return "replay of " + a.Recording
	}
	return string(Steady)
}
