package main

import (
	"os"
	"testing"
)

// asCommand makes this test program the command itself.
const asCommand = "ORDERGRID_BENCH_TEST_COMMAND"

// TestMain lets the test program be what os.Executable promises: relay,
// generator and, for the tests of signals, the whole command.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (internal[os.Args[1]] != nil || os.Getenv(asCommand) != "") {
		os.Exit(start(os.Args[1:]))
	}
	os.Exit(m.Run())
}
