package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// executionFlags are those of a grid that matches.
type executionFlags struct{ mode, instruments string }

func (f *executionFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.mode, "execution", "store", "store (orders are stored) or match (and matched, on every copy; docs/exchange.md): the same on all nodes of a grid, for all of its life. Clients of a grid that matches choose the partition by the symbol")
	fl.StringVar(&f.instruments, "instruments", "", "with --execution=match, a file with what is traded: a list of symbol, tick, lot, low, high, reference and state, see docs/exchange.md. One that the log has stays as it is")
}

// maxInstrumentsFile bounds what is read of the file.
const maxInstrumentsFile = 4 << 20

// options returns nil for a grid that stores orders.
func (f *executionFlags) options() (*node.Execution, error) {
	switch {
	case f.mode == "store" && f.instruments == "":
		return nil, nil
	case f.mode == "store":
		return nil, fmt.Errorf("--instruments: value %q, allowed: none with --execution=store", f.instruments)
	case f.mode != "match":
		return nil, fmt.Errorf("--execution: value %q, allowed: store, match", f.mode)
	case f.instruments == "":
		return nil, fmt.Errorf(`--instruments: value "", allowed: a file, with --execution=match`)
	}
	info, err := os.Stat(f.instruments)
	if err == nil && info.Size() > maxInstrumentsFile {
		err = fmt.Errorf("it has %d bytes, allowed: at most %d", info.Size(), maxInstrumentsFile)
	}
	if err != nil {
		return nil, fmt.Errorf("--instruments: %w", err)
	}
	text, err := os.ReadFile(f.instruments)
	if err != nil {
		return nil, fmt.Errorf("--instruments: %w", err)
	}
	list, err := parseInstruments(text)
	if err != nil {
		return nil, fmt.Errorf("--instruments: %s: %w", f.instruments, err)
	}
	return &node.Execution{Instruments: list}, nil
}

// instrumentText is an instrument of the file; numbers are decimal text.
type instrumentText struct {
	Symbol    string `json:"symbol"`
	Tick      string `json:"tick"`
	Lot       string `json:"lot"`
	Low       string `json:"low"`
	High      string `json:"high"`
	Reference string `json:"reference"`
	State     string `json:"state"`
}

var instrumentStates = map[string]match.State{"": match.Open, "open": match.Open, "call": match.Call, "closed": match.Closed}

func parseInstruments(text []byte) ([]machine.Instrument, error) {
	var list []instrumentText
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(text), &list); err != nil {
		return nil, fmt.Errorf("%w; allowed: a list of objects with symbol, tick, lot, low, high, reference and state, numbers in quotes", err)
	}
	out := make([]machine.Instrument, 0, len(list))
	for i := range list {
		in, err := list[i].instrument()
		if err != nil {
			return nil, fmt.Errorf("instrument %d, %q: %w", i+1, list[i].Symbol, err)
		}
		out = append(out, in)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("it has no instrument, allowed: one or more")
	}
	return out, nil
}

// instrument converts: the tick and the lot decide how many digits prices and quantities
// have behind the point.
func (t *instrumentText) instrument() (in machine.Instrument, err error) {
	state, known := instrumentStates[t.State]
	if !known {
		return in, fmt.Errorf("state is %q, allowed: open, call, closed", t.State)
	}
	in = machine.Instrument{Symbol: t.Symbol, State: state, PriceDigits: digitsOf(t.Tick), QtyDigits: digitsOf(t.Lot)}
	if t.Reference == "" {
		t.Reference = t.Low
	}
	for _, v := range []struct {
		name, text string
		digits     uint8
		to         *int64
	}{
		{"tick", t.Tick, in.PriceDigits, &in.Tick}, {"lot", t.Lot, in.QtyDigits, &in.Lot}, {"low", t.Low, in.PriceDigits, &in.Low},
		{"high", t.High, in.PriceDigits, &in.High}, {"reference", t.Reference, in.PriceDigits, &in.Ref},
	} {
		n, ok := order.Units([]byte(v.text), v.digits)
		if !ok {
			return in, fmt.Errorf("%s is %q, allowed: a decimal number with at most %d digits behind the point, as the tick or the lot has", v.name, v.text, v.digits)
		}
		*v.to = n
	}
	return in, in.Validate()
}

func digitsOf(v string) uint8 {
	_, behind, _ := strings.Cut(v, ".")
	return uint8(min(len(behind), 255))
}
