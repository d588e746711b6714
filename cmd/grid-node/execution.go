package main

import (
	"fmt"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/ordergrid/ordergrid/grid-node/instrument"
	"github.com/ordergrid/ordergrid/grid-node/node"
)

// executionFlags are those of a grid that matches.
type executionFlags struct{ mode, instruments, selfTrade string }

func (f *executionFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.mode, "execution", "store", "store (orders are stored) or match (and matched, on every copy; docs/exchange.md): the same on all nodes of a grid, for all of its life. Clients of a grid that matches choose the partition by the symbol")
	fl.StringVar(&f.instruments, "instruments", "", "with --execution=match, a file with what is traded: a list of symbol, tick, lot, low, high, reference and state, see docs/exchange.md. Reloaded when it changes: further instruments are added, and one that the log has stays as it is. A file of the same name with .calendar behind it, if there is one, has when sessions begin and end")
	fl.StringVar(&f.selfTrade, "self-trade", "group", "with --execution=match, which orders do not trade with each other: group (those with the same tag 2362) or session (those of one session too, if they have none)")
}

// options returns nil for a grid that stores orders.
func (f *executionFlags) options() (*node.Execution, error) {
	switch {
	case f.mode != "store" && f.mode != "match":
		return nil, fmt.Errorf("--execution: value %q, allowed: store, match", f.mode)
	case f.selfTrade != "group" && f.selfTrade != "session" || f.mode == "store" && f.selfTrade != "group":
		return nil, fmt.Errorf("--self-trade: value %q, allowed: group, and with --execution=match session", f.selfTrade)
	case f.mode == "store" && f.instruments == "":
		return nil, nil
	case f.mode == "store":
		return nil, fmt.Errorf("--instruments: value %q, allowed: none with --execution=store", f.instruments)
	case f.instruments == "":
		return nil, fmt.Errorf(`--instruments: value "", allowed: a file, with --execution=match`)
	}
	file, err := instrument.Open(f.instruments, yaml.YAMLToJSONStrict)
	if err != nil {
		return nil, fmt.Errorf("--instruments: %w", err)
	}
	calendar, err := instrument.OpenCalendar(f.instruments+instrument.CalendarFileName, yaml.YAMLToJSONStrict)
	if err != nil {
		return nil, fmt.Errorf("--instruments: %w", err)
	}
	return &node.Execution{File: file, Calendar: calendar, ApartBySession: f.selfTrade == "session"}, nil
}
