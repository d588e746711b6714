package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
)

func TestInstruments(t *testing.T) {
	list, err := parseInstruments([]byte("- {symbol: IBM, tick: \"0.05\", lot: \"10\", low: \"0\", high: \"500\", reference: \"125.5\"}\n- {symbol: OIL, tick: \"1\", lot: \"0.001\", low: \"-50\", high: \"50\", state: call}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []machine.Instrument{
		{Instrument: match.Instrument{Tick: 5, Lot: 10, High: 50_000, Ref: 12_550}, Symbol: "IBM", PriceDigits: 2, State: match.Open},
		{Instrument: match.Instrument{Tick: 1, Lot: 1, Low: -50, High: 50, Ref: -50}, Symbol: "OIL", QtyDigits: 3, State: match.Call},
	}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("instrument %d is %+v, want %+v", i, list[i], want[i])
		}
	}
}

func TestInstrumentsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"[]":                            "no instrument",
		"{symbol: IBM}":                 "a list of objects",
		"- {symbol: IBM, ticks: \"1\"}": "unknown field",
		"- {symbol: IBM, tick: \"0.05\", lot: \"1\", low: \"0\", high: \"1.001\"}":              "high is",
		"- {symbol: IBM, tick: \"0\", lot: \"1\", low: \"0\", high: \"1\"}":                     "tick 0",
		"- {symbol: IBM, tick: \"1\", lot: \"1\", low: \"0\", high: \"9\", state: halted}":      "state is",
		"- {symbol: IBM, tick: \"0.000001\", lot: \"1\", low: \"0\", high: \"1000\"}":           "prices",
		"- {symbol: \"\", tick: \"1\", lot: \"1\", low: \"0\", high: \"9\", reference: \"10\"}": "symbol",
	} {
		if _, err := parseInstruments([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestExecutionFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "instruments.yaml")
	if err := os.WriteFile(file, []byte("- {symbol: A, tick: \"1\", lot: \"1\", low: \"0\", high: \"9\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for f, want := range map[executionFlags]string{
		{"store", ""}: "", {"match", file}: "", {"store", file}: "--instruments", {"match", ""}: "--instruments", {"trade", file}: "--execution", {"match", file + "x"}: "--instruments",
	} {
		x, err := f.options()
		if want == "" && (err != nil || (x != nil) != (f.mode == "match")) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, %v, want %q", f, x, err, want)
		}
	}
}
