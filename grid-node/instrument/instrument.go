// Package instrument reads the file with what a grid trades: a list of instruments, in JSON,
// or in what its opener converts to that. The operator writes it from an InstrumentSet, and checks it as nodes do.
package instrument

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// MaxFile bounds the file, in bytes.
const MaxFile = 4 << 20

// Text is an instrument of the file; numbers are decimal text.
type Text struct {
	Symbol    string `json:"symbol"`
	Tick      string `json:"tick"`
	Lot       string `json:"lot"`
	Low       string `json:"low"`
	High      string `json:"high"`
	Reference string `json:"reference,omitempty"` // the lowest price
	State     string `json:"state,omitempty"`     // open
}

// Instrument is what a book trades, and how its numbers are written. It converts to
// machine.Instrument.
type Instrument struct {
	match.Instrument
	Symbol                 string
	PriceDigits, QtyDigits uint8       // behind the point
	State                  match.State // that the book begins in
}

const maxDigits = 12

var states = map[string]match.State{"": match.Open, "open": match.Open, "call": match.Call, "closed": match.Closed}

// Parse reads the content of the file. Each symbol is in it once.
func Parse(text []byte) ([]Instrument, error) {
	list, err := ParseText(text)
	if err != nil {
		return nil, err
	}
	out := make([]Instrument, 0, len(list))
	seen := map[string]bool{}
	for i := range list {
		in, err := list[i].Instrument()
		if err == nil && seen[in.Symbol] {
			err = fmt.Errorf("the symbol is in the list twice, allowed: once")
		}
		if err != nil {
			return nil, fmt.Errorf("instrument %d, %q: %w", i+1, list[i].Symbol, err)
		}
		seen[in.Symbol] = true
		out = append(out, in)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("it has no instrument, allowed: one or more")
	}
	return out, nil
}

// ParseText reads the list, and not the numbers in it.
func ParseText(text []byte) (list []Text, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(&list)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("something follows the list")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w; allowed: a list of objects with symbol, tick, lot, low, high, reference and state, numbers in quotes", err)
	}
	return list, nil
}

// Instrument converts: the tick and the lot decide how many digits prices and quantities
// have behind the point.
func (t *Text) Instrument() (in Instrument, err error) {
	state, known := states[t.State]
	if !known {
		return in, fmt.Errorf("state is %q, allowed: open, call, closed", t.State)
	}
	in = Instrument{Symbol: t.Symbol, State: state, PriceDigits: digits(t.Tick), QtyDigits: digits(t.Lot)}
	if in.PriceDigits > maxDigits || in.QtyDigits > maxDigits || in.Symbol == "" || len(in.Symbol) > order.MaxSymbol {
		return in, fmt.Errorf("tick %q, lot %q, allowed: up to %d digits behind the point, and a symbol of 1..%d characters", t.Tick, t.Lot, maxDigits, order.MaxSymbol)
	}
	reference := t.Reference
	if reference == "" {
		reference = t.Low
	}
	for _, v := range []struct {
		name, text string
		digits     uint8
		to         *int64
	}{
		{"tick", t.Tick, in.PriceDigits, &in.Tick}, {"lot", t.Lot, in.QtyDigits, &in.Lot}, {"low", t.Low, in.PriceDigits, &in.Low},
		{"high", t.High, in.PriceDigits, &in.High}, {"reference", reference, in.PriceDigits, &in.Ref},
	} {
		n, ok := order.Units([]byte(v.text), v.digits)
		if !ok {
			return in, fmt.Errorf("%s is %q, allowed: a decimal number with at most %d digits behind the point, as the tick or the lot has", v.name, v.text, v.digits)
		}
		*v.to = n
	}
	return in, in.Check()
}

func digits(v string) uint8 {
	_, behind, _ := strings.Cut(v, ".")
	return uint8(min(len(behind), 255))
}
